"""Means, shares and differences with their 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""
RESAMPLES = 10_000
_SMALL = 0.1
"""Below it two decimals would hide a number."""
_DRAWS_AT_ONCE = 1_000_000
_Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval. All three are NaN if there is no data; the bounds are if there is too little."""

    value: float
    low: float
    high: float
    n: int
    """Observations behind it."""

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"n/a (n={self.n})"
        digits = 4 if 0 < abs(self.value) < _SMALL else 2
        interval = "" if math.isnan(self.low) else f" [{self.low:.{digits}f}, {self.high:.{digits}f}]"
        return f"{self.value:.{digits}f}{interval} (n={self.n})"

    def to_json(self) -> dict[str, float | int | None]:
        """Return a JSON object; NaN becomes null."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {**{name: None if math.isnan(x) else x for name, x in numbers.items()}, "n": self.n}


def share(successes: int, n: int) -> Estimate:
    """Return a share with Wilson's score interval (Wilson 1927), which is honest near 0 and 1.

    Raises:
        ValueError: if not 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}. Count both over the same observations.")
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    p, z2 = successes / n, Z * Z / n
    centre = (p + z2 / 2) / (1 + z2)
    half = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n)) / (1 + z2)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Estimate(p, low, high, n)


def mean(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return a mean with the percentile bootstrap's interval (Efron 1979): 10,000 resamples, seeded, own generator."""
    return ratio(values, [1.0] * len(values), seed)


def score_mean(values: Sequence[float], seed: int = 0) -> Estimate:
    """Return the mean of scores in [0, 1]: Wilson's interval if all are 0 or 1, else the bootstrap's."""
    if all(value in (0.0, 1.0) for value in values):
        return share(int(sum(values)), len(values))
    return mean(values, seed)


def clustered_mean(values: Sequence[float], clusters: Sequence[str], seed: int = 0) -> Estimate:
    """Return a mean whose interval resamples clusters: scores on one task are not independent of each other.

    Args:
        values: one score per dialogue.
        clusters: the task of each.
        seed: of the bootstrap.
    """
    sums: dict[str, float] = {}
    counts: dict[str, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
        counts[cluster] = counts.get(cluster, 0.0) + 1.0
    pooled = ratio(list(sums.values()), list(counts.values()), seed)
    return Estimate(pooled.value, pooled.low, pooled.high, len(values))


def ratio(amounts: Sequence[float], counts: Sequence[float], seed: int = 0) -> Estimate:
    """Return sum(amounts) / sum(counts), with a bootstrap over the pairs.

    For a rate per user turn the pairs are dialogues, since turns of one dialogue are not independent.

    Args:
        amounts: what happened in each unit.
        counts: how many chances each unit had; not negative.
        seed: of the resamples.
    """
    if sum(counts) <= 0:
        return Estimate(math.nan, math.nan, math.nan, len(amounts))
    return of_totals(lambda totals: totals[:, 0] / totals[:, 1], list(zip(amounts, counts, strict=True)), seed)


def of_totals(
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], units: Sequence[Sequence[float]], seed: int = 0
) -> Estimate:
    """Return a statistic of totals over units, with a bootstrap over the units: F1 or kappa from counts per dialogue.

    Args:
        statistic: from totals, shape (N, K), to values, shape (N,). NaN where it is not defined: such resamples do not
            count.
        units: K numbers of each unit.
        seed: of the resamples.
    """
    rows = _array(units)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(statistic(rows.sum(axis=0, keepdims=True))[0]) if len(rows) else math.nan
        if len(rows) < 2 or not math.isfinite(value):
            return Estimate(value, math.nan, math.nan, len(rows))
        samples = _resampled(lambda drawn: statistic(rows[drawn].sum(axis=1)), len(rows), np.random.default_rng(seed))
    low, high = np.quantile(samples[np.isfinite(samples)], [0.025, 0.975])
    return Estimate(value, float(low), float(high), len(rows))


def difference(a: Mapping[int, float], b: Mapping[int, float], seed: int = 0) -> Estimate:
    """Return mean(a) - mean(b) with a bootstrap interval, paired where both played the same seeds.

    Args:
        a: score of each seed (``EvaluationReport.scores``).
        b: the same of the other side. If at least half of the smaller side's seeds are shared, only shared seeds count,
            and differences are resampled; else all count, and each side is resampled by itself.
        seed: of the resamples.

    Returns:
        The estimate; ``n`` is the number of pairs, or of observations on both sides.
    """
    shared = sorted(a.keys() & b.keys())
    if shared and 2 * len(shared) >= min(len(a), len(b)):
        return mean([a[key] - b[key] for key in shared], seed)
    x, y = _array(list(a.values())), _array(list(b.values()))
    n = len(x) + len(y)
    if not len(x) or not len(y):
        return Estimate(math.nan, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    samples = _resampled(lambda rows: x[rows].mean(axis=1), len(x), rng)
    samples -= _resampled(lambda rows: y[rows].mean(axis=1), len(y), rng)
    low, high = np.quantile(samples, [0.025, 0.975])
    return Estimate(float(x.mean() - y.mean()), float(low), float(high), n)


def _array(values: Sequence[float] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _resampled(
    statistic: Callable[[_Rows], NDArray[np.float64]], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the statistic of ``RESAMPLES`` draws with replacement, in blocks that bound the memory."""
    block = max(1, _DRAWS_AT_ONCE // n)
    sizes = [min(block, RESAMPLES - start) for start in range(0, RESAMPLES, block)]
    return np.concatenate([statistic(rng.integers(n, size=(size, n))) for size in sizes])
