"""Tokens from a SGLang server: many requests in flight, every completion with the weights that sampled it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx

from duologue.engines.base import Completion, Sampling
from duologue.engines.http import Policy, RefusedError
from duologue.engines.models import weights_hash
from duologue.engines.rows import RowsError, check_call
from duologue.engines.sessions import Sessions
from duologue.engines.sglang_answer import Answer, top_gap
from duologue.engines.sglang_broadcast import Broadcast
from duologue.engines.sglang_server import SGLangServer, request_body
from duologue.errors import DuologueError

if TYPE_CHECKING:
    import torch

_GIVE_UP_AFTER = 4
_MOST_STALE = 3
"""Stale answers to one prompt after which something other than bad luck is at work."""
_TELLING = 0.05
"""Nats by which two readings of a log-probability must differ to be told apart."""


@dataclass(slots=True)
class ServerStats:
    """What an engine has got from its server so far."""

    completions: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server had in its prefix cache."""
    completion_tokens: int = 0
    stale: int = 0
    """Answers refused because older weights had sampled them."""
    restored: int = 0
    """Times that a server which had lost the policy was given it again."""
    unflushed: int = 0
    """Times that the server would not flush its cache after an adapter was loaded, as others' requests were running."""


@dataclass(frozen=True, slots=True)
class ServedWeights:
    """What samples on a server: its weights under their label, and perhaps an adapter over them."""

    version: int
    label: str
    adapter: str | None
    folder: Path | None = None
    """What was loaded last: the adapter if it is ours, else the weights."""
    is_ours: bool = False
    """The adapter was loaded by ``sync_adapter``, not by whoever started the server."""


class SGLangEngine:
    """An ``Engine`` over HTTP.

    Broken connections, time-outs, 429, 5xx and unusable answers are tried again with pauses, for some three minutes
    with the default; a server that was restarted meanwhile is given the policy again. A prompt that fails for good
    costs its own completion and no other's (``RowsError``). Seeds are sent as ``sampling_seed`` (31 bits); they make
    samples repeatable only if the server was started with ``--enable-deterministic-inference``.

    Args:
        url: address of a server or router, such as ``http://127.0.0.1:30000``.
        adapter: name of a LoRA adapter that the server has loaded; None = its base model.
        allow_stale: by how many versions an answer may lag behind; it carries its version. 0 = none may.
        api_key_env: environment variable with the key, if the server wants one.
        timeout: seconds that one attempt may take.
        concurrency: most requests at a time.
        retries: further attempts after the first.

    Raises:
        DuologueError: if the address is no plain URL, the server does not answer, or it does not say how long its
            context is.
    """

    def __init__(
        self,
        url: str,
        *,
        adapter: str | None = None,
        allow_stale: int = 0,
        api_key_env: str = "DUOLOGUE_API_KEY",
        timeout: float = 300,
        concurrency: int = 256,
        retries: int = 24,
    ) -> None:
        self._server = SGLangServer(url, Policy(timeout, concurrency, retries, _GIVE_UP_AFTER), api_key_env)
        self._http = self._server.http
        self.address = self._server.address
        self.allow_stale = allow_stale
        self.close = self._http.close
        """Closes the connections; also happens when the object is dropped."""
        self.stats = ServerStats()
        self._broadcast = Broadcast(self._server)
        self._sessions = Sessions()
        self._name = f"duologue-{uuid4().hex[:8]}"  # tells our weights on the server from others'
        self._loads, self._requests = count(1), count()
        self._restoring = asyncio.Lock()
        self._temperature_checked = False
        self.check_health()
        info = self._http.one(self._server.model_info())
        self.model_path = str(info.get("model_path", "unknown"))
        self.tokenizer_path = str(info.get("tokenizer_path") or self.model_path)
        self._context_length = self._http.one(self._server.context_length())
        self.weights = ServedWeights(0, str(info.get("weight_version", "default")), adapter)
        """What the next completions should come from."""
        self._versions = {self.weights.label: 0}

    def __repr__(self) -> str:
        return f"SGLangEngine({self.address!r})"

    @property
    def signature(self) -> str:
        """Return the model's name, the server's address, and name and hash of what was loaded into it from here."""
        folder = self.weights.folder
        loaded = [folder.name, weights_hash(folder)] if folder else [self.weights.adapter]
        return "|".join(filter(None, [f"{Path(self.model_path).name}@{self.address}", *loaded]))

    @property
    def context_length(self) -> int:
        """Return how many tokens prompt and continuation may hold together, as the server says."""
        return self._context_length

    @property
    def version(self) -> int:
        """The version of the weights that the next completions should come from: the last one synchronised, or 0."""
        return self.weights.version

    @property
    def retried(self) -> int:
        """Attempts beyond the first, so far."""
        return self._http.retried

    def check_health(self) -> None:
        """Ask the server whether it is up.

        Raises:
            DuologueError: if it is not.
        """
        self._http.one(self._server.health())

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt (see ``Engine``), all at once up to ``concurrency``.

        Raises:
            RowsError: if some prompts got no completion; it holds those of the others.
            DuologueError: if a prompt is empty or leaves no room in the context window, seeds are missing, or the
                server gives log-probabilities without temperature.
        """
        check_call(prompts, sampling, seeds, self.context_length)
        if prompts:
            self._check_temperature(list(prompts[0]), sampling.temperature)
        rows = self._http.run(
            [self._row(list(p), sampling, list(stop_ids), seed) for p, seed in zip(prompts, seeds, strict=True)]
        )
        done = [row for row in rows if isinstance(row, Completion)]
        if len(done) < len(rows):
            raise RowsError(rows)
        return done

    def sync_adapter(self, folder: str | Path, version: int) -> None:
        """Have the server load a LoRA adapter under a name of its own, sample from it, and drop the last one.

        Args:
            folder: with ``adapter_config.json``, at a path that the server can read too.
            version: what completions will carry.

        Raises:
            DuologueError: if the folder is none, or the server does not load it.
        """
        path = _checked(folder, "adapter_config.json", "a PEFT adapter")
        last = self.weights
        name = self._next_name(version)
        self._load(ServedWeights(version, last.label, name, path, is_ours=True))
        self._drop(last)
        try:
            self.flush()
        except RefusedError:  # others' requests run; keys and values are kept by adapter, so none of ours is stale
            self.stats.unflushed += 1

    def sync_weights(self, folder: str | Path, version: int) -> None:
        """Have the server replace all its weights by those in a folder, and forget what it has cached.

        Args:
            folder: with ``config.json`` and weights of the same architecture, at a path that the server can read too.
            version: what completions will carry.

        Raises:
            DuologueError: if the folder is none, or the server does not load it.
        """
        path = _checked(folder, "config.json", "a model")
        last = self.weights
        self._load(ServedWeights(version, self._next_name(version), None if last.is_ours else last.adapter, path))
        self._drop(last)

    def sync_tensors(self, tensors: Mapping[str, torch.Tensor], version: int) -> None:
        """Send the server all its weights from this process's memory, over NCCL or gloo, and forget what it has cached.

        A server that was restarted is sent them again, so they must stay what they are until the next call.

        Args:
            tensors: the whole ``state_dict`` of a model of the server's architecture.
            version: what completions will carry.

        Raises:
            DuologueError: if there are no tensors, or the server does not reach this process or take the weights.
        """
        if not tensors:
            raise DuologueError("There are no tensors to send. Give a model's whole state_dict.")
        label, last = self._next_name(version), self.weights
        self._http.one(self._broadcast.send(tensors, label))
        self.follow(ServedWeights(version, label, None if last.is_ours else last.adapter))
        self._drop(last)

    def unload_adapter(self) -> None:
        """Have the server drop the adapter of the last ``sync_adapter``, if there is one.

        What is sampled with it later has the server load it again, as long as its folder is there.

        Raises:
            DuologueError: if the server does not.
        """
        if self.weights.adapter and self.weights.is_ours:
            self._http.one(self._server.unload_adapter(self.weights.adapter))

    def end_broadcast(self) -> None:
        """Hold the tensors of ``sync_tensors`` no longer, and end the group in which they went over.

        The server keeps the weights; if it is restarted, it is not given them again.
        """
        self._http.one(self._broadcast.close())

    def flush(self) -> None:
        """Have the server forget cached keys and values.

        Raises:
            DuologueError: if it does not, as while requests are running.
        """
        self._http.one(self._server.flush_cache())

    def _drop(self, last: ServedWeights) -> None:
        if last.adapter and last.is_ours:
            self._http.run([self._server.unload_adapter(last.adapter)])  # a restarted server may not have it

    def _next_name(self, version: int) -> str:
        return f"{self._name}-{next(self._loads)}-v{version}"

    def follow(self, weights: ServedWeights) -> None:
        """Sample from what another process's engine (its ``weights``) has had the same server load."""
        self.weights = weights
        if not weights.is_ours:
            self._versions[weights.label] = weights.version

    def _load(self, weights: ServedWeights) -> None:
        self._http.one(self._loaded(weights))
        self.follow(weights)

    async def _loaded(self, weights: ServedWeights) -> None:
        if weights.adapter and weights.is_ours:
            await self._server.load_adapter(weights.adapter, str(weights.folder))
        elif weights.folder:
            await self._server.update_weights(str(weights.folder), weights.label)
        else:
            await self._broadcast.again()

    async def _row(self, prompt: list[int], sampling: Sampling, stop_ids: list[int], seed: int) -> Completion:
        session = self._sessions.of(prompt)
        for attempt in range(_MOST_STALE):
            asked, restored = self.weights, self.stats.restored
            body = request_body(prompt, sampling, asked.adapter)
            body["sampling_params"] |= {"stop_token_ids": stop_ids, "sampling_seed": seed % 2**31}
            name = f"{session}_t{next(self._requests)}"  # a router takes what stands before _t as the session
            try:
                answer = await self._server.generate(body, name, session, sampling.max_new_tokens, stop_ids)
            except RefusedError as error:
                if attempt or not _may_lack_adapter(error, asked):
                    raise
                await self._restore(asked, restored)
                continue
            version = self._version_of(answer, asked)
            if version is not None and asked.version - version <= self.allow_stale:
                return self._completed(prompt, answer, version, stop_ids, session)
            self.stats.stale += 1
            await self._restore(asked, restored)
        raise DuologueError(
            f"{self.address} samples from other weights than version {asked.version}, which it was given last. "
            "Let nobody else update this server, or sync again."
        )

    def _version_of(self, answer: Answer, asked: ServedWeights) -> int | None:
        """Return the oldest version that took part in an answer, or None if it has weights that are not ours."""
        if all(label == asked.label for label in answer.labels):
            return asked.version
        versions = [self._versions.get(label) for label in answer.labels]
        return None if asked.adapter or None in versions else min(v for v in versions if v is not None)

    def _completed(
        self, prompt: list[int], answer: Answer, version: int, stop_ids: list[int], session: str
    ) -> Completion:
        self._sessions.keep(session, [*prompt, *answer.token_ids])
        self.stats.completions += 1
        self.stats.prompt_tokens += answer.prompt_tokens
        self.stats.cached_tokens += answer.cached_tokens
        self.stats.completion_tokens += len(answer.token_ids)
        finish = answer.token_ids[-1] in stop_ids
        return Completion(answer.token_ids, answer.logprobs, "stop" if finish else "length", version)

    async def _restore(self, asked: ServedWeights, restored: int) -> None:
        """Give the server the policy again, once for all who miss it."""
        async with self._restoring:
            if (asked.folder or asked.label == self._broadcast.label) and restored == self.stats.restored:
                await self._loaded(asked)
                self.stats.restored += 1

    def _check_temperature(self, prompt: list[int], temperature: float) -> None:
        """Compare, once, how far apart two tokens are at temperature 0 (which is unscaled) and at the wanted one."""
        if self._temperature_checked or temperature in (0, 1):
            return
        bodies = [request_body(prompt, Sampling(1, t), self.weights.adapter) for t in (0, temperature)]
        plain, scaled = map(top_gap, self._http.run([self._server.top_two(body) for body in bodies]))
        if plain is None or scaled is None or abs(plain - plain / temperature) < _TELLING:
            return
        self._temperature_checked = True
        if abs(scaled - plain) < abs(scaled - plain / temperature):
            raise DuologueError(
                f"{self.address} gives log-probabilities as they are before temperature {temperature}. Start it "
                "without SGLANG_RETURN_ORIGINAL_LOGPROB, or sample at temperature 1."
            )


def _may_lack_adapter(error: RefusedError, asked: ServedWeights) -> bool:
    """Return True if a restarted server would refuse a request in this way."""
    return asked.folder is not None and asked.adapter is not None and error.status == httpx.codes.BAD_REQUEST


def _checked(folder: str | Path, file: str, what: str) -> Path:
    path = Path(folder).resolve()
    if not (path / file).is_file():
        raise DuologueError(f"{folder} holds no {file}, so it is not {what}. Save one there first.")
    return path
