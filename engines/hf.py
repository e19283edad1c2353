"""The in-process engine: batched sampling with transformers, with the exact log-probability of every token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from duologue.engines.base import Completion, Sampling
from duologue.engines.prefix_cache import PrefixCache
from duologue.errors import DuologueError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TransformersEngine:
    """Samples from a model in this process.

    Every row has a random stream of its own, so its sample depends on its seed and prompt, not on its batch (up to the
    floating-point effects of padding).
    """

    def __init__(self, model: PreTrainedModel, pad_id: int, *, batch_size: int = 64) -> None:
        """Wrap a model.

        Args:
            model: a causal language model, with or without adapter; its weights are read at each call.
            pad_id: token id for padding.
            batch_size: rows per forward pass; more prompts are cut into several passes.
        """
        self.model = model
        self.pad_id = pad_id
        self.batch_size = batch_size
        self._cache = PrefixCache(model, pad_id)
        self.version = 0
        """Stamped on completions; the trainer sets it to its optimiser step."""

    @property
    def context_length(self) -> int:
        """Return the model's context window in tokens."""
        config = self.model.config.get_text_config()
        return int(getattr(config, "max_position_embeddings", None) or 2**31)

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt (see ``Engine``). Rows are grouped by length to waste little padding.

        Raises:
            DuologueError: if a prompt is empty or leaves no room in the context window.
        """
        self._check(prompts, sampling)
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        done: dict[int, Completion] = {}
        self._cache.open()
        was_training = self.model.training
        self.model.eval()
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = self._generate([prompts[i] for i in rows], sampling, stop_ids, [seeds[i] for i in rows])
            done.update(zip(rows, batch, strict=True))
        self.model.train(was_training)
        return [done[i] for i in range(len(prompts))]

    def _check(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        for i, prompt in enumerate(prompts):
            if not prompt:
                raise DuologueError(f"Prompt {i} has no tokens. Give at least one.")
            if len(prompt) + sampling.max_new_tokens > self.context_length:
                raise DuologueError(
                    f"Prompt {i} of {len(prompt)} tokens leaves no room for {sampling.max_new_tokens} more in a context "
                    f"of {self.context_length}. Shorten the dialogue or lower max_new_tokens."
                )

    @torch.no_grad()
    def _generate(
        self, prompts: list[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: list[int]
    ) -> list[Completion]:
        batch = self._cache.lay_out(prompts)
        sampler = _Sampler(seeds, sampling)
        config = GenerationConfig(
            max_new_tokens=sampling.max_new_tokens,
            do_sample=False,
            eos_token_id=list(stop_ids) or None,
            pad_token_id=self.pad_id,
            repetition_penalty=1.0,
            return_dict_in_generate=True,
        )
        out = self.model.generate(  # type: ignore[operator]
            batch.input_ids,
            attention_mask=batch.attention_mask,
            past_key_values=batch.past,
            generation_config=config,
            logits_processor=LogitsProcessorList([sampler]),
        )
        sampled = out.sequences[:, batch.columns :].tolist()
        done = self._completions(sampled, sampler.logprobs(), set(stop_ids))
        rows = [[*prompt, *completion.token_ids] for prompt, completion in zip(prompts, done, strict=True)]
        self._cache.keep(out.past_key_values, batch.attention_mask, rows)
        return done

    def _completions(self, tokens: list[list[int]], logprobs: list[list[float]], stops: set[int]) -> list[Completion]:
        completions = []
        for row, scores in zip(tokens, logprobs, strict=True):
            end = next((i + 1 for i, token in enumerate(row) if token in stops), None)
            kept, finish = (row[:end], "stop") if end else (row, "length")
            completions.append(
                Completion(tuple(kept), tuple(scores[: len(kept)]), finish, self.version)  # type: ignore[arg-type]
            )
        return completions


class _Sampler(LogitsProcessor):
    """Draws the next token by inverse transform from one uniform per row and step and forces ``generate`` to take it.

    ``torch.multinomial`` would draw a random number per vocabulary entry, from one stream for the whole batch.
    """

    def __init__(self, seeds: Sequence[int], sampling: Sampling) -> None:
        self.temperature = sampling.temperature
        draws = [np.random.default_rng(abs(seed)).random(sampling.max_new_tokens) for seed in seeds]
        self.uniforms = torch.from_numpy(np.stack(draws))
        self.chosen: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        logp = torch.log_softmax(scores.float() / (self.temperature or 1.0), dim=-1)
        token = self._draw(logp) if self.temperature else logp.argmax(dim=-1, keepdim=True)
        self.chosen.append(logp.gather(1, token).squeeze(1))
        return torch.full_like(logp, float("-inf")).scatter_(1, token, 0.0)

    def _draw(self, logp: torch.Tensor) -> torch.Tensor:
        cumulative = logp.double().exp_().cumsum_(dim=-1)
        step = self.uniforms[:, len(self.chosen)].to(logp.device).unsqueeze(1)
        token = torch.searchsorted(cumulative, step * cumulative[:, -1:], right=True)
        return token.clamp_(max=logp.shape[-1] - 1)

    def logprobs(self) -> list[list[float]]:
        """Return the log-probability of each drawn token, rows first."""
        rows: list[list[float]] = torch.stack(self.chosen, dim=1).tolist()
        return rows
