"""Environments that know nothing of duologue, in rollouts and in training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from duologue.envs.foreign import ForeignVectorEnv, foreign_vector_env
from duologue.errors import DuologueError
from duologue.trainers import FunctionAgent, Rollout, Start
from duologue.types import StopReason


class HigherLower(gym.Env[str, str]):
    """Guess a number from 1 to 8: 0.1 for each guess that is a number, 1 for the right one; "boom" raises."""

    observation_space = action_space = gym.spaces.Text(200)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.number, self.guesses = int(self.np_random.integers(1, 9)), 0
        return f"Guess a number from 1 to 8 ({self.number % 2}).", {"acts": "foreign", "stop_reason": "nonsense"}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.guesses += 1
        if action == "boom":
            raise RuntimeError("wires crossed")
        if not action.isdecimal():
            reward = float("nan") if action == "nan" else 0.0
            return "That is no number.", reward, False, self.guesses == 4, {}
        hint = "right" if int(action) == self.number else "too high" if int(action) > self.number else "too low"
        return hint, 0.1 + (hint == "right"), hint == "right", self.guesses == 4, {"error": "foreign"}


def bisect(messages: Any) -> str:
    low, high, guess = 1, 8, 0
    for message in messages:
        if message["role"] == "assistant":
            guess = int(message["content"])
        elif message["content"] == "too low":
            low = guess + 1
        elif message["content"] == "too high":
            high = guess - 1
    return str((low + high) // 2)


def play(make: Callable[[], Any], agent: Callable[[Any], str], seeds: range, slots: int = 2) -> list[Any]:
    return Rollout(foreign_vector_env(make, slots), FunctionAgent(agent, "test")).play([Start(s) for s in seeds])


def test_rewards_of_all_steps_add_up() -> None:
    episodes = play(HigherLower, bisect, range(8))
    for episode in episodes:
        assert episode.stop_reason is StopReason.ENV_TERMINATED
        assert episode.reward == pytest.approx(1 + 0.1 * episode.n_turns)
        assert episode.messages[-1] == {"role": "user", "content": "right"}
    assert len({episode.n_turns for episode in episodes}) > 1


def test_slots_change_nothing() -> None:
    runs = [[(e.messages, e.reward) for e in play(HigherLower, bisect, range(6), slots)] for slots in (1, 2, 6)]
    assert runs[0] == runs[1] == runs[2]


def test_it_is_the_environment_alone() -> None:
    env, alone = foreign_vector_env(HigherLower, 3), HigherLower()
    texts, _ = env.reset(seed=[5, 6, 7])
    for i, seed in enumerate((5, 6, 7)):
        assert alone.reset(seed=seed)[0] == texts[i]
        assert alone.number == env._envs[i].number


class OldNumPy(HigherLower):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        return f"{super().reset(seed=seed)[0]} {np.random.RandomState(seed).randint(99)}", {}


def test_seeds_fit_the_old_generators_of_numpy() -> None:
    episodes = Rollout(foreign_vector_env(OldNumPy, 1), FunctionAgent(bisect)).play([Start(2**62 + 5), Start(5)])
    assert episodes[0].messages == episodes[1].messages
    assert episodes[0].reward is not None


def test_a_limit_of_the_environment_truncates() -> None:
    [episode] = play(HigherLower, lambda _: "hm", range(1), 1)
    assert episode.stop_reason is StopReason.ENV_TRUNCATED
    assert (episode.reward, episode.n_turns, episode.error) == (0.0, 4, None)


@pytest.mark.parametrize(("action", "message"), [("boom", "wires crossed"), ("nan", "the reward is nan")])
def test_an_environment_that_raises_is_not_scored_and_the_others_go_on(action: str, message: str) -> None:
    def agent(messages: Any) -> str:
        return action if "(0)" in messages[0]["content"] else bisect(messages)

    episodes = play(HigherLower, agent, range(8))
    broken = [e for e in episodes if e.reward is None]
    assert 0 < len(broken) < 8
    assert {e.stop_reason for e in broken} == {StopReason.SIMULATOR_ERROR}
    assert all(message in str(e.error) and str(e.error).endswith("go in and out.") for e in broken)
    assert all(e.reward > 1 for e in episodes if e not in broken)


class Stillborn(HigherLower):
    made = 0

    def __init__(self, opening: object) -> None:
        type(self).made += 1
        self.opening = opening

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.opening is None:
            raise OSError("no disk")
        return self.opening, {}


@pytest.mark.parametrize("opening", [None, "", 7])
def test_a_reset_that_fails_ends_its_episode_and_makes_the_slot_anew(opening: object) -> None:
    Stillborn.made = 0
    episodes = play(lambda: Stillborn(opening), bisect, range(3), 1)
    assert [e.stop_reason for e in episodes] == [StopReason.SIMULATOR_ERROR] * 3
    assert all(e.reward is None and e.error for e in episodes)
    assert Stillborn.made == 4


def test_cut_keeps_what_was_rewarded() -> None:
    env = foreign_vector_env(HigherLower, 2)
    env.reset(seed=[1, 2])
    texts, rewards, *_ = env.step(["9", "9"])
    assert texts == ("too high", "too high")
    assert rewards.tolist() == pytest.approx([0.1, 0.1])
    texts, rewards, terminated, truncated, infos = env.cut(np.array([True, False]), StopReason.TOKEN_LIMIT)
    assert texts == ("", "too high")
    assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == ([0, 0], [False, False], [True, False])
    assert (infos["stop_reason"][0], infos["scored"].tolist()) == ("token_limit", [True, False])
    _, rewards, _, truncated, infos = env.step(["9", "boom"])
    assert truncated.tolist() == [True, True]
    assert infos["_stop_reason"].tolist() == [False, True]


def test_masked_reset_leaves_the_others_where_they_are() -> None:
    env = foreign_vector_env(HigherLower, 2)
    env.reset(seed=3)
    env.step(["9", "9"])
    texts, _ = env.reset(seed=[3, None], options={"reset_mask": np.array([True, False])})
    assert texts[0].startswith("Guess")
    assert texts[1] == "too high"
    assert [inner.guesses for inner in env._envs] == [0, 1]


def test_nothing_resets_by_itself() -> None:
    env = foreign_vector_env(HigherLower, 1, env_id="game")
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert env.signature == "env:game"
    assert env.reset(seed=1)[0][0] in env.single_observation_space
    env.close()


def test_what_is_refused() -> None:
    with pytest.raises(DuologueError, match=r"num_envs is 0. Pass at least 1"):
        foreign_vector_env(HigherLower, 0)
    with pytest.raises(DuologueError, match=r"has no reset and step. Pass a function"):
        foreign_vector_env(lambda: 3, 1)
    env = foreign_vector_env(HigherLower, 2)
    for call, message in (
        (lambda: env.reset(options={"task_id": ["a", None]}), "no tasks to choose by id. Leave task_id out"),
        (lambda: env.reset(seed=[1]), "1 seeds for 2 slots. Pass one for each"),
        (lambda: env.reset(options={"reset_mask": [1, 0]}), "Pass 2 bools"),
        (lambda: env.step(["a"]), "Pass a list of 2 strings"),
        (lambda: env.reset(options={"reset_musk": 1}), "Did you mean 'reset_mask'"),
    ):
        with pytest.raises(DuologueError, match=message):
            call()


def blackjack() -> gym.Env[Any, Any]:
    """Gymnasium's own Blackjack, whose numbers its own wrappers turn into texts."""
    text = gym.spaces.Text(200)
    inner = gym.make("Blackjack-v1")
    said = gym.wrappers.TransformObservation(inner, lambda o: f"You hold {o[0]}, the dealer shows {o[1]}.", text)
    return gym.wrappers.TransformAction(said, lambda a: int("hit" in a.lower()), text)


def test_a_game_that_ships_with_gymnasium() -> None:
    def careful(messages: Any) -> str:
        return "hit" if int(messages[-1]["content"].split()[2].rstrip(",")) < 17 else "I stick."

    rewards = {}
    for name, agent in (("careful", careful), ("greedy", lambda _: "hit")):
        episodes = play(blackjack, agent, range(200), 8)
        assert {e.stop_reason for e in episodes} == {StopReason.ENV_TERMINATED}
        assert {e.env_id for e in episodes} == {"Blackjack-v1"}
        rewards[name] = float(np.mean([e.reward for e in episodes]))
    assert rewards["careful"] > rewards["greedy"] + 0.5


@pytest.mark.usefixtures("one_thread")
def test_the_trainer_takes_it(tmp_path: Path, tiny_model: Path) -> None:
    from duologue.trainers import InteractiveConfig, InteractiveTrainer

    config = InteractiveConfig(
        env="HigherLower",
        model=str(tiny_model),
        output=str(tmp_path / "run"),
        steps=2,
        groups_per_step=2,
        group_size=4,
        max_tokens_per_turn=4,
        max_total_tokens=120,
        lora_rank=0,
        dtype="float32",
    )
    InteractiveTrainer(config, make_env=lambda n: foreign_vector_env(HigherLower, n)).train()
    rows = [json.loads(line) for line in (tmp_path / "run" / "episodes.jsonl").read_text().splitlines()]
    assert len(rows) == 16
    assert all(row["env_id"] == "HigherLower" and row["reward"] is not None for row in rows)
    assert all(len({row["seed"] for row in rows[i : i + 4]}) == 1 for i in range(0, 16, 4))
    assert all(sum(row["completion_mask"]) > 0 for row in rows)


def test_a_name_comes_from_the_spec_or_the_class() -> None:
    assert ForeignVectorEnv(blackjack, 1).env_id == "Blackjack-v1"
    assert ForeignVectorEnv(HigherLower, 1).env_id == "HigherLower"
