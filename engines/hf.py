"""The in-process engine: batched sampling with transformers, with the exact log-probability of every token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from duologue.engines.base import Completion, Sampling
from duologue.engines.prefix_cache import PrefixCache
from duologue.engines.rows import check_call

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_COMPACT_BELOW = 0.75
"""Finished rows leave the batch once no more than this share runs on; each time would copy the cache too often."""


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
        self._version = 0

    @property
    def version(self) -> int:
        """The policy version stamped on completions; the trainer sets it to its optimiser step.

        Setting it also forgets cached keys and values, as it says that the weights may be other ones.
        """
        return self._version

    @version.setter
    def version(self, version: int) -> None:
        self._version = version
        self.flush()

    def flush(self) -> None:
        """Forget cached keys and values. Needed only after weights were changed behind torch's back."""
        self._cache.flush()

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
            DuologueError: if a prompt is empty or leaves no room in the context window, or seeds are missing.
        """
        check_call(prompts, sampling, seeds, self.context_length)
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        done: dict[int, Completion] = {}
        self._cache.open()
        was_training = self.model.training
        self.model.train(False)
        try:
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                batch = self._generate([prompts[i] for i in rows], sampling, stop_ids, [seeds[i] for i in rows])
                done.update(zip(rows, batch, strict=True))
        finally:
            self.model.train(was_training)
        return [done[i] for i in range(len(prompts))]

    @torch.no_grad()
    def _generate(
        self, prompts: list[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: list[int]
    ) -> list[Completion]:
        self._compute_once(self._cache.shared(prompts))
        batch = self._cache.lay_out(prompts)
        sampler = _Sampler(seeds, sampling, stop_ids)
        mask, cache = batch.attention_mask, batch.past
        ids, positions, live = batch.new_ids, batch.new_positions, torch.arange(len(prompts))
        for step in range(sampling.max_new_tokens):
            out = self.model(
                ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True, logits_to_keep=1
            )
            cache = out.cache
            ids, running = sampler.draw(out.logits[:, -1], live, step)
            last = step + 1 == sampling.max_new_tokens or not running.any()
            drop = torch.ones_like(running) if last else ~running
            if last or running.float().mean() <= _COMPACT_BELOW:
                self._remember(cache, mask, prompts, sampler, live, drop)
                if last:
                    break
                keep = running.nonzero().squeeze(1)
                cache.batch_select_indices(keep)
                ids, mask, positions, live = ids[keep], mask[keep], positions[keep], live[keep.cpu()]
            positions = positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        return sampler.completions(self.version)

    def _compute_once(self, beginnings: list[tuple[int, ...]]) -> None:
        """Lend the prompts of this call what several of them begin with."""
        if not beginnings:
            return
        batch = self._cache.lay_out(beginnings)
        mask, positions = batch.attention_mask, batch.new_positions
        out = self.model(batch.new_ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1)
        for i, ids in enumerate(beginnings):
            self._cache.lend(out.cache, i, mask[i], ids)

    def _remember(
        self, cache: Any, mask: torch.Tensor, prompts: list[Sequence[int]], sampler: _Sampler, live: Any, drop: Any
    ) -> None:
        """Keep the keys and values of rows that leave the batch, for their dialogue's next turn."""
        if self._cache.supports(cache):
            for i in drop.nonzero().squeeze(1).tolist():
                row = int(live[i])
                self._cache.keep(cache, i, mask[i], [*prompts[row], *sampler.tokens[row]])


class _Sampler:
    """Draws tokens by inverse transform, from one uniform per row and step.

    ``torch.multinomial`` would draw a random number per vocabulary entry, from one stream for the whole batch.
    """

    def __init__(self, seeds: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]) -> None:
        self.temperature = sampling.temperature
        self.stops = set(stop_ids)
        draws = [np.random.default_rng(abs(seed)).random(sampling.max_new_tokens) for seed in seeds]
        self.uniforms = torch.from_numpy(np.stack(draws))
        self.tokens: list[list[int]] = [[] for _ in seeds]
        self.logprobs: list[list[float]] = [[] for _ in seeds]

    def draw(self, logits: torch.Tensor, live: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw one token for each live row that runs; return the tokens (B, 1) and which rows run on (B,)."""
        logp = torch.log_softmax(logits.float() / (self.temperature or 1.0), dim=-1)
        token = self._inverse(logp, self.uniforms[live, step]) if self.temperature else logp.argmax(-1, keepdim=True)
        chosen = logp.gather(1, token).squeeze(1).tolist()
        for row, new, score in zip(live.tolist(), token.squeeze(1).tolist(), chosen, strict=True):
            if not self._stopped(row):
                self.tokens[row].append(new)
                self.logprobs[row].append(score)
        return token, torch.tensor([not self._stopped(row) for row in live.tolist()], device=logits.device)

    def completions(self, version: int) -> list[Completion]:
        """Return what was drawn."""
        return [
            Completion(tuple(tokens), tuple(scores), "stop" if self._stopped(row) else "length", version)
            for row, (tokens, scores) in enumerate(zip(self.tokens, self.logprobs, strict=True))
        ]

    def _stopped(self, row: int) -> bool:
        return bool(self.tokens[row]) and self.tokens[row][-1] in self.stops

    @staticmethod
    def _inverse(logp: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
        cumulative = logp.double().exp_().cumsum_(dim=-1)
        threshold = uniforms.to(logp.device).unsqueeze(1) * cumulative[:, -1:]
        return torch.searchsorted(cumulative, threshold, right=True).clamp_(max=logp.shape[-1] - 1)
