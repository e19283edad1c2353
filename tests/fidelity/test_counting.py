"""Means, distances and the swap test: against other implementations, on known distributions, and under the null."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from duologue.analysis.fidelity.counting import Array, distance_of, draw_weights, holm, mean_of, swap_test, tabulate
from duologue.trainers.stats import Estimate

BINARY = np.array([0.0, 1.0])
NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=20)


def few_draws(n: int, seed: int) -> Array:
    return draw_weights(n, seed, 300)


def rates(rng: np.random.Generator, dialogues: int, rate: float, spread: float = 2.0) -> Array:
    """Counts of 0 and 1 in dialogues of 1 to 8 turns; each dialogue has a rate of its own around ``rate``."""
    turns = rng.integers(1, 9, size=dialogues)
    hits = rng.binomial(turns, rng.beta(spread * rate, spread * (1 - rate), size=dialogues))
    return np.stack([turns - hits, hits], axis=1).astype(float)


def lengths(rng: np.random.Generator, dialogues: int, mean: float) -> list[Counter[float]]:
    """Turns of Poisson length; dialogues differ."""
    return [
        Counter(float(x) for x in rng.poisson(mean * rng.gamma(4, 0.25), size=rng.integers(1, 9)))
        for _ in range(dialogues)
    ]


@given(NUMBERS, NUMBERS)
@example([0], [0, 0, 1])  # whose share would pass 1 by rounding
def test_wasserstein_is_scipys(a: list[int], b: list[int]) -> None:
    values, (x, y) = tabulate([Counter(map(float, a))], [Counter(map(float, b))])
    found = distance_of("wasserstein", values, x, y)
    assert found.raw.value == pytest.approx(wasserstein_distance(a, b), abs=1e-9)
    assert 0 <= found.share.value <= 1
    assert found.share.value == pytest.approx(found.raw.value / max(float(np.mean(a) + np.mean(b)), 1e-9), abs=1e-9)


@given(st.tuples(st.integers(0, 9), st.integers(1, 9)), st.tuples(st.integers(0, 9), st.integers(1, 9)))
def test_jensen_shannon_is_scipys(a: tuple[int, int], b: tuple[int, int]) -> None:
    found = distance_of("jensen-shannon", BINARY, np.array([a], float), np.array([b], float))
    assert found.share.value == pytest.approx(jensenshannon(a, b, base=2), abs=1e-6)
    assert found.raw == found.share


def test_opposite_speakers_are_as_far_as_can_be() -> None:
    never, always = np.array([[4.0, 0.0]] * 6), np.array([[0.0, 4.0]] * 6)
    assert distance_of("jensen-shannon", BINARY, never, always).share == Estimate(1.0, 1.0, 1.0, 6)
    assert swap_test("jensen-shannon", BINARY, never, always, paired=True) == pytest.approx(2 / 64, abs=0.01)


def test_without_a_chance_there_is_no_number() -> None:
    values, (none, some) = tabulate([Counter()], [Counter({1.0: 2})])
    assert math.isnan(mean_of(values, none).value)
    assert math.isnan(distance_of("jensen-shannon", values, none, some).share.value)
    assert math.isnan(swap_test("wasserstein", values, none, some, paired=False))
    values, (none, some) = tabulate([Counter()], [Counter()])
    assert math.isnan(distance_of("jensen-shannon", values, none, some).share.value)
    assert math.isnan(distance_of("wasserstein", values, none, some).share.value)


def test_holm_by_hand() -> None:
    assert holm([0.01, math.nan, 0.04, 0.03])[:1] == [pytest.approx(0.03)]
    assert holm([0.01, 0.04, 0.03])[1:] == [pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_known_rates_are_covered_at_the_nominal_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.analysis.fidelity.counting.draw_weights", few_draws)
    rng = np.random.default_rng(1)
    found = [mean_of(BINARY, rates(rng, 60, 0.3), seed) for seed in range(300)]
    assert 0.90 <= np.mean([e.low <= 0.3 <= e.high for e in found]) <= 0.98
    assert np.mean([e.value for e in found]) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
def test_known_distances_are_covered(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.analysis.fidelity.counting.draw_weights", few_draws)
    rng = np.random.default_rng(2)
    truth = jensenshannon([0.7, 0.3], [1 - rate, rate], base=2)
    found = [
        distance_of("jensen-shannon", BINARY, rates(rng, 100, rate), rates(rng, 100, 0.3), seed).share
        for seed in range(150)
    ]
    assert np.mean([e.low <= truth <= e.high for e in found]) >= 0.90
    assert np.median([e.value for e in found]) == pytest.approx(truth, abs=0.05)


def test_a_known_shift_of_lengths_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.analysis.fidelity.counting.draw_weights", few_draws)
    rng = np.random.default_rng(3)
    found = []
    for seed in range(100):
        values, (a, b) = tabulate(lengths(rng, 150, 12.0), lengths(rng, 150, 8.0))
        found.append(distance_of("wasserstein", values, a, b, seed).raw)
    assert np.mean([e.value for e in found]) == pytest.approx(4.0, abs=0.3)
    assert np.mean([e.low <= 4.0 <= e.high for e in found]) >= 0.88


def false_alarms(p_values: list[float]) -> float:
    return float(np.mean([p < 0.05 for p in p_values]))


@pytest.mark.parametrize("paired", [True, False])
def test_the_same_rates_alarm_at_the_nominal_rate(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.analysis.fidelity.counting.SWAPS", 199)
    rng = np.random.default_rng(4)
    p = [
        swap_test("jensen-shannon", BINARY, rates(rng, 25, 0.2), rates(rng, 25, 0.2), paired=paired, seed=i)
        for i in range(600)
    ]
    assert 0.02 <= false_alarms(p) <= 0.08


@pytest.mark.parametrize("paired", [True, False])
def test_the_same_lengths_alarm_at_the_nominal_rate(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duologue.analysis.fidelity.counting.SWAPS", 199)
    rng, p = np.random.default_rng(5), []
    for i in range(600):
        values, (a, b) = tabulate(lengths(rng, 25, 8.0), lengths(rng, 25, 8.0))
        p.append(swap_test("wasserstein", values, a, b, paired=paired, seed=i))
    assert 0.02 <= false_alarms(p) <= 0.08


def test_other_rates_are_found() -> None:
    rng = np.random.default_rng(6)
    p = [swap_test("jensen-shannon", BINARY, rates(rng, 60, 0.2), rates(rng, 60, 0.5), paired=False) for _ in range(20)]
    assert false_alarms(p) >= 0.95
