"""The finite dialogue and its environment."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import duologue.envs
from duologue.analysis.theory import Pairing, contexts
from duologue.envs import TabularDialogue, TabularDialogueEnv, losing_track
from duologue.envs.tabular import cumulated, draw
from duologue.errors import DuologueError

from .conftest import random_pairing

ONE = {"opening": [1.0], "user": [[[1.0]]], "rewards": [[[0.5]]]}


def play(env: gym.Env[int, int], replies: list[int], seed: int) -> list[Any]:
    seen = [env.reset(seed=seed)]
    return seen + [env.step(reply) for reply in replies]


def test_gymnasium_accepts_it(rng: np.random.Generator) -> None:
    check_env(gym.make("duologue.envs:TabularDialogue-v0").unwrapped)
    check_env(gym.make("TabularDialogue-v0", dialogue=random_pairing(rng, 4, 3, 5).dialogue).unwrapped)
    assert "TabularDialogue-v0" not in duologue.envs.ENV_IDS  # those speak in texts


def test_a_dialogue_by_hand() -> None:
    env = TabularDialogueEnv(losing_track(3))
    steps = play(env, [0, 1, 0], seed=0)
    assert steps[0] == (0, {"turn": 0})
    assert steps[1] == (0, 1.0, False, False, {"turn": 1})
    assert steps[2] == (1, 0.0, False, False, {"turn": 2})
    assert steps[3] == (1, 0.0, True, False, {"turn": 3})
    with pytest.raises(DuologueError, match=r"Call reset\(\) first"):
        env.step(0)


def test_the_user_is_an_argument() -> None:
    user = np.array(losing_track(2).user)
    user[0, 0] = [0.0, 1.0]
    env = gym.make("TabularDialogue-v0", dialogue=losing_track(2), user=user, opening=[1.0, 0.0])
    assert [step[0] for step in play(env, [0, 0], seed=1)] == [0, 1, 1]
    lost = TabularDialogueEnv(opening=[0.0, 1.0])
    assert lost.reset(seed=1)[0] == 1
    assert lost.dialogue.horizon == 4


def test_it_draws_from_the_distribution_that_the_theory_computes(rng: np.random.Generator) -> None:
    pairing = random_pairing(rng, 3, 2, 3)
    env, sums = TabularDialogueEnv(pairing.dialogue), cumulated(pairing.policy)
    counts, episodes = np.zeros((3, 3)), 3_000
    for seed in range(episodes):
        state, _ = env.reset(seed=seed)
        for turn in range(3):
            counts[turn, state] += 1
            state, *_ = env.step(draw(sums[turn, state], rng))
    assert abs(counts / episodes - contexts(pairing)).max() < 4 * 0.5 / np.sqrt(episodes)


def test_a_draw_never_has_probability_zero() -> None:
    sums = cumulated(np.array([0.0, 0.3, 0.0, 0.7, 0.0]))
    rng = np.random.default_rng(0)
    assert {draw(sums, rng) for _ in range(500)} == {1, 3}

    class Edge:
        def __init__(self, value: float) -> None:
            self.value = value

        def random(self) -> float:
            return self.value

    assert draw(sums, Edge(0.0)) == 1  # type: ignore[arg-type]
    assert draw(sums, Edge(np.nextafter(1.0, 0.0))) == 3  # type: ignore[arg-type]


def test_arrays_cannot_be_changed() -> None:
    opening = np.array([1.0])
    dialogue = TabularDialogue(**{**ONE, "opening": opening})  # type: ignore[arg-type]
    opening[0] = 7.0
    assert dialogue.opening.tolist() == [1.0]
    with pytest.raises(ValueError, match="read-only"):
        dialogue.rewards[0] = 1.0
    assert (dialogue.horizon, dialogue.states, dialogue.replies, dialogue.batch) == (1, 1, 1, ())


def test_final_only() -> None:
    assert losing_track(3).final_only().rewards[:, 0, 0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opening": [0.5]}, "opening has a row that is no distribution"),
        ({"opening": [0.5, 0.5]}, r"opening has the shape \(2,\). Give \(1,\)"),
        ({"user": [[[1.0]], [[1.0]]]}, r"user has the shape"),
        ({"user": [[[2.0]]]}, "user has a row"),
        ({"rewards": [[[np.nan]]]}, "rewards has a value that is not finite"),
        ({"rewards": [1.0]}, r"Give \(H, S, A\)"),
        ({"rewards": np.zeros((0, 1, 1))}, "each at least 1"),
        ({"rewards": [[[1.0], [1.0, 2.0]]]}, "rewards is no array of numbers"),
        ({"rewards": "no"}, "rewards is no array of numbers"),
    ],
)
def test_what_is_no_dialogue_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        TabularDialogue(**{**ONE, **change})


def test_what_the_environment_cannot_play_is_refused() -> None:
    batch = TabularDialogue(np.ones((2, 1)), np.ones((2, 1, 1, 1)), np.ones((2, 1, 1, 1)))
    with pytest.raises(DuologueError, match="Give one dialogue"):
        TabularDialogueEnv(batch)
    with pytest.raises(DuologueError, match="Set it to 1 or more"):
        losing_track(0)
    env = TabularDialogueEnv()
    with pytest.raises(DuologueError, match="Give none"):
        env.reset(options={"task_id": "x"})
    env.reset(seed=0)
    with pytest.raises(DuologueError, match="Give an int from 0 to 1"):
        env.step(2)


def test_a_policy_for_one_turn_is_one_for_all() -> None:
    pairing = Pairing(losing_track(3), np.eye(2))
    assert pairing.policy.shape == (3, 2, 2)
