"""What the prompts of one call begin with in common, so that it is computed once instead of for each.

A group of GRPO samples one prompt many times, and a prompted user reads one task for all dialogues about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

Tokens = tuple[int, ...]

_LEAST = 64
"""Fewest tokens of a beginning; for less, a pass of its own costs as much as it saves."""
_PAYS_BELOW = 0.75
"""Beginnings are worth computing if at most this share of the positions is left to compute."""


def shared_beginnings(prompts: Sequence[Sequence[int]]) -> list[Tokens]:
    """Return beginnings of prompts, to be computed first; none if that would not pay.

    Both batches are rectangles, that of the beginnings and that of what is left of the prompts. So each prompt gets as
    much of a beginning as leaves it no wider than the others, and the width is the one with the fewest positions in
    both. At least the last token of each prompt is left.
    """
    rows = sorted(map(tuple, prompts))
    common = [common_length(a, b) for a, b in pairwise(rows)]
    longest = max(map(len, rows))
    fewest, found = _PAYS_BELOW * len(rows) * longest, list[Tokens]()
    for left in range(1, longest - _LEAST + 1):
        if len(rows) * left >= fewest:
            break
        cut = _cut(rows, common, left)
        positions = len(cut) * (longest - left) + len(rows) * left
        if positions < fewest:
            fewest, found = positions, cut
    return found


def _cut(rows: list[Tokens], common: list[int], left: int) -> list[Tokens]:
    """Return the fewest beginnings after which no more than ``left`` tokens of each sorted row are left."""
    runs: list[tuple[Tokens, int, int]] = []  # its first row, what can be shared, what must be
    link = 0
    for row, before in zip(rows, (0, *common), strict=True):
        link = min(link, before)
        if (need := len(row) - left) <= 0:
            continue
        first, most, least = runs[-1] if runs else (row, 0, 0)
        shared, needed = min(most, link, len(row) - 1), max(least, need)
        if shared >= needed:
            runs[-1] = first, shared, needed
        else:
            runs.append((row, len(row) - 1, need))
        link = len(row)
    return [first[:needed] for first, _, needed in runs]


def common_length(a: Tokens, b: Tokens) -> int:
    """Return with how many equal tokens both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
