"""Shift against scores: rank correlation by scipy's own, points, and what the table says."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from duologue.analysis.compare.explain import explained, rank_correlation


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_correlation_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.round(rng.normal(size=(12, 2)), 1)  # with ties
    found = rank_correlation([(float(a), float(b)) for a, b in pairs])
    assert found.value == pytest.approx(spearmanr(pairs[:, 0], pairs[:, 1]).statistic)
    assert found.low <= found.value <= found.high
    assert found.n == 12


def test_its_interval_covers_independence_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    found = [rank_correlation([tuple(map(float, row)) for row in rng.normal(size=(20, 2))]) for _ in range(60)]  # type: ignore[misc]
    assert sum(e.low <= 0 <= e.high for e in found) >= 50


@pytest.mark.parametrize("pairs", [[], [(0.1, 0.2)] * 3, [(0.1, float(i)) for i in range(9)]])
def test_too_few_or_constant_points_say_nothing(pairs: list[tuple[float, float]]) -> None:
    assert math.isnan(rank_correlation(pairs).value)


def test_the_size_of_the_gap_counts_and_what_is_unknown_does_not() -> None:
    points: list[dict[str, Any]] = [
        {"shift": s, "gap": {"value": g}, "regret": None} for s, g in ((0.1, -0.1), (0.2, 0.2), (0.3, -0.3))
    ]
    points += [
        {"shift": 0.4, "gap": {"value": 0.4}, "regret": 0.1},
        {"shift": 0.5, "gap": {"value": None}, "regret": 0.2},
    ]
    found = explained(points)["rank_correlation"]
    assert (found["gap"]["value"], found["gap"]["n"]) == (pytest.approx(1.0), 4)
    assert (found["regret"]["value"], found["regret"]["n"]) == (None, 2)
