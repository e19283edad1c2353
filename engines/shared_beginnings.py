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
    """Return beginnings of several prompts each, chosen so that they save most; none if that would not pay.

    Each leaves at least the last token of its prompts to compute. A batch is a rectangle: one prompt that shares
    nothing makes it as wide as before, which counts here.
    """
    rows = sorted(map(tuple, prompts))
    if max(map(len, rows)) <= _LEAST:
        return []
    found = _most_saving(rows)
    return found if found and _positions(rows, found) <= _PAYS_BELOW * len(rows) * max(map(len, rows)) else []


def _most_saving(rows: list[Tokens]) -> list[Tokens]:
    """Cut sorted rows into runs; a run of n rows that begin with the same t tokens saves (n - 1) t of them."""
    common = [min(common_length(a, b), len(a) - 1, len(b) - 1) for a, b in pairwise(rows)]
    best: list[tuple[int, list[Tokens]]] = [(0, [])]  # of the first rows, by how many they are
    for end in range(1, len(rows) + 1):
        most, shared = best[-1], len(rows[end - 1])
        for start in range(end - 2, -1, -1):
            shared = min(shared, common[start])
            saved = best[start][0] + (end - start - 1) * shared
            if shared >= _LEAST and saved > most[0]:
                most = saved, [*best[start][1], rows[start][:shared]]
        best.append(most)
    return best[-1][1]


def common_length(a: Tokens, b: Tokens) -> int:
    """Return with how many equal tokens both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _positions(rows: list[Tokens], beginnings: list[Tokens]) -> int:
    """Return the positions to compute, padding included: those of the beginnings, then those of the rest."""
    rests = [len(row) - max((len(b) for b in beginnings if row[: len(b)] == b), default=0) for row in rows]
    return len(beginnings) * max(map(len, beginnings)) + len(rows) * max(rests)
