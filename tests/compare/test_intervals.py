"""Intervals over seeds and dialogues, against cases that can be worked out by hand."""

import math

import numpy as np
import pytest

from duologue.analysis.compare.intervals import Unit, nested
from duologue.trainers.stats import share


def units(*values: float) -> list[Unit]:
    return [Unit(f"task-{i}", value) for i, value in enumerate(values)]


def test_the_value_weighs_seeds_equally() -> None:
    estimate = nested([units(1, 1, 1, 1, 0, 0), units(0.0, 1.0)])
    assert estimate.value == pytest.approx((4 / 6 + 1 / 2) / 2)
    assert estimate.n == 8


def test_seeds_without_variance_inside_leave_the_variance_between_them() -> None:
    """Two seeds, 0 and 1 within: a resample's mean is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4."""
    estimate = nested([units(*[0.0] * 50), units(*[1.0] * 50)])
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.0, 1.0)


def test_one_seed_is_the_ordinary_bootstrap() -> None:
    """400 coin flips at 1/2: the interval's half-width is 1.96 * 0.5 / 20 = 0.049."""
    estimate = nested([units(*[0.0, 1.0] * 200)])
    assert estimate.high - 0.5 == pytest.approx(0.049, abs=0.004)
    assert 0.5 - estimate.low == pytest.approx(0.049, abs=0.004)


def test_equal_seeds_narrow_the_interval_by_the_root_of_their_number() -> None:
    one = nested([units(*[0.0, 1.0] * 200)])
    four = nested([units(*[0.0, 1.0] * 200)] * 4)
    assert (one.high - one.low) / (four.high - four.low) == pytest.approx(2.0, rel=0.12)


def test_variance_between_seeds_widens_it() -> None:
    apart = nested([units(*[0.0] * 40, *[1.0] * 60), units(*[0.0] * 10, *[1.0] * 90)])
    alike = nested([units(*[0.0] * 25, *[1.0] * 75)] * 2)
    assert apart.value == alike.value
    assert apart.high - apart.low > 2 * (alike.high - alike.low)


def test_dialogues_on_one_task_are_drawn_together() -> None:
    """Ten tasks with ten equal dialogues each know as much as ten dialogues."""
    repeated = nested([[Unit(f"task-{i}", float(i % 2)) for i in range(10) for _ in range(10)]])
    once = nested([units(*[float(i % 2) for i in range(10)])])
    assert (repeated.low, repeated.high) == (once.low, once.high)
    assert (repeated.n, once.n) == (100, 10)


def test_a_rate_divides_by_its_chances() -> None:
    estimate = nested([[Unit("a", 1, 2), Unit("b", 0, 6)]], is_share=True)
    assert estimate.value == 1 / 8


def test_shares_of_0_and_1_have_wilsons_interval() -> None:
    none = nested([units(0, 0, 0), units(0, 0)], is_share=True)
    assert (none.value, none.low, none.high) == (0.0, 0.0, share(0, 5).high)
    every = nested([[Unit("a", 3, 3)]], is_share=True)
    assert (every.value, every.low, every.high) == (1.0, share(3, 3).low, 1.0)


def test_differences_that_are_all_0_have_no_width() -> None:
    estimate = nested([units(0, 0, 0)])
    assert (estimate.value, estimate.low, estimate.high) == (0.0, 0.0, 0.0)


def test_too_little_data_has_no_interval() -> None:
    assert math.isnan(nested([]).value)
    assert math.isnan(nested([[], []]).value)
    single = nested([units(0.3)])
    assert single.value == 0.3
    assert math.isnan(single.low)


def test_a_seed_without_scored_dialogues_is_left_out() -> None:
    assert nested([units(0.0, 1.0), []]).value == 0.5


def test_resamples_repeat_and_leave_the_global_generator_alone() -> None:
    before = str(np.random.get_state())
    first, second = (nested([units(*np.linspace(0, 1, 30)), units(0.1, 0.9)]) for _ in range(2))
    assert first == second
    assert str(np.random.get_state()) == before


def test_it_covers_as_often_as_it_says() -> None:
    """120 experiments of 12 seeds that vary, 30 dialogues each: the truth is inside about 95 % of the time."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(120):
        rates = rng.normal(0.5, 0.1, size=12).clip(0, 1)
        found = nested([units(*rng.binomial(1, rate, size=30).astype(float)) for rate in rates])
        inside += found.low <= 0.5 <= found.high
    assert inside / 120 > 0.88
