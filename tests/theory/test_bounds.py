"""The bounds: never broken, attained, and quadratic or linear as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from duologue.analysis.theory import (
    Pairing,
    bound,
    coupling_bound,
    family,
    gap,
    gap_over_bound,
    history_shift,
    linear_bound,
    quadratic_bound,
    random_pairings,
    reward_ranges,
    shift,
    worst_ratios,
)
from duologue.analysis.theory.families import SHIFTS, Size
from duologue.envs import TabularDialogue

from .conftest import random_pairing

EDGE = 1 + 1e-12
LONG = (32, 64, 128, 256, 512)


def slope(shifted: str, *, final_only: bool, rate: float = 1e-5) -> float:
    gaps = [float(gap(*family(h, rate, shifted, final_only=final_only))) for h in LONG]
    return float(np.polyfit(np.log(LONG), np.log(gaps), 1)[0])


def test_twelve_thousand_random_dialogues_keep_the_bounds() -> None:
    for ratios in worst_ratios(2_000, seed=1).values():
        assert len(ratios) == 12_000
        assert ratios.max() <= EDGE
        assert ratios.max() > 0.9  # and they are not kept by far, so that a bound twice too small would break


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_bounds_hold_at_any_size(states: int, replies: int, horizon: int, seed: int) -> None:
    first, second = random_pairings(Size(states, replies, horizon), 12, np.random.default_rng(seed))
    assert gap_over_bound(first, second).max() <= EDGE
    assert gap_over_bound(second, first).max() <= EDGE
    between = shift(first, second)
    assert (between.contexts <= coupling_bound(between) + 1e-12).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_coupling_inequality_over_histories(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = random_pairing(rng), random_pairing(rng)
    between, whole = shift(first, second), history_shift(first, second)
    assert (whole <= coupling_bound(between) + 1e-12).all()
    steps = between.policies[:-1] + between.users[1:]
    assert (np.diff(whole) <= steps + 1e-12).all()  # Δ_{t+1} ≤ Δ_t + ε_t + δ_{t+1}
    assert whole[0] == pytest.approx(between.users[0])


def test_one_bound_is_the_quadratic_and_the_linear_one(rng: np.random.Generator) -> None:
    first, second = random_pairing(rng, 3, 2, 6), random_pairing(rng, 3, 2, 6)
    between = shift(first, second)
    every, final = np.full(6, 2.0), np.eye(6)[-1] * 2.0
    assert_allclose(bound(between, every), quadratic_bound(between, 2.0))
    assert_allclose(bound(between, final), linear_bound(between, 2.0))
    assert_allclose(reward_ranges(first.dialogue.final_only())[:-1], 0.0)


@pytest.mark.parametrize("shifted", SHIFTS)
def test_the_family_attains_the_quadratic_rate(shifted: str) -> None:
    assert slope(shifted, final_only=False) == pytest.approx(2.0, abs=0.05)
    assert slope(shifted, final_only=True) <= 1.05
    for final_only in (False, True):
        ratio = float(gap_over_bound(*family(32, 1e-5, shifted, final_only=final_only)))
        assert 0.999 < ratio <= EDGE


def test_with_a_large_rate_the_gap_saturates_below_its_bound() -> None:
    assert slope("policy", final_only=False, rate=0.1) < 1.3
    first, second = family(512, 0.1, "policy")
    assert float(gap(first, second)) < 512 < float(quadratic_bound(shift(first, second)))


@pytest.mark.parametrize("horizon", [1, 2, 5, 30])
def test_the_family_in_closed_form(horizon: int) -> None:
    """On track at turn t with probability (1 - ε)^(t + 1), twice that power if both slip."""
    rate, powers = 0.1, np.arange(1, horizon + 1)
    for shifted, times in (("policy", 1), ("user", 1), ("both", 2)):
        pair = family(horizon, rate, shifted)
        assert float(gap(*pair)) == pytest.approx((1 - (1 - rate) ** (times * powers)).sum())
        assert float(quadratic_bound(shift(*pair))) == pytest.approx(times * rate * horizon * (horizon + 1) / 2)
        final = family(horizon, rate, shifted, final_only=True)
        assert float(gap(*final)) == pytest.approx(1 - (1 - rate) ** (times * horizon))
        assert float(linear_bound(shift(*final))) == pytest.approx(times * rate * horizon)


def test_rewards_of_both_signs_need_the_factor_two() -> None:
    first, second = family(16, 1e-6, "policy")
    signed = [TabularDialogue(p.dialogue.opening, p.dialogue.user, 2 * p.dialogue.rewards - 1) for p in (first, second)]
    pair = Pairing(signed[0], first.policy), Pairing(signed[1], second.policy)
    between = shift(*pair)
    assert float(gap(*pair)) > 1.99 * float(quadratic_bound(between, 1.0))
    assert float(gap(*pair)) <= float(quadratic_bound(between, 2.0))
    assert reward_ranges(signed[0]).tolist() == [2.0] * 16


def test_weights_that_count_from_one_would_be_too_small() -> None:
    """With H - i for i = 1, …, H the last reply would weigh nothing, but with one turn it is all there is."""
    first, second = family(1, 0.25, "policy")
    assert float(gap(first, second)) == float(quadratic_bound(shift(first, second))) == 0.25


def test_early_shifts_cost_most(rng: np.random.Generator) -> None:
    first = family(8, 0.0, "policy")[0]
    gaps = []
    for turn in range(8):
        policy = np.array(first.policy)
        policy[turn, 0] = [0.5, 0.5]
        gaps.append(float(gap(first, first.with_policy(policy))))
    assert gaps == [0.5 * (8 - turn) for turn in range(8)]


def test_random_dialogues_cover_what_they_say() -> None:
    first, second = random_pairings(Size(3, 2, 4), 600, np.random.default_rng(0))
    between = shift(first, second)
    assert (between.policies[1::3] == 0).all()
    assert (between.users[0::3] == 0).all()
    assert (between.policies[2::3].sum(axis=-1) > 0).all()
    assert (reward_ranges(first.dialogue)[0::2] <= 1).all()
    assert reward_ranges(first.dialogue)[1::2].max() == 2
    assert_allclose(first.dialogue.rewards, second.dialogue.rewards)
