"""vLLM as TRL starts it (``use_vllm``), for dialogues: inside the training processes, or a server beside them.

TRL builds vLLM and sends it the weights. Here every row is asked for with its own seed and stop tokens, which TRL's own
call cannot do (it has one set of sampling parameters for all rows, and takes equal numbers of rows from all processes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from duologue.engines.base import Completion, Sampling
from duologue.engines.rows import RowsError, check_call
from duologue.errors import DuologueError

_SEEDS = 2**31
_CONCURRENCY = 256
"""Most requests at a time to a server."""

Row = tuple[Sequence[int], int]
"""A prompt's token ids and its seed."""


class _Sampler(Protocol):
    """Where vLLM runs."""

    context_length: int

    def sample(self, rows: Sequence[Row], parameters: dict[str, Any]) -> list[tuple[Any, Any] | DuologueError]:
        """Return token ids and log-probabilities of a continuation of each row, or why there is none."""
        ...

    def leave(self) -> None:
        """Say that this process samples no more for now, and wait for those with whom it samples."""
        ...


class TRLvLLM:
    """An ``Engine`` over the vLLM of a TRL trainer.

    Setting ``version`` has TRL send the weights, which all processes do together.

    Args:
        trainer: TRL's, made with ``use_vllm``.

    Raises:
        DuologueError: if vLLM gives log-probabilities without temperature.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        vllm = trainer.vllm_generation
        self._sampler: _Sampler = _Server(vllm) if vllm.mode == "server" else _Colocated(vllm)
        self._version: int | None = None

    @property
    def context_length(self) -> int:
        """Return how many tokens prompt and continuation may hold together."""
        return self._sampler.context_length

    @property
    def version(self) -> int:
        """The policy version in vLLM. Setting another one sends the weights; its prefix cache is dropped then."""
        return self._version or 0

    @version.setter
    def version(self, version: int) -> None:
        if version != self._version:
            self.trainer.vllm_generation.sync_weights()
            self._version = version

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt (see ``Engine``).

        Raises:
            RowsError: if some prompts got no completion; it holds those of the others.
            DuologueError: if a prompt is empty or leaves no room in the context window, or seeds are missing.
        """
        check_call(prompts, sampling, seeds, self.context_length)
        found = self._sampler.sample(list(zip(prompts, seeds, strict=True)), _parameters(sampling, stop_ids))
        rows = [row if isinstance(row, DuologueError) else self._completed(*row, stop_ids) for row in found]
        done = [row for row in rows if isinstance(row, Completion)]
        if len(done) < len(rows):
            raise RowsError(rows)
        return done

    def leave(self) -> None:
        """Say that this process's dialogues have ended. With tensor parallelism it serves others' until theirs have."""
        self._sampler.leave()

    def _completed(self, ids: Any, logprobs: Any, stop_ids: Sequence[int]) -> Completion | DuologueError:
        tokens = tuple(int(token) for token in ids)
        scores = tuple(math.nan if score is None else min(float(score), 0.0) for score in logprobs or ())
        if not tokens or len(scores) != len(tokens) or any(map(math.isnan, scores)):
            return DuologueError(
                f"vLLM gave {len(tokens)} tokens with {len(scores)} log-probabilities, or one that is no number. Look "
                "into its log."
            )
        return Completion(tokens, scores, "stop" if tokens[-1] in stop_ids else "length", self.version)


class _Colocated:
    """vLLM in the training processes: one for each, or one over the ``tensor_parallel_size`` processes of a group.

    Processes that share one must ask it for the same rows at the same time. Each call is a round in which all of a
    group say what they have; one whose dialogues have ended goes on with empty rounds until all have.
    """

    def __init__(self, vllm: Any) -> None:
        self.llm = vllm.llm
        self.group = vllm.tp_group if vllm.tensor_parallel_size > 1 else None
        self.context_length = int(self.llm.llm_engine.model_config.max_model_len)
        self._broken: str | None = None

    def sample(self, rows: Sequence[Row], parameters: dict[str, Any]) -> list[tuple[Any, Any] | DuologueError]:
        if self.group is None:
            return self._sample(rows, parameters)
        parts = self._round((rows, parameters))
        before = sum(len(part[0]) for part in parts[: self._rank] if part)
        return self._shared(parts)[before : before + len(rows)]

    def leave(self) -> None:
        if self.group is not None:
            while any(parts := self._round(None)):
                self._shared(parts)

    def _shared(self, parts: list[Any]) -> list[tuple[Any, Any] | DuologueError]:
        rows = [row for part in parts if part for row in part[0]]
        return self._sample(rows, next(part[1] for part in parts if part))

    def _round(self, mine: Any) -> list[Any]:
        """Exchange (rows, parameters), or None after the end, with the processes of the group, in their order."""
        from torch import distributed

        parts: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(parts, mine, group=self.group)
        return parts

    @property
    def _rank(self) -> int:
        from torch import distributed

        return int(distributed.get_rank(self.group))

    def _sample(self, rows: Sequence[Row], parameters: dict[str, Any]) -> list[tuple[Any, Any] | DuologueError]:
        from vllm import SamplingParams

        chosen = [SamplingParams(**parameters, seed=seed % _SEEDS, detokenize=False) for _, seed in rows]
        prompts = [{"prompt_token_ids": list(prompt)} for prompt, _ in rows]
        answers = [answer.outputs[0] for answer in self._generate(prompts, chosen)]
        return [(a.token_ids, [s[i].logprob for s, i in zip(a.logprobs, a.token_ids, strict=True)]) for a in answers]

    def _generate(self, prompts: list[Any], chosen: list[Any]) -> Any:
        """Have vLLM sample; after a failure it still holds the failed requests, and another call would never end."""
        if self._broken:
            raise DuologueError(f"vLLM has failed in this run: {self._broken}. Mend that and run again.")
        try:
            return self.llm.generate(prompts, chosen, use_tqdm=False)
        except Exception as error:
            self._broken = repr(error)
            raise


class _Server:
    """A ``vllm serve`` that TRL sends weights to. Every process asks it for its own rows, at its own pace."""

    def __init__(self, vllm: Any) -> None:
        from trl.generation.vllm_client import VLLMClient

        url = vllm.server_base_url or f"http://{vllm.server_host}:{vllm.server_port}"
        main = getattr(vllm, "vllm_client", None)  # the first process's, which sends the weights
        self.client = main or VLLMClient(url, connection_timeout=vllm.server_timeout)
        config = self.client.get_server_info()["model_config"]
        if config["logprobs_mode"] != "processed_logprobs":
            raise DuologueError(
                f"{url} gives log-probabilities of another kind ({config['logprobs_mode']}). Start it with "
                "--logprobs-mode processed_logprobs."
            )
        self.context_length = int(config["max_model_len"])

    def sample(self, rows: Sequence[Row], parameters: dict[str, Any]) -> list[tuple[Any, Any] | DuologueError]:
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            return list(pool.map(lambda row: self._row(row[0], row[1], parameters), rows))

    def leave(self) -> None:
        return

    def _row(self, prompt: Sequence[int], seed: int, parameters: dict[str, Any]) -> tuple[Any, Any] | DuologueError:
        try:
            answer = self.client.generate([list(prompt)], generation_kwargs={**parameters, "seed": seed % _SEEDS})
        except Exception as error:  # after TRL's own retries; it costs this dialogue and no other
            return DuologueError(f"The vLLM server gave no completion: {error}. Look into its log.")
        return answer["completion_ids"][0], [scores[0] for scores in (answer["logprobs"] or [()])[0]]


def _parameters(sampling: Sampling, stop_ids: Sequence[int]) -> dict[str, Any]:
    """Return sampling parameters; what a model's folder could have other defaults for is said outright."""
    return {
        "n": 1,
        "max_tokens": sampling.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "logprobs": 0,
        "stop_token_ids": list(stop_ids),
        "ignore_eos": True,  # what ends a turn is in stop_ids
    }
