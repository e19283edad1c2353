"""Intervals over training seeds and the dialogues within them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.trainers.stats import Estimate, share

RESAMPLES = 4_000
_DRAWS_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """What one dialogue contributes to a mean or a rate."""

    cluster: str
    """Its task: dialogues on one task are resampled together."""
    amount: float
    count: float = 1.0
    """Chances: 1 for a mean over dialogues, the user's turns for a rate per user turn."""


@dataclass(frozen=True, slots=True)
class _Seed:
    """One training seed's clusters: sums of amounts and of counts."""

    amounts: NDArray[np.float64]
    counts: NDArray[np.float64]

    @property
    def value(self) -> float:
        return float(self.amounts.sum() / self.counts.sum())

    def resampled(self, times: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the value of so many draws of clusters with replacement; NaN where a draw had no chances."""
        block = max(1, _DRAWS_AT_ONCE // len(self.amounts))
        made = [np.empty(0)]
        for start in range(0, times, block):
            rows = rng.integers(len(self.amounts), size=(min(block, times - start), len(self.amounts)))
            with np.errstate(invalid="ignore", divide="ignore"):
                made.append(self.amounts[rows].sum(axis=1) / self.counts[rows].sum(axis=1))
        return np.concatenate(made)


def nested(seeds: Sequence[Sequence[Unit]], *, is_share: bool = False, seed: int = 0) -> Estimate:
    """Return the mean over training seeds of each seed's value, with a hierarchical bootstrap's 95 % interval.

    A resample draws training seeds with replacement, then, within each, clusters of dialogues with replacement
    (percentile interval, 4,000 resamples). With one training seed the interval knows dialogues only. With few seeds it
    is too narrow, as every bootstrap over few units is.

    Args:
        seeds: the dialogues of each training seed.
        is_share: amounts are at most their counts, as scores and leaks are. If then all are 0, or all are equal to
            their counts, so that nothing varies, the interval is Wilson's over the counts.
        seed: of the resamples.

    Returns:
        The estimate; ``n`` counts dialogues.
    """
    kept = [made for units in seeds if (made := _made(units)) is not None]
    n = sum(len(units) for units in seeds)
    if not kept:
        return Estimate(math.nan, math.nan, math.nan, n)
    value = sum(s.value for s in kept) / len(kept)
    if is_share and value in (0.0, 1.0):
        chances = round(sum(s.counts.sum() for s in kept))
        flat = share(round(value) * chances, chances)
        return Estimate(value, flat.low, flat.high, n)
    if sum(len(s.amounts) for s in kept) < 2:
        return Estimate(value, math.nan, math.nan, n)
    low, high = np.nanquantile(_resampled(kept, np.random.default_rng(seed)), [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def _made(units: Sequence[Unit]) -> _Seed | None:
    amounts: dict[str, float] = {}
    counts: dict[str, float] = {}
    for unit in units:
        amounts[unit.cluster] = amounts.get(unit.cluster, 0.0) + unit.amount
        counts[unit.cluster] = counts.get(unit.cluster, 0.0) + unit.count
    if sum(counts.values()) <= 0:
        return None
    return _Seed(np.array(list(amounts.values())), np.array(list(counts.values())))


def _resampled(seeds: Sequence[_Seed], rng: np.random.Generator) -> NDArray[np.float64]:
    drawn = rng.integers(len(seeds), size=(RESAMPLES, len(seeds)))
    total = np.zeros(RESAMPLES)
    for place in range(len(seeds)):
        for i, one in enumerate(seeds):
            rows = np.flatnonzero(drawn[:, place] == i)
            total[rows] += one.resampled(len(rows), rng)
    return total / len(seeds)
