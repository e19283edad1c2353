from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from duologue.envs.dialogue_env import DialogueEnv
from duologue.envs.vector_env import DialogueVectorEnv
from duologue.errors import DuologueError
from duologue.types import StopReason, UserTurn


def arguments(fakes: SimpleNamespace, args: dict[str, Any]) -> dict[str, Any]:
    parts = {"tasks": fakes.TwoTasks(), "simulator": fakes.Echo(), "reward": fakes.SpeaksSecret()}
    return parts | {"max_turns": 3, "max_chars": 200, "call_timeout": 0.2} | args


def make(fakes: SimpleNamespace, n: int, **args: Any) -> DialogueVectorEnv:
    return DialogueVectorEnv(n, **arguments(fakes, args))


SCRIPT = [["hm", "forty-two", "bye"], ["odd", "bye", "-"], ["forty-two", "leave", "-"], ["x" * 300, "-", "-"]]
"""What each slot says; "-" after its end."""


def test_the_same_seeds_give_the_same_dialogues_as_single_environments(fakes: SimpleNamespace) -> None:
    """Everything that a single environment returns comes out of its slot: observation, reward, flags, info."""
    seeds = [31, 7, 7, 99]
    user = fakes.Odd(lambda d: UserTurn("odd indeed", notes={"odd": 1.0}))
    many: Any = DictInfoToList(make(fakes, 4, simulator=user))
    observations, infos = many.reset(seed=seeds)
    singles = [DialogueEnv(**arguments(fakes, {"simulator": user})) for _ in seeds]
    for i, env in enumerate(singles):
        assert env.reset(seed=seeds[i]) == (observations[i], infos[i])
    assert observations[1] == observations[2] != observations[0]
    for turn in range(3):
        said = [script[turn] for script in SCRIPT]
        observations, rewards, terminations, truncations, infos = many.step(said)
        for i, env in enumerate(singles):
            if said[i] != "-":
                single = env.step(said[i])
                assert single == (observations[i], rewards[i], terminations[i], truncations[i], infos[i])
    assert list(terminations) == [False, True, True, False]
    assert list(truncations) == [True, False, False, True]


def test_an_int_seed_counts_up_as_gymnasium_does(fakes: SimpleNamespace) -> None:
    sync = SyncVectorEnv([lambda: DialogueEnv(**arguments(fakes, {}))] * 3, autoreset_mode=AutoresetMode.DISABLED)
    many = make(fakes, 3)
    assert many.reset(seed=5)[0] == sync.reset(seed=5)[0]
    assert many.reset()[0] == sync.reset()[0]
    assert many.step(["a", "b", "c"])[0] == sync.step(("a", "b", "c"))[0]
    mask = np.array([True, False, True])
    assert many.reset(options={"reset_mask": mask})[0] == sync.reset(options={"reset_mask": mask})[0]


def test_64_dialogues_cost_one_simulator_call_a_turn(fakes: SimpleNamespace) -> None:
    """The user is an argument, and reached in every dialogue in every turn."""
    user, reward = fakes.Echo(), fakes.SpeaksSecret()
    env = make(fakes, 64, simulator=user, reward=reward)
    env.reset(seed=0)
    env.step(["bye"] * 16 + ["hm"] * 48)
    env.step(["hm"] * 64)
    env.step(["hm"] * 64)
    env.step(["hm"] * 64)
    assert user.calls == [64, 64, 48]
    assert reward.calls == [16, 48]


def test_a_finished_slot_ignores_its_action(fakes: SimpleNamespace) -> None:
    env = make(fakes, 2)
    env.reset(seed=0)
    env.step(["forty-two", "hm"])
    assert env.step(["bye", "hm"])[1].tolist() == [1.0, 0.0]
    observations, rewards, terminations, _, infos = env.step([None, "bye"])  # type: ignore[list-item]
    assert observations == ("", "")
    assert rewards.tolist() == [0.0, 0.0]
    assert terminations.tolist() == [True, False]
    assert infos["_task_id"].tolist() == [False, True]


def test_infos_follow_gymnasiums_masks(fakes: SimpleNamespace) -> None:
    env = make(fakes, 3)
    env.reset(seed=0)
    _, _, _, _, infos = env.step(["hm", "bye", "leave"])
    assert infos["_stop_reason"].tolist() == [False, True, True]
    assert infos["stop_reason"].tolist() == [None, "user_satisfied", "user_gave_up"]
    assert infos["scored"].tolist() == [False, True, True]
    assert infos["user_notes"]["turn"].tolist() == [1.0, 1.0, 1.0]
    assert [len(messages) for messages in infos["messages"]] == [3, 3, 3]
    assert fakes.secret not in repr(infos)


def test_slots_can_be_reset_one_by_one(fakes: SimpleNamespace) -> None:
    user = fakes.Echo()
    env = make(fakes, 3, simulator=user)
    env.reset(seed=0)
    before = env.step(["bye", "hm", "bye"])[0]
    options = {"reset_mask": np.array([True, False, False]), "task_id": ["mul", None, None]}
    observations, infos = env.reset(seed=[8, 9, 10], options=options)
    assert observations[0].startswith("Und jetzt?")
    assert observations[1:] == before[1:]
    assert infos["_task_id"].tolist() == [True, False, False]
    assert user.calls == [3, 3, 1]
    assert set(options) == {"reset_mask", "task_id"}
    observations, _, terminations, truncations, _ = env.step(["hi", "hm", "-"])
    assert observations == ("You said: hi", "You said: hm", "")
    assert terminations.tolist() == [False, False, True]
    assert not truncations.any()


def test_one_task_for_all_or_one_for_each(fakes: SimpleNamespace) -> None:
    env = make(fakes, 2)
    assert env.reset(options={"task_id": "mul"})[1]["task_id"].tolist() == ["mul", "mul"]
    assert env.reset(options={"task_id": ["mul", "add"]})[1]["task_id"].tolist() == ["mul", "add"]


def test_cut_ends_some_slots_and_scores_them(fakes: SimpleNamespace) -> None:
    user, reward = fakes.Echo(), fakes.SpeaksSecret()
    env = make(fakes, 4, simulator=user, reward=reward)
    env.reset(seed=0)
    env.step(["forty-two", "hm", "forty-two", "bye"])
    mask = np.array([True, True, False, True])
    observations, rewards, terminations, truncations, infos = env.cut(mask, StopReason.CONTEXT_OVERFLOW)
    assert observations == ("", "", "You said: forty-two", "")
    assert rewards.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert truncations.tolist() == [True, True, False, False]
    assert terminations.tolist() == [False, False, False, True]
    assert infos["stop_reason"].tolist() == ["context_overflow", "context_overflow", None, None]
    assert (user.calls, reward.calls) == ([4, 4], [1, 2])
    rewards = env.cut(np.array([False, False, True, False]), StopReason.POLICY_ERROR)[1]
    assert (rewards.tolist(), reward.calls) == ([0.0] * 4, [1, 2])


def test_a_failing_opening_or_turn_stays_in_its_slot(fakes: SimpleNamespace) -> None:
    user = fakes.Odd(fakes.broken, task_id="mul")
    env = make(fakes, 3, simulator=user)
    observations, infos = env.reset(seed=0, options={"task_id": ["add", "mul", "add"]})
    assert observations[1] == ""
    assert infos["stop_reason"].tolist() == [None, "simulator_error", None]
    observations, _, _, truncations, infos = env.step(["hm", "hm", "odd"])
    assert observations == ("You said: hm", "", "")
    assert truncations.tolist() == [False, True, True]
    assert infos["scored"].tolist() == [False, False, False]
    assert infos["_scored"].tolist() == [False, True, True]
    assert all("the line is dead" in error for error in infos["error"][1:])
    assert not env.step(["hm", "hm", "hm"])[4]["_task_id"][1:].any()


def test_what_it_returns_is_the_callers_to_keep(fakes: SimpleNamespace) -> None:
    env = make(fakes, 2)
    _, infos = env.reset(seed=0)
    infos["messages"][0][0]["content"] = "forged"
    _, rewards, terminations, truncations, _ = env.step(["bye", "hm"])
    terminations[:] = truncations[:] = True
    rewards[:] = 9.0
    _, rewards, terminations, truncations, infos = env.step(["-", "bye"])
    assert (rewards.tolist(), terminations.tolist(), truncations.tolist()) == ([0.0, 0.0], [True] * 2, [False] * 2)
    assert infos["messages"][1][0]["content"].rpartition("#")[0] != ""


def test_gymnasiums_statistics_work(fakes: SimpleNamespace) -> None:
    env = RecordEpisodeStatistics(make(fakes, 2))
    env.reset(seed=0)
    env.step(["forty-two", "hm"])
    infos = env.step(["bye", "hm"])[4]
    assert infos["episode"]["r"][0] == 1.0
    assert infos["episode"]["l"][0] == 2


def test_mistakes_are_explained(fakes: SimpleNamespace) -> None:
    env = make(fakes, 2)
    with pytest.raises(DuologueError, match="reset"):
        env.step(["a", "b"])
    with pytest.raises(DuologueError, match="first reset"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    for options in ({"reset_mask": [1, 0]}, {"reset_mask": np.array([True])}, {"mask": True}, {"task_id": ["add"]}):
        with pytest.raises(DuologueError, match=r"reset_mask|task_id"):
            env.reset(options=options)
    for actions in (["a"], "ab", ["a", 3]):
        with pytest.raises(DuologueError, match=r"str"):
            env.step(actions)  # type: ignore[arg-type]
    with pytest.raises(DuologueError, match="seed has 1"):
        env.reset(seed=[1])
    with pytest.raises(DuologueError, match="mask"):
        env.cut(np.array([1, 0]), StopReason.TOKEN_LIMIT)
    with pytest.raises(DuologueError, match="num_envs"):
        make(fakes, 0)
    with pytest.raises(DuologueError, match="ansi"):
        make(fakes, 2, render_mode="human")


def test_render_returns_a_transcript_per_slot(fakes: SimpleNamespace) -> None:
    env = make(fakes, 2, render_mode="ansi")
    assert env.render() == ("", "")
    env.reset(seed=0)
    env.step(["bye", "hm"])
    frames = env.render()
    assert frames is not None
    assert ["user_satisfied" in frame for frame in frames] == [True, False]
    assert make(fakes, 2).render() is None
