"""Keys and values of finished rows, kept so that the next turn of a dialogue computes only what is new.

What a radix cache does for a server, for one process: a prompt that begins with a row sampled before reuses that row's
keys and values, and a long prompt that shares a long beginning with one (the same dialogue, gone on otherwise) reuses
those of the beginning. What new prompts of one call share is computed once. Rows are found by their token ids alone, so
whoever calls need not know of the cache.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

from duologue.engines.shared_beginnings import common_length, shared_beginnings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Layers = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one row per layer, each of shape (heads, tokens, head dimension)."""

Prefix = tuple[tuple[int, ...], int]
"""A row that is kept, and how many of its tokens a prompt begins with."""

_SHARED = 256
"""Fewest tokens of a beginning for which a part of a row is looked for."""
_SAMPLED = 16
"""Values per parameter that are looked at to see whether weights have changed."""


@dataclass(slots=True)
class Prefilled:
    """A batch laid out as [cached columns | new columns], both padded on the left; shapes (B, cached + new)."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    past: DynamicCache | None
    new_columns: int
    """Columns that the model has to compute."""

    @property
    def new_ids(self) -> torch.Tensor:
        """Return the tokens of the new columns, (B, new)."""
        return self.input_ids[:, -self.new_columns :]

    @property
    def new_positions(self) -> torch.Tensor:
        """Return the positions of the new columns, (B, new), counted without padding."""
        return (self.attention_mask.cumsum(1) - 1).clamp(min=0)[:, -self.new_columns :]


class PrefixCache:
    """Remembers the rows of the latest calls. It forgets everything as soon as a weight of the model has changed."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        self.model = model
        self.pad_id = pad_id
        self._rows: dict[tuple[int, ...], Layers] = {}
        self._fresh: dict[tuple[int, ...], Layers] = {}
        self._weights: object = None

    def open(self) -> None:
        """Begin a call: what the last call computed can be reused, older rows and other weights' rows cannot."""
        weights = self._fingerprint()
        self._rows, self._fresh = (self._fresh if weights == self._weights else {}), {}
        self._weights = weights

    def flush(self) -> None:
        """Forget all rows."""
        self._rows, self._fresh = {}, {}

    def lay_out(self, prompts: Sequence[Sequence[int]]) -> Prefilled:
        """Return the batch to run, with the longest cached prefix of each prompt taken out of the work."""
        found = self._longest_prefixes(prompts)
        past = max((length for _, length in found), default=0)
        new = max(len(p) - length for p, (_, length) in zip(prompts, found, strict=True))
        ids, mask = [], []
        for prompt, (_, length) in zip(prompts, found, strict=True):
            gaps = past - length, new - (len(prompt) - length)
            ids.append([self.pad_id] * gaps[0] + [*prompt[:length]] + [self.pad_id] * gaps[1] + [*prompt[length:]])
            mask.append([0] * gaps[0] + [1] * length + [0] * gaps[1] + [1] * (len(prompt) - length))
        device = self.model.device
        cache = self._stack(found, past) if past else None
        return Prefilled(torch.tensor(ids, device=device), torch.tensor(mask, device=device), cache, new)

    def shared(self, prompts: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Return beginnings to ``lend`` before the batch is laid out; none where prompts go on with cached rows."""
        empty = DynamicCache(config=self.model.config.get_text_config())
        if not self.supports(empty) or any(length for _, length in self._longest_prefixes(prompts)):
            return []
        return shared_beginnings(prompts)

    def lend(self, cache: Any, i: int, mask: torch.Tensor, ids: tuple[int, ...]) -> None:
        """Lend row ``i`` of a batch to the prompts of this call that begin with it (arguments as for ``keep``)."""
        self._rows[ids] = _row(cache, i, mask.nonzero().squeeze(1))

    def keep(self, cache: Any, i: int, mask: torch.Tensor, ids: Sequence[int]) -> None:
        """Remember row ``i`` of a batch for the next call.

        Args:
            cache: the model's cache, after the last token that has keys.
            i: the row's index in the cache.
            mask: (columns,) of what the cache holds; True columns belong to the row.
            ids: the row's tokens; those beyond the columns (the last sampled one) have no keys yet.
        """
        where = mask.nonzero().squeeze(1)[: len(ids)]
        self._fresh[tuple(ids[: len(where)])] = _row(cache, i, where)

    @staticmethod
    def supports(cache: Any) -> bool:
        """Return True if every layer attends to everything; a sliding window would count our gaps as tokens."""
        return isinstance(cache, DynamicCache) and all(type(layer) is DynamicLayer for layer in cache.layers)

    def _fingerprint(self) -> object:
        """Return what changes with the weights: versions, storage, a few values, the adapters in use.

        Fused optimisers and writes through ``.data`` leave torch's versions as they are; the values show these.
        """
        parameters = [p.detach() for p in self.model.parameters()]
        stored = [(p._version, p.data_ptr()) for p in parameters]
        values = [p.reshape(-1)[:_SAMPLED].tolist() for p in parameters]
        modules: list[Any] = [m for m in self.model.modules() if hasattr(m, "merged_adapters")]
        adapters = [(m.disable_adapters, [*m.active_adapters], [*m.merged_adapters]) for m in modules]
        return stored, values, adapters

    def _longest_prefixes(self, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
        ordered = sorted(self._rows)
        return [self._longest_prefix(tuple(prompt), ordered) for prompt in prompts]

    def _longest_prefix(self, prompt: tuple[int, ...], ordered: list[tuple[int, ...]]) -> Prefix:
        whole = (row for row in ordered if len(row) < len(prompt) and prompt[: len(row)] == row)
        if (longest := max(whole, key=len, default=())) or len(prompt) <= _SHARED:
            return longest, len(longest)
        place = bisect(ordered, prompt)  # what shares most with it stands beside it
        parts = [(row, common_length(row, prompt[:-1])) for row in ordered[max(0, place - 1) : place + 1]]
        row, length = max(parts, key=lambda part: part[1], default=((), 0))
        return (row, length) if length >= _SHARED else ((), 0)

    def _stack(self, found: Sequence[Prefix], width: int) -> DynamicCache:
        """Return the cached rows as one batch, padded on the left with zeros that the mask hides."""
        some = next(iter(self._rows.values()))
        cache = DynamicCache(config=self.model.config.get_text_config())
        for layer in range(len(some)):
            pair = []
            for part in (0, 1):
                like = some[layer][part]
                stacked = like.new_zeros(len(found), like.shape[0], width, like.shape[2])
                for i, (row, length) in enumerate(found):
                    if length:
                        stacked[i, :, width - length :] = self._rows[row][layer][part][:, :length]
                pair.append(stacked)
            cache.update(pair[0], pair[1], layer)
        return cache


def _row(cache: Any, i: int, where: torch.Tensor) -> Layers:
    return [(layer.keys[i][:, where], layer.values[i][:, where]) for layer in cache.layers]
