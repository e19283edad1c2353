"""Intervals: golden values, edge cases, and whether they cover the truth as often as they say."""

import json
import math

import numpy as np
import pytest

from duologue.trainers import stats
from duologue.trainers.stats import Estimate, clustered_mean, difference, mean, ratio, score_mean, share

REPETITIONS = 600
ALLOWED = 4 * math.sqrt(0.95 * 0.05 / REPETITIONS)
"""Four standard deviations of a coverage that is 95 % in truth."""


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), Statistics in Medicine 17, table I: method 3, the score interval.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_golden_values(successes: int, n: int, low: float, high: float) -> None:
    estimate = share(successes, n)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=5e-5)
    mirrored = share(n - successes, n)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.97])
def test_wilson_covers_on_average(p: float) -> None:
    # Coverage at one p and n oscillates, so n varies as well.
    rng = np.random.default_rng(1)
    sizes = rng.integers(60, 400, size=4 * REPETITIONS)
    hits = [covers(share(int(rng.binomial(n, p)), int(n)), p) for n in sizes]
    assert abs(np.mean(hits) - 0.95) < ALLOWED


@pytest.fixture
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 1000)


@pytest.mark.usefixtures("fewer_resamples")
def test_bootstrap_covers() -> None:
    rng = np.random.default_rng(2)
    hits = [covers(mean(list(rng.normal(3.0, 2.0, size=100)), seed=i), 3.0) for i in range(REPETITIONS)]
    assert abs(np.mean(hits) - 0.945) < ALLOWED  # percentile intervals are a little short at n = 100


@pytest.mark.usefixtures("fewer_resamples")
def test_paired_difference_covers_and_is_shorter() -> None:
    rng = np.random.default_rng(3)
    hits, widths = [], []
    for i in range(REPETITIONS):
        common = rng.normal(0.0, 3.0, size=80)
        a = dict(enumerate(common + rng.normal(0.5, 1.0, size=80)))
        b = dict(enumerate(common + rng.normal(0.0, 1.0, size=80)))
        paired = difference(a, b, seed=i)
        hits.append(covers(paired, 0.5))
        widths.append(paired.high - paired.low)
    unpaired = difference(a, {key + 1000: value for key, value in b.items()})
    assert abs(np.mean(hits) - 0.94) < ALLOWED
    assert (paired.n, unpaired.n) == (80, 160)
    assert np.mean(widths) < 0.6 * (unpaired.high - unpaired.low)
    assert unpaired.value == pytest.approx(paired.value)


@pytest.mark.usefixtures("fewer_resamples")
def test_unpaired_difference_covers() -> None:
    rng = np.random.default_rng(4)

    def sample(size: int, shift: float, first_key: int) -> dict[int, float]:
        return dict(enumerate(rng.exponential(size=size) + shift, start=first_key))

    hits = [covers(difference(sample(90, 1.0, 0), sample(130, 0.0, 1000), seed=i), 1.0) for i in range(REPETITIONS)]
    assert abs(np.mean(hits) - 0.94) < ALLOWED


def test_ratio_resamples_dialogues_not_turns() -> None:
    # All of a dialogue's 20 turns leak or none does: 20 dialogues are 20 observations, not 400.
    leaks, turns = [20.0] * 5 + [0.0] * 15, [20.0] * 20
    clustered, naive = ratio(leaks, turns), share(100, 400)
    assert clustered.value == naive.value == 0.25
    assert clustered.high - clustered.low > 3 * (naive.high - naive.low)


def test_statistics_of_totals() -> None:
    units = [[1.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0.0, 2.0, 0.0]]
    halves = stats.of_totals(lambda totals: totals[:, 0] / totals[:, 1], units)
    assert halves == ratio([1.0, 3.0, 0.0], [2.0, 1.0, 2.0])
    assert halves.value == pytest.approx(4 / 5)
    assert math.isnan(stats.of_totals(lambda totals: totals[:, 0] / totals[:, 2] * 0, units).value)
    assert math.isnan(stats.of_totals(lambda totals: totals[:, 0], []).value)
    assert math.isnan(stats.of_totals(lambda totals: totals[:, 0], units[:1]).low)


def test_ratio_is_not_the_mean_of_ratios() -> None:
    assert ratio([1.0, 0.0], [1.0, 9.0]).value == pytest.approx(0.1)


def test_the_seed_decides_and_the_global_state_stays() -> None:
    values = list(np.random.default_rng(0).random(30))
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    assert mean(values, seed=1) == mean(values, seed=1)
    assert mean(values, seed=1) != mean(values, seed=2)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_blocks_give_all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(0).random(50))
    whole = mean(values)
    monkeypatch.setattr(stats, "_DRAWS_AT_ONCE", 3001)  # 60 rows at a time: the last block is shorter
    assert mean(values) == whole


def test_scores_of_0_and_1_get_wilson_and_others_the_bootstrap() -> None:
    assert score_mean([0.0, 1.0, 1.0, 0.0]) == share(2, 4)
    assert score_mean([0.0, 1.0, 0.5]) == mean([0.0, 1.0, 0.5])
    assert score_mean([0.0] * 50).high > 0.05  # zero of fifty is no proof of zero


def test_little_or_no_data() -> None:
    assert str(mean([])) == "n/a (n=0)"
    assert str(mean([0.25])) == "0.25 (n=1)"
    assert str(difference({}, {1: 0.5})) == "n/a (n=1)"
    assert math.isnan(ratio([0.0], [0.0]).value)
    assert json.dumps(mean([]).to_json()) == '{"value": null, "low": null, "high": null, "n": 0}'


def test_how_an_estimate_reads() -> None:
    assert str(Estimate(0.4349, 0.3551, 0.5049, 200)) == "0.43 [0.36, 0.50] (n=200)"


def test_impossible_counts() -> None:
    with pytest.raises(ValueError, match="3 successes of 2"):
        share(3, 2)


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def test_repeated_tasks_widen_the_interval() -> None:
    values = [0.0] * 50 + [1.0] * 50
    alone = clustered_mean(values, [f"task-{i}" for i in range(100)])
    two = clustered_mean(values, ["easy"] * 50 + ["hard"] * 50)
    assert alone.value == two.value == 0.5
    assert (two.low, two.high) == (0.0, 1.0)
    assert alone.high - alone.low < 0.25
    assert alone.n == two.n == 100


def test_small_numbers_keep_their_digits() -> None:
    assert str(Estimate(0.0052, 0.0049, 0.0055, 10)) == "0.0052 [0.0049, 0.0055] (n=10)"
