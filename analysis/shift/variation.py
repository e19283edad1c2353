"""Total variation between two samples of labels: corrected for its upward bias, with interval and permutation test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.errors import DuologueError
from duologue.trainers.stats import Estimate

RESAMPLES = 1_000
"""Permutations, and as many bootstrap resamples."""
_DRAWS_AT_ONCE = 1_000_000
_Floats = NDArray[np.float64]
Rows = Sequence[Sequence[str]]
"""Labels of dialogues: one row a dialogue, one label a turn."""


@dataclass(frozen=True, slots=True)
class TotalVariation:
    """A total variation of labels, which is a lower bound of that of whatever the labels were read off."""

    estimate: Estimate
    """Corrected value with its 95 % interval; ``n`` counts the dialogues of both sides."""
    plug_in: float
    """Total variation of the two empirical distributions. Too high: two samples of one source differ too."""
    null: float
    """Mean plug-in value if the dialogues of both sides are exchanged at random."""
    p: float
    """Permutation test of "no difference"."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; NaN becomes null."""
        rest = {"plug_in": self.plug_in, "null": self.null, "p": self.p}
        return {**self.estimate.to_json(), **{k: None if math.isnan(x) else x for k, x in rest.items()}}


@dataclass(frozen=True, slots=True)
class VariationCurve:
    """Total variation turn by turn."""

    turns: tuple[TotalVariation, ...]
    p: float
    """Permutation test of "no difference at any turn": its statistic is the sum over turns."""


def total_variation(a: Sequence[str], b: Sequence[str], *, paired: bool = False, seed: int = 0) -> TotalVariation:
    """Return the total variation between two samples of labels (see ``variation_curve``)."""
    return variation_curve([[x] for x in a], [[x] for x in b], paired=paired, seed=seed).turns[0]


def variation_curve(a: Rows, b: Rows, *, paired: bool = False, seed: int = 0) -> VariationCurve:
    """Return the total variation of each turn's labels.

    The plug-in value T is biased upward by about the null value N where the sides are equal, and hardly where they are
    far apart. The estimate is ``sqrt(max(0, T^2 - N^2))``: |x + noise| grows about like that. In simulations
    with 200 dialogues a side its error had a mean below 0.03 with 10 labels, 0.05 with 25. The interval takes the
    bootstrap's centred 95 % limits of T through the same formula (coverage there: 92 to 100 %).

    Args:
        a: labels of one side: all rows have the same number of turns.
        b: labels of the other side.
        paired: row i of both sides had the same task, user seed or history; then the test swaps within pairs, and the
            bootstrap resamples pairs. Else whole dialogues are exchanged, and each side is resampled by itself.
        seed: of permutations and resamples, which have a generator of their own.

    Raises:
        DuologueError: if a side is empty, rows differ in length, or pairs are of different numbers.
    """
    _check(a, b, paired)
    onehot, starts = _onehot([*a, *b])
    sizes, rng = (len(a), len(b)), np.random.default_rng(seed)

    def values(weights: _Floats) -> _Floats:
        # Rounded, so that equal samples differ by nothing at all, and ties of the test are ties.
        return np.asarray(np.round(np.add.reduceat(np.abs(weights @ onehot), starts, axis=1) / 2, 12))

    plain = np.concatenate([np.full(sizes[0], 1 / sizes[0]), np.full(sizes[1], -1 / sizes[1])])
    plug_in = values(plain[None])[0]
    null = np.concatenate([values(w) for w in _blocks(_swaps if paired else _exchanges, sizes, rng)])
    draws = np.concatenate([values(w) for w in _blocks(_pair_draws if paired else _draws, sizes, rng)])
    tests = _p_values(null, plug_in)
    spread = np.quantile(draws - draws.mean(axis=0), [0.025, 0.975], axis=0)
    found = tuple(
        _estimated(plug_in[t], null[:, t].mean(), spread[:, t], tests[t], sum(sizes)) for t in range(len(starts))
    )
    return VariationCurve(found, float(_p_values(null.sum(axis=1), plug_in.sum())))


def _check(a: Rows, b: Rows, paired: bool) -> None:
    if not a or not b:
        raise DuologueError("One side has no dialogues. Give at least one of each.")
    if len({len(row) for row in (*a, *b)}) != 1 or not a[0]:
        raise DuologueError("Rows of labels differ in length, or are empty. Give one label a turn for every dialogue.")
    if paired and len(a) != len(b):
        raise DuologueError(f"{len(a)} and {len(b)} dialogues make no pairs. Give as many of each, or paired=False.")


def _onehot(rows: Rows) -> tuple[_Floats, NDArray[np.intp]]:
    """Return a column per turn and label, and where each turn's columns start."""
    columns, starts, width = [], [], 0
    for labels in zip(*rows, strict=True):
        names = sorted(set(labels))
        columns.append(np.equal.outer(np.asarray(labels, dtype=object), np.asarray(names, dtype=object)).astype(float))
        starts.append(width)
        width += len(names)
    return np.concatenate(columns, axis=1), np.asarray(starts, dtype=np.intp)


def _blocks(
    draw: Callable[[tuple[int, int], int, np.random.Generator], _Floats],
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> Iterator[_Floats]:
    """Yield weights of ``RESAMPLES`` draws, of shape (draws, dialogues), in blocks that bound the memory."""
    block = max(1, _DRAWS_AT_ONCE // sum(sizes))
    for start in range(0, RESAMPLES, block):
        yield draw(sizes, min(block, RESAMPLES - start), rng)


def _exchanges(sizes: tuple[int, int], times: int, rng: np.random.Generator) -> _Floats:
    one = np.concatenate([np.full(sizes[0], 1 / sizes[0]), np.full(sizes[1], -1 / sizes[1])])
    return rng.permuted(np.tile(one, (times, 1)), axis=1)


def _swaps(sizes: tuple[int, int], times: int, rng: np.random.Generator) -> _Floats:
    signs = rng.choice([-1.0, 1.0], size=(times, sizes[0])) / sizes[0]
    return np.concatenate([signs, -signs], axis=1)


def _draws(sizes: tuple[int, int], times: int, rng: np.random.Generator) -> _Floats:
    counts = [rng.multinomial(n, np.full(n, 1 / n), size=times) / n for n in sizes]
    return np.concatenate([counts[0], -counts[1]], axis=1)


def _pair_draws(sizes: tuple[int, int], times: int, rng: np.random.Generator) -> _Floats:
    n = sizes[0]
    counts = rng.multinomial(n, np.full(n, 1 / n), size=times) / n
    return np.concatenate([counts, -counts], axis=1)


def _p_values(null: _Floats, found: Any) -> Any:
    """Return (1 + how many permutations reach the value) / (1 + permutations)."""
    return (1 + (np.round(null, 9) >= np.round(found, 9)).sum(axis=0)) / (1 + len(null))


def _estimated(plug_in: float, null: float, spread: _Floats, p: float, n: int) -> TotalVariation:
    def corrected(value: float) -> float:
        return min(1.0, math.sqrt(max(0.0, max(0.0, value) ** 2 - null**2)))

    low, high = (corrected(plug_in + float(x)) for x in spread)
    return TotalVariation(Estimate(corrected(plug_in), low, high, n), float(plug_in), float(null), float(p))
