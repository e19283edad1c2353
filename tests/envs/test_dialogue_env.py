import copy
import time
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from duologue.envs.dialogue_env import DialogueEnv
from duologue.errors import DuologueError
from duologue.rewards.base import Score
from duologue.simulators.human import HumanUser
from duologue.types import UserTurn


def make(fakes: SimpleNamespace, **args: Any) -> DialogueEnv:
    parts = {"tasks": fakes.TwoTasks(), "simulator": fakes.Echo(), "reward": fakes.SpeaksSecret()}
    return DialogueEnv(**(parts | {"max_turns": 3, "max_chars": 200, "call_timeout": 0.2} | args))


def play(env: gym.Env[Any, str], seed: int, *actions: str) -> list[Any]:
    return [env.reset(seed=seed), *(env.step(action) for action in actions)]


def test_gymnasium_is_satisfied(fakes: SimpleNamespace) -> None:
    creator: Any = lambda render_mode=None: make(fakes, render_mode=render_mode)  # noqa: E731
    spec = EnvSpec("Fake-v0", entry_point=creator)
    check_env(gym.make(spec).unwrapped)


def test_a_dialogue_from_beginning_to_end(fakes: SimpleNamespace) -> None:
    env = make(fakes)
    observation, info = env.reset(seed=1, options={"task_id": "mul"})
    assert observation.startswith("Und jetzt? \U0001f680 ∑ #")
    assert info == {
        "task_id": "mul",
        "messages": ({"role": "user", "content": observation},),
        "acts": ("open",),
        "user_notes": {"open": 1.0},
    }
    observation, reward, terminated, truncated, info = env.step("forty-two")
    assert (observation, reward, terminated, truncated) == ("You said: forty-two", 0.0, False, False)
    assert "stop_reason" not in info
    observation, reward, terminated, truncated, info = env.step("bye")
    assert (observation, reward, terminated, truncated) == ("You said: bye", 1.0, True, False)
    assert [m["role"] for m in info["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert {k: info[k] for k in ("stop_reason", "scored", "reward_parts")} == {
        "stop_reason": "user_satisfied",
        "scored": True,
        "reward_parts": {},
    }
    assert type(info["stop_reason"]) is str
    with pytest.raises(DuologueError, match="reset"):
        env.step("still there?")


def test_a_seed_reproduces_a_dialogue_exactly(fakes: SimpleNamespace) -> None:
    """Same reset seed, same task and same user: what a group of rollouts stands on."""
    actions = ("hm", "forty-two", "bye")
    assert play(make(fakes), 11, *actions) == play(make(fakes), 11, *actions)
    openings = {play(make(fakes), seed)[0][0] for seed in range(20)}
    assert len(openings) == 20
    assert len({opening.split(" #")[0] for opening in openings}) == 2


def test_a_seed_also_fixes_the_dialogues_that_follow(fakes: SimpleNamespace) -> None:
    one, two = make(fakes), make(fakes)
    for env in (one, two):
        env.reset(seed=5)
    assert [one.reset() for _ in range(5)] == [two.reset() for _ in range(5)]


def test_the_seed_of_the_user_depends_on_the_seed_not_on_the_task_asked_for(fakes: SimpleNamespace) -> None:
    env = make(fakes)
    seeds = [env.reset(seed=4, options={"task_id": name})[0].rpartition("#")[2] for name in ("add", "mul")]
    assert seeds[0] == seeds[1]


def test_what_is_hidden_stays_hidden(fakes: SimpleNamespace) -> None:
    for seed in range(6):
        for result in play(make(fakes), seed, "hm", "hm", "bye"):
            assert fakes.secret not in repr(result)


def test_infos_share_nothing_with_the_environment_or_each_other(fakes: SimpleNamespace) -> None:
    class Parts(fakes.SpeaksSecret):  # type: ignore[name-defined, misc]
        shared = {"answer": 1.0, "length": None}  # noqa: RUF012

        def score(self, dialogues: Any) -> list[Score]:
            return [Score(1.0, self.shared) for _ in dialogues]

    env = make(fakes, reward=Parts())
    results = play(env, 0, "hm")
    before = copy.deepcopy(results)
    results[0][1]["messages"][0]["content"] = "forged"
    results[0][1]["user_notes"]["forged"] = 1.0
    later = env.step("bye")[4]
    assert later["messages"][:3] == before[1][4]["messages"]
    later["reward_parts"]["answer"] = -1.0
    assert Parts.shared == {"answer": 1.0, "length": None}
    assert play(env, 0, "hm") == before


def test_mistakes_at_reset_name_the_nearest(fakes: SimpleNamespace) -> None:
    env = make(fakes)
    with pytest.raises(DuologueError, match="Did you mean 'task_id'"):
        env.reset(options={"taskid": "add"})
    with pytest.raises(DuologueError, match="Did you mean 'add'"):
        env.reset(options={"task_id": "ad"})
    with pytest.raises(DuologueError, match="reset"):
        make(fakes).step("hello")
    with pytest.raises(DuologueError, match="Did you mean 'human'"):
        make(fakes, render_mode="humans")
    with pytest.raises(DuologueError, match="make_tasks"):
        make(fakes, tasks=fakes.tasks)


def test_an_action_must_be_text_and_a_wrong_one_changes_nothing(fakes: SimpleNamespace) -> None:
    env = make(fakes)
    env.reset(seed=0)
    with pytest.raises(DuologueError, match="str"):
        env.step(None)  # type: ignore[arg-type]
    assert env.step("bye")[2]


@pytest.mark.parametrize("trick", ["broken", "hanging"])
def test_a_user_who_fails_later_ends_the_dialogue_unscored(fakes: SimpleNamespace, trick: str) -> None:
    """A hanging or broken user does not hold up the run, and not scored is not zero."""
    env = make(fakes, simulator=fakes.Odd(getattr(fakes, trick)), call_timeout=0.1)
    observation, reward, terminated, truncated, info = play(env, 0, "odd")[1]
    assert (observation, reward, terminated, truncated) == ("", 0.0, False, True)
    assert (info["stop_reason"], info["scored"], info["reward_parts"]) == ("simulator_error", False, {})
    assert info["error"].endswith(".")
    assert info["messages"][-1] == {"role": "assistant", "content": "odd"}
    assert env.reset(seed=0)[0] != ""


def test_a_user_who_fails_to_open_ends_the_dialogue_at_the_next_step(fakes: SimpleNamespace) -> None:
    user, reward = fakes.Odd(fakes.broken, task_id="add"), fakes.SpeaksSecret()
    env = make(fakes, simulator=user, reward=reward)
    observation, info = env.reset(seed=0, options={"task_id": "add"})
    assert (observation, info["messages"], info["stop_reason"]) == ("", (), "simulator_error")
    assert "the line is dead" in info["error"]
    calls = len(user.calls)
    observation, value, terminated, truncated, info = env.step("hello?")
    assert (observation, value, terminated, truncated, info["scored"]) == ("", 0.0, False, True, False)
    assert (len(user.calls), reward.calls) == (calls, [])
    with pytest.raises(DuologueError, match="reset"):
        env.step("hello?")


def test_a_reward_that_raises_leaves_the_dialogue_unscored(fakes: SimpleNamespace) -> None:
    def reward(dialogues: Any) -> list[float | None]:
        raise ZeroDivisionError("no ruler")

    *_, last = play(make(fakes, reward=reward), 0, "bye")
    assert (last[1], last[2]) == (0.0, True)
    assert (last[4]["stop_reason"], last[4]["scored"]) == ("user_satisfied", False)
    assert "no ruler" in last[4]["error"]


def test_a_reward_may_decline(fakes: SimpleNamespace) -> None:
    *_, last = play(make(fakes, reward=lambda dialogues: [None] * len(dialogues)), 0, "bye")
    assert (last[1], last[4]["scored"]) == (0.0, False)
    assert "error" not in last[4]


def test_observations_stay_in_the_space(fakes: SimpleNamespace) -> None:
    env = make(fakes, simulator=fakes.Odd(lambda d: UserTurn("\ud83d" * 500)))
    for result in play(env, 0, "odd", "x" * 300):
        assert result[0] in env.observation_space


def test_the_signature_tells_every_part(fakes: SimpleNamespace) -> None:
    signature = make(fakes).signature
    assert signature.startswith("env:DialogueEnv|tasks:two|user:echo|reward:secret|max_turns:3|max_chars:200|duologue:")


def test_ansi_returns_the_transcript(fakes: SimpleNamespace) -> None:
    env = make(fakes, render_mode="ansi")
    assert env.render() == ""
    play(env, 0, "bye")
    text = env.render()
    assert text is not None
    assert "assistant: bye\n\nuser: You said: bye\n\n[user_satisfied] The user got what they wanted" in text


def test_human_prints_each_message_once_and_obeys_no_escapes(
    fakes: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    env = make(fakes, render_mode="human")
    play(env, 0, "\x1b[2J[bold]gone[/bold]")
    assert env.render() is None
    printed = capsys.readouterr().out
    assert printed.count("assistant") == 1
    assert printed.count("You said: ") == 1
    assert "[bold]gone[/bold]" in printed
    assert "\x1b[2J" not in printed


def test_a_person_may_take_longer_than_the_time_out(fakes: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter(["Hello", "/done Thanks"])

    def slowly(prompt: str) -> str:
        time.sleep(0.05)
        return next(lines)

    person = HumanUser(read=slowly, write=lambda line: None)
    env = make(fakes, simulator=person, call_timeout=0.01, render_mode="human")
    (observation, _), (closing, _, terminated, _, _) = play(env, 0, "hi")
    assert (observation, closing, terminated) == ("Hello", "Thanks", True)
    assert capsys.readouterr().out == ""
