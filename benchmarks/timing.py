"""Two ways to do the same work, timed in turn, and the ratio of their speeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

Work = Callable[[], float]
"""Does some work and returns how much, in the comparison's unit."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Speeds of ours and of the least that the same work can cost, repetition by repetition."""

    name: str
    unit: str
    """Of the work, such as ``user turns``; speeds are this per second."""
    baseline: str
    """What ours is compared with, in words."""
    ours_per_s: tuple[float, ...]
    """One speed per repetition; ``baseline_per_s`` holds those of the runs next to them."""
    baseline_per_s: tuple[float, ...]

    @property
    def shares(self) -> tuple[float, ...]:
        """Return our speed as a share of the baseline's, one per repetition: 1.0 = nothing lost."""
        return tuple(ours / bare for ours, bare in zip(self.ours_per_s, self.baseline_per_s, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with medians and every repetition."""
        return {
            "name": self.name,
            "unit": self.unit,
            "baseline": self.baseline,
            "ours_per_s": median(self.ours_per_s),
            "baseline_per_s": median(self.baseline_per_s),
            "share": median(self.shares),
            "share_range": [min(self.shares), max(self.shares)],
            "repetitions": {"ours_per_s": list(self.ours_per_s), "baseline_per_s": list(self.baseline_per_s)},
        }


def compare(name: str, unit: str, baseline: str, works: tuple[Work, Work], repetitions: int) -> Comparison:
    """Time our work and the baseline's in turn, after one untimed run of each.

    Neighbours in time share whatever else the machine is doing, so their ratio holds where single speeds do not. The
    order changes with every repetition.

    Args:
        name: of the comparison.
        unit: of what both return.
        baseline: what the second does, in words.
        works: ours and the baseline's.
        repetitions: timed runs of each.
    """
    for work in works:
        work()
    speeds: tuple[list[float], list[float]] = ([], [])
    for repetition in range(repetitions):
        for which in (0, 1) if repetition % 2 == 0 else (1, 0):
            speeds[which].append(speed(works[which]))
    return Comparison(name, unit, baseline, tuple(speeds[0]), tuple(speeds[1]))


def speed(work: Work) -> float:
    """Return work per second of wall-clock time."""
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)
