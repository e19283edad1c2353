"""The dynamic program against numbers by hand, and against sums over all histories."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from duologue.analysis.theory import (
    Pairing,
    action_values,
    contexts,
    expected_return,
    gap,
    history_distribution,
    history_shift,
    quadratic_bound,
    shift,
    total_variation,
)
from duologue.analysis.theory.exact import said
from duologue.envs import TabularDialogue, losing_track
from duologue.errors import DuologueError

from .conftest import apart, brute_return, histories, probability, random_pairing

RIGHT = np.array([[1.0, 0.0], [1.0, 0.0]])
SLIPS = np.array([[0.75, 0.25], [1.0, 0.0]])


def test_two_turns_by_hand() -> None:
    """ε = 1/4: J' = 3/4 + (3/4)^2 = 21/16, so the gap is 11/16; the bound is (2 + 1) / 4 = 12/16."""
    first = Pairing(losing_track(2), RIGHT)
    second = first.with_policy(SLIPS)
    assert float(expected_return(first)) == 2
    assert float(expected_return(second)) == 21 / 16
    assert contexts(second).tolist() == [[1, 0], [3 / 4, 1 / 4]]
    between = shift(first, second)
    assert between.policies.tolist() == [1 / 4, 1 / 4]
    assert between.users.tolist() == [0, 0]
    assert between.contexts.tolist() == [0, 1 / 4]
    assert (float(gap(first, second)), float(quadratic_bound(between))) == (11 / 16, 12 / 16)


def test_both_shifts_by_hand() -> None:
    """δ = 1/3 too, at the opening as well: J' = (3/4)(2/3) + ((3/4)(2/3))^2 = 3/4; the bound is 3 (1/4 + 1/3) = 7/4."""
    first = Pairing(losing_track(2), RIGHT)
    user = np.array(first.dialogue.user)
    user[0, 0] = [2 / 3, 1 / 3]
    second = Pairing(first.dialogue.with_user(user, [2 / 3, 1 / 3]), SLIPS)
    between = shift(first, second)
    assert_allclose(between.users, [1 / 3, 1 / 3])
    assert_allclose(float(expected_return(second)), 3 / 4)
    assert_allclose(float(gap(first, second)), 5 / 4)
    assert_allclose(float(quadratic_bound(between)), 7 / 4)


def test_expectations_are_over_the_first_pairings_histories() -> None:
    """Turned round, ε_1 = 3/4 · 1/4 = 3/16: only three quarters of the slipping one's dialogues are on track."""
    first = Pairing(losing_track(2), RIGHT)
    second = first.with_policy(SLIPS)
    assert shift(second, first).policies.tolist() == [1 / 4, 3 / 16]


@pytest.mark.parametrize("seed", range(5))
def test_the_return_is_that_of_all_histories(seed: int) -> None:
    pairing = random_pairing(np.random.default_rng(seed), 2, 2, 4)
    expected = float(brute_return(pairing))
    assert float(expected_return(pairing)) == pytest.approx(expected, abs=1e-12)
    opening = (pairing.dialogue.opening[:, None] * (pairing.policy[0] * action_values(pairing)[0])).sum()
    assert opening == pytest.approx(expected, abs=1e-12)


def test_contexts_and_histories_are_those_of_all_histories(rng: np.random.Generator) -> None:
    pairing = random_pairing(rng, 3, 2, 3)
    for turn in range(3):
        found = history_distribution(pairing, turn)
        assert_allclose(found, [float(probability(pairing, h)) for h in histories(pairing, turn)], atol=1e-14)
        assert_allclose(found.reshape(-1, 3).sum(axis=0), contexts(pairing)[turn], atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_shifts_are_expectations_over_all_histories(seed: int) -> None:
    """ε and δ by summing over whole histories are the numbers that states alone give."""
    rng = np.random.default_rng(seed)
    first, second = random_pairing(rng, 2, 2, 3), random_pairing(rng, 2, 2, 3)
    between = shift(first, second)
    for t in range(3):
        policies, users = Fraction(0), Fraction(0)
        for h in histories(first, t):
            p = probability(first, h)
            policies += p * apart(first.policy[t, h[-1]], second.policy[t, h[-1]])
            for reply in range(2):
                said = p * Fraction(float(first.policy[t, h[-1], reply]))
                users += said * apart(first.dialogue.user[h[-1], reply], second.dialogue.user[h[-1], reply])
        assert between.policies[t] == pytest.approx(float(policies), abs=1e-12)
        if t < 2:
            assert between.users[t + 1] == pytest.approx(float(users), abs=1e-12)
    assert between.users[0] == pytest.approx(float(apart(first.dialogue.opening, second.dialogue.opening)))


def test_the_performance_difference_is_exact(rng: np.random.Generator) -> None:
    """J - J' = Σ_t E_first [(π - π') Q'], for another policy with the same user."""
    first = random_pairing(rng, 3, 3, 5)
    second = first.with_policy(random_pairing(rng, 3, 3, 5).policy)
    advantage = ((first.policy - second.policy) * action_values(second)).sum(axis=-1)
    difference = (contexts(first) * advantage).sum()
    assert difference == pytest.approx(float(expected_return(first) - expected_return(second)), abs=1e-12)


def test_histories_are_further_apart_than_states(rng: np.random.Generator) -> None:
    strictly = 0
    for _ in range(20):
        first, second = random_pairing(rng, 2, 2, 4), random_pairing(rng, 2, 2, 4)
        states, whole = shift(first, second).contexts, history_shift(first, second)
        assert (whole >= states - 1e-12).all()
        strictly += int((whole > states + 1e-3).any())
    assert strictly


def test_histories_that_differ_where_states_agree() -> None:
    """A user who forgets: all replies differ (Δ over histories is 1), and yet every message is as likely."""
    dialogue = TabularDialogue(np.array([0.5, 0.5]), np.full((2, 2, 2), 0.5), np.zeros((2, 2, 2)))
    first = Pairing(dialogue, RIGHT)
    second = first.with_policy(RIGHT[:, ::-1])
    assert shift(first, second).contexts.tolist() == [0, 0]
    assert history_shift(first, second).tolist() == [0, 1]


def unrolled(pairing: Pairing) -> Pairing:
    """Return the same pairing with whole histories as its states."""
    dialogue, horizon = pairing.dialogue, pairing.dialogue.horizon
    nodes = [h for t in range(horizon) for h in histories(pairing, t)]
    index = {h: i for i, h in enumerate(nodes)}
    opening, rewards = np.zeros(len(nodes)), np.zeros((horizon, len(nodes), dialogue.replies))
    user, policy = np.zeros((len(nodes), dialogue.replies, len(nodes))), np.zeros_like(rewards)
    for h, i in index.items():
        t = len(h) // 2
        opening[i] = dialogue.opening[h[0]] if t == 0 else 0.0
        policy[:, i], rewards[t, i] = pairing.policy[t, h[-1]], dialogue.rewards[t, h[-1]]
        for reply, answer in np.ndindex(dialogue.replies, dialogue.states):
            to = index.get((*h, reply, answer), i)  # after the last turn nothing follows; a row must sum to 1
            user[i, reply, to] += dialogue.user[h[-1], reply, answer]
    return Pairing(TabularDialogue(opening, user, rewards), policy)


def test_histories_as_states_give_the_theory_of_histories(rng: np.random.Generator) -> None:
    first, second = random_pairing(rng, 2, 2, 3), random_pairing(rng, 2, 2, 3)
    trees = unrolled(first), unrolled(second)
    assert_allclose(expected_return(trees[0]), expected_return(first))
    assert_allclose(shift(*trees).contexts, history_shift(first, second), atol=1e-12)
    assert_allclose(shift(*trees).policies, shift(first, second).policies, atol=1e-12)
    assert_allclose(shift(*trees).users, shift(first, second).users, atol=1e-12)


def test_a_batch_is_its_members(rng: np.random.Generator) -> None:
    members = [random_pairing(rng, 2, 3, 4) for _ in range(3)]
    stacked = TabularDialogue(
        np.stack([m.dialogue.opening for m in members]),
        np.stack([m.dialogue.user for m in members]),
        np.stack([m.dialogue.rewards for m in members]),
    )
    batch = Pairing(stacked, np.stack([m.policy for m in members]))
    assert_allclose(expected_return(batch), [expected_return(m) for m in members])
    assert_allclose(action_values(batch), [action_values(m) for m in members])
    backwards = Pairing(
        TabularDialogue(stacked.opening[::-1], stacked.user[::-1], stacked.rewards[::-1]), batch.policy[::-1]
    )
    expected = [shift(a, b) for a, b in zip(members, members[::-1], strict=True)]
    found = shift(batch, backwards)
    for name in ("policies", "users", "contexts"):
        assert_allclose(getattr(found, name), [getattr(one, name) for one in expected], atol=1e-15)


def test_said_sums_to_one_a_turn(rng: np.random.Generator) -> None:
    assert_allclose(said(random_pairing(rng)).sum(axis=(-2, -1)), 1.0)


def test_total_variation() -> None:
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert total_variation(np.array([0.5, 0.5]), np.array([0.75, 0.25])) == 0.25


def test_what_does_not_fit_is_refused(rng: np.random.Generator) -> None:
    small, large = random_pairing(rng, horizon=2), random_pairing(rng, horizon=3)
    with pytest.raises(DuologueError, match="Compare pairings of one shape"):
        shift(small, large)
    with pytest.raises(DuologueError, match="Compare pairings of one shape"):
        history_shift(small, large)
    with pytest.raises(DuologueError, match=r"policy has the shape \(2,\). Give \(2, 2, 2\)"):
        small.with_policy([1.0, 0.0])
    with pytest.raises(DuologueError, match="policy has a row that is no distribution"):
        small.with_policy([[1.0, 0.5], [1.0, 0.0]])
    with pytest.raises(DuologueError, match="Give one from 0 to 1"):
        history_distribution(small, 2)
    with pytest.raises(DuologueError, match="Take an earlier turn"):
        history_distribution(Pairing(losing_track(20), RIGHT), 19)
    batch = TabularDialogue(np.ones((3, 1)), np.ones((3, 1, 1, 1)), np.ones((3, 2, 1, 1)))
    with pytest.raises(DuologueError, match="Give one dialogue"):
        history_distribution(Pairing(batch, np.ones((3, 2, 1, 1))), 0)
