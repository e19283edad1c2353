"""Counts per dialogue, resampled: means, distances to people, and a test that swaps speakers, all vectorised.

A measure gives a table of counts for each speaker: a row per dialogue, a column per value. Rates have the values 0 and
1. Resampling dialogues is then one product of matrices, so that cost is linear in dialogues.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duologue.trainers.stats import Estimate

Array = NDArray[np.float64]
Kind = Literal["wasserstein", "jensen-shannon"]
RESAMPLES = 2000
SWAPS = 4999
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a speaker is from people. ``share`` lies in [0, 1]; ``raw`` is in the measure's own unit.

    Their ``n`` is the number of dialogues with a chance on the side that has fewer.
    """

    raw: Estimate
    share: Estimate
    draws: Array
    """``share`` of each resample; NaN where there was nothing to compare."""


def tabulate(*samples: Sequence[Counter[float]]) -> tuple[Array, list[Array]]:
    """Return the values in order, and a table (dialogues, values) of counts for each sample."""
    values = sorted({value for sample in samples for counts in sample for value in counts}) or [0.0]
    tables = [np.array([[counts[v] for v in values] for counts in sample], dtype=float) for sample in samples]
    shaped = [table.reshape(len(sample), len(values)) for table, sample in zip(tables, samples, strict=True)]
    return np.array(values, dtype=float), shaped


@lru_cache(maxsize=16)
def draw_weights(n: int, seed: int, draws: int = RESAMPLES) -> Array:
    """Return how often each of n dialogues is drawn in each resample, shape (draws, n)."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws) if n else np.empty((draws, 0))
    weights = counts.astype(float)
    weights.flags.writeable = False  # every row of a table resamples the same dialogues
    return weights


def mean_of(values: Array, table: Array, seed: int = 0) -> Estimate:
    """Return the mean value with its 95 % interval; ``n`` counts the dialogues with a chance."""
    n = int((table.sum(axis=1) > 0).sum())
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    value = float(shares(table.sum(axis=0)) @ values)
    return interval(value, shares(draw_weights(len(table), seed) @ table) @ values, n)


def distance_of(kind: Kind, values: Array, table: Array, people: Array, seed: int = 0) -> Distance:
    """Return the distance between a speaker's values and people's.

    ``wasserstein``: the mean shift of a value (Kantorovich), in its unit; the share divides by the sum of both means,
    which for values of 0 or more is its upper bound. ``jensen-shannon``: the square root of the divergence in base 2
    (Endres & Schindelin 2003), for which both are the same. Intervals are basic bootstrap intervals, cut at 0 and 1: a
    resample is farther from the other than the sample is, and percentiles would carry that noise twice.
    """
    p, q = table.sum(axis=0), people.sum(axis=0)
    n = min(int((side.sum(axis=1) > 0).sum()) for side in (table, people))
    ours = draw_weights(len(table), seed) @ table
    theirs = draw_weights(len(people), seed + 1) @ people
    raws, parts = _distances(kind, values, ours, theirs)
    raw, part = _distances(kind, values, p[None], q[None])
    return Distance(_basic(float(raw[0]), raws, n, math.inf), _basic(float(part[0]), parts, n, 1.0), parts)


def swap_test(kind: Kind, values: Array, one: Array, other: Array, *, paired: bool, seed: int = 0) -> float:
    """Return the p-value of "both speakers are the same": dialogues change sides at random (Fisher's permutation).

    Exact whatever the distributions are, if dialogues are exchangeable.

    Args:
        kind: ``wasserstein`` compares whole distributions, ``jensen-shannon`` rates.
        values: of the tables' columns.
        one: counts of one speaker.
        other: counts of the other; if ``paired``, row by row at the same histories.
        paired: whether rows belong together, so that a row changes sides with its partner.
        seed: of the swaps.

    Returns:
        NaN if one of the speakers had no chance.
    """
    if not one.sum() or not other.sum():
        return math.nan
    left = swapped(len(one), len(other), SWAPS, paired=paired, seed=seed) @ np.concatenate([one, other])
    right = one.sum(axis=0) + other.sum(axis=0) - left
    seen = _distances(kind, values, one.sum(axis=0)[None], other.sum(axis=0)[None])[0][0]
    return p_value(float(seen), _distances(kind, values, left, right)[0])


@lru_cache(maxsize=8)
def swapped(n: int, others: int, swaps: int, *, paired: bool, seed: int) -> Array:
    """Return which dialogues are the first speaker's in each swap, shape (swaps, n + others), of 0 and 1."""
    rng = np.random.default_rng(seed)
    if paired:
        kept = rng.random((swaps, n)) < 0.5
        sides = np.concatenate([kept, ~kept], axis=1).astype(float)
    else:
        sides = rng.permuted(np.tile(np.arange(n + others) < n, (swaps, 1)), axis=1).astype(float)
    sides.flags.writeable = False
    return sides


def p_value(seen: float, found: Array) -> float:
    """Return the share of swaps that are at least as far apart, the sample itself among them."""
    found = found[np.isfinite(found)]
    return float((1 + (found >= seen - _TIE).sum()) / (1 + len(found)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979); NaN stays and does not count."""
    real = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = list(p_values), 0.0
    for rank, (p, i) in enumerate(real):
        largest = max(largest, min(1.0, p * (len(real) - rank)))
        corrected[i] = largest
    return corrected


def shares(counts: Array) -> Array:
    """Return counts as shares of their sum along the last axis; NaN where it is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def interval(value: float, draws: Array, n: int) -> Estimate:
    """Return a value with the percentiles of its resamples; no bounds with fewer than two dialogues."""
    kept = draws[np.isfinite(draws)]
    if n < 2 or not len(kept) or math.isnan(value):
        return Estimate(value, math.nan, math.nan, n)
    low, high = np.quantile(kept, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _basic(value: float, draws: Array, n: int, most: float) -> Estimate:
    plain = interval(value, draws, n)
    if math.isnan(plain.low):
        return plain
    low, high = (min(max(2 * value - bound, 0.0), most) for bound in (plain.high, plain.low))
    return Estimate(value, min(low, value), max(high, value), n)


def _distances(kind: Kind, values: Array, one: Array, other: Array) -> tuple[Array, Array]:
    """Return the distance of each pair of rows in its unit, and as a share."""
    p, q = shares(one), shares(other)
    if kind == "jensen-shannon":
        found = _jensen_shannon(p, q)
        return found, found
    moved = np.abs(np.cumsum(p - q, axis=1))[:, :-1] @ np.diff(values)
    most = p @ values + q @ values
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(most > 0, moved / most, np.where(np.isnan(most), np.nan, 0.0))
    return moved, np.minimum(share, 1.0)  # rounding may pass 1


def _jensen_shannon(p: Array, q: Array) -> Array:
    middle = (p + q) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where(p > 0, p * np.log2(p / middle), p * 0.0).sum(axis=1)
        right = np.where(q > 0, q * np.log2(q / middle), q * 0.0).sum(axis=1)
    return np.asarray(np.sqrt(np.clip((left + right) / 2, 0.0, 1.0)))
