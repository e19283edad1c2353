"""Micro-batches without waste. TRL pads every micro-batch to the longest dialogue of the whole step.

Dialogues differ in length by a factor of three and more, and in a group where all rewards are equal every advantage is
0, so most of a step can be padding and rows without gradient. Neither changes the gradient; both cost time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

Batch = dict[str, torch.Tensor]

_PROMPT = ("prompt_ids", "prompt_mask")
_COMPLETION = (
    "completion_ids",
    "completion_mask",
    "tool_mask",
    "old_per_token_logps",
    "ref_per_token_logps",
    "importance_sampling_ratio",
)


def micro_batches(batch: Batch, count: int, *, skip_idle: bool) -> list[Batch]:
    """Split one step's dialogues into micro-batches of similar length, each cut to its longest row.

    Args:
        batch: tensors of shape (B, T), (B,) or (); completions padded on the right, prompts on the left.
        count: number of micro-batches, which TRL fixes. Some may hold a single idle row if there is too little work.
        skip_idle: leave out rows whose advantage is 0. Right only for losses that are normalised by
            ``num_items_in_batch`` and have no other term (no KL, no entropy bonus): then these rows add exactly 0.
    """
    rows = _rows_by_length(batch, skip_idle)
    chunks = [chunk if len(chunk) else torch.zeros(1, dtype=torch.long) for chunk in torch.tensor_split(rows, count)]
    idle = [not len(chunk) for chunk in torch.tensor_split(rows, count)]
    return [
        _without_loss(_take(batch, c)) if no_work else _take(batch, c) for c, no_work in zip(chunks, idle, strict=True)
    ]


def _rows_by_length(batch: Batch, skip_idle: bool) -> torch.Tensor:
    lengths = batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)
    order = torch.argsort(lengths, stable=True)
    if not skip_idle:
        return order
    advantages = batch["advantages"].reshape(len(order), -1)
    return order[(advantages[order] != 0).any(dim=1)]


def _take(batch: Batch, rows: torch.Tensor) -> Batch:
    taken = {name: value[rows] if value.ndim else value for name, value in batch.items() if value is not None}
    used = max(1, int(taken["completion_mask"].sum(1).max()))
    blank = int((taken["prompt_mask"].sum(0) == 0).sum())
    taken |= {name: taken[name][:, :used] for name in _present(_COMPLETION, taken)}
    taken |= {name: taken[name][:, blank:] for name in _present(_PROMPT, taken)}
    if taken["advantages"].ndim == 2:
        taken["advantages"] = taken["advantages"][:, :used]
    return taken


def _without_loss(batch: Batch) -> Batch:
    return {**batch, "advantages": torch.zeros_like(batch["advantages"])}


def _present(names: Sequence[str], batch: Batch) -> list[str]:
    return [name for name in names if name in batch]
