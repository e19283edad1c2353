"""Environments that begin with a logged history: what is seen, what counts, what is scored."""

import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from duologue.envs import DialogueEnv, DialogueVectorEnv, LoggedContexts, MessagesObservation
from duologue.envs.math_chat import MathChatEnv, MathChatVectorEnv
from duologue.envs.wrappers import ChatTemplateObservation
from duologue.errors import DuologueError
from duologue.simulators import HumanUser
from duologue.simulators.logs import write_logs
from duologue.types import StopReason

Make = Callable[..., DialogueEnv]


@pytest.fixture
def make(logs: SimpleNamespace) -> Make:
    def made(max_turns: int = 1, turns: str = "all", **changes: Any) -> DialogueEnv:
        contexts = LoggedContexts(logs.logged, turns)
        return DialogueEnv(None, logs.Parrot(), logs.SaysReference(), max_turns, contexts=contexts, **changes)

    return made


def find_seed(env: DialogueEnv, context_id: str) -> int:
    return next(s for s in range(200) if env.reset(seed=s)[1]["context_id"] == context_id)


def test_an_episode_begins_with_the_history_and_no_call_of_the_user(make: Make) -> None:
    env = make()
    seed = find_seed(env, "a#2")
    observation, info = env.reset(seed=seed)
    assert observation == "the colour"
    assert [m["content"] for m in info["messages"]] == ["hi", "what?", "the colour"]
    assert (info["task_id"], info["context_id"], info["acts"], info["user_notes"]) == ("red", "a#2", (), {})
    assert env.parts.dynamics.simulator.asked == []  # type: ignore[attr-defined]


def test_one_reply_ends_it_and_is_scored(make: Make) -> None:
    env = make()
    env.reset(seed=find_seed(env, "a#2"))
    observation, reward, terminated, truncated, info = env.step("red!")
    assert (observation, reward, terminated, truncated) == ("", 1.0, False, True)
    assert info["stop_reason"] == StopReason.TURN_LIMIT
    assert [m["content"] for m in info["messages"]] == ["hi", "what?", "the colour", "red!"]
    assert "context_id" not in info


def test_a_right_answer_in_the_history_does_not_score(make: Make, logs: SimpleNamespace) -> None:
    again = logs.dialogue("d", "red", "hi", "red!", "are you sure?", "yes, red!")
    env = DialogueEnv(None, logs.Parrot(), logs.SaysReference(), 1, contexts=LoggedContexts([again], "final"))
    for reply, expected in (("I do not know", 0.0), ("red!", 1.0)):
        env.reset(seed=0)
        assert env.step(reply)[1] == expected
    scored = env.parts.dynamics.reward.scored[0]  # type: ignore[attr-defined]
    assert [m["content"] for m in scored.messages] == ["are you sure?", "I do not know"]
    assert scored.task == again.task


def test_the_shipped_reward_scores_the_last_word_only(logs: SimpleNamespace) -> None:
    solved = logs.dialogue("d", "sum", "what is 40 + 2?", "The answer is 42.", "really?", "yes")
    task = solved.task.__class__("sum", "what is 40 + 2?", reference="42")
    contexts = LoggedContexts([solved.__class__("d", task, solved.messages)], "final")
    single = MathChatEnv(contexts=contexts, max_turns=1)
    vector = MathChatVectorEnv(2, contexts=contexts, max_turns=1)
    replies = ["I am not sure.", "The answer is 42."]
    for reply, expected in zip(replies, (0.0, 1.0), strict=True):
        single.reset(seed=0)
        assert single.step(reply)[1] == expected
    vector.reset(seed=0)
    assert list(vector.step(replies)[1]) == [0.0, 1.0]


def test_only_new_replies_count_and_the_user_goes_on_from_the_log(make: Make) -> None:
    env = make(max_turns=2)
    env.reset(seed=find_seed(env, "c#3"))
    observation, reward, terminated, truncated, _ = env.step("red!")
    assert (observation, reward, terminated, truncated) == ("you say red!", 0.0, False, False)
    [asked] = env.parts.dynamics.simulator.asked  # type: ignore[attr-defined]
    assert [m["content"] for m in asked.messages] == ["hey", "hm", "come on", "green", "no", "red!"]
    assert asked.given == 5
    _, reward, _, truncated, info = env.step("well")
    assert (reward, truncated, info["stop_reason"]) == (1.0, True, "turn_limit")
    assert len(info["messages"]) == 8


def test_the_user_can_end_what_the_log_began(make: Make) -> None:
    env = make(max_turns=3)
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step("bye")
    assert (observation, terminated, info["stop_reason"]) == ("you say bye", True, "user_satisfied")


def test_a_person_who_goes_on_from_a_log_is_told_what_was_said(logs: SimpleNamespace) -> None:
    shown: list[str] = []
    person = HumanUser(read=lambda _: "well", write=shown.append)
    env = DialogueEnv(None, person, logs.SaysReference(), 3, contexts=LoggedContexts(logs.logged[:1], "final"))
    env.reset(seed=0)
    assert shown == []
    env.step("hm")
    env.step("so")
    assert shown[0].endswith("you> hi\nassistant> what?\nyou> the colour\nassistant> hm")
    assert "red!" in shown[0]
    assert shown[1:] == ["assistant> so"]


def test_seeds_and_task_ids_reproduce(make: Make) -> None:
    first, second = make(), make()
    for seed in range(20):
        assert first.reset(seed=seed) == second.reset(seed=seed)
    chosen = {first.reset(options={"task_id": "red"})[1]["context_id"] for _ in range(60)}
    assert chosen == {"a#1", "a#2", "c#1", "c#2", "c#3"}
    picked = [make().reset(seed=3, options={"task_id": "red"})[1]["context_id"] for _ in range(2)]
    assert picked[0] == picked[1]
    with pytest.raises(DuologueError, match="No task 'rad'"):
        first.reset(options={"task_id": "rad"})
    with pytest.raises(DuologueError, match="task_id is int"):
        first.reset(options={"task_id": 3})


def test_a_context_can_be_asked_for_and_the_seed_decides_who_the_user_is(make: Make, logs: SimpleNamespace) -> None:
    env, asked = make(2), []
    for seed in (0, 1):
        assert env.reset(seed=seed, options={"context_id": "c#2"})[1]["context_id"] == "c#2"
        env.step("hm")
        asked.append(env.parts.dynamics.simulator.asked[-1])  # type: ignore[attr-defined]
    assert asked[0].messages == asked[1].messages
    assert asked[0].seed != asked[1].seed
    many = DialogueVectorEnv(
        2, None, logs.Parrot(), logs.SaysReference(), 2, contexts=LoggedContexts(logs.logged, "all")
    )
    _, infos = many.reset(seed=[0, 1], options={"context_id": ["b#1", "c#2"]})
    assert list(infos["context_id"]) == ["b#1", "c#2"]
    many.step(["hm", "hm"])
    assert many.parts.dynamics.simulator.asked[-1].seed == asked[1].seed  # type: ignore[attr-defined]


def test_ids_that_cannot_be_are_refused(make: Make, logs: SimpleNamespace) -> None:
    with pytest.raises(DuologueError, match=r"No context 'z#1'\. Write DIALOGUE#TURN"):
        make().reset(options={"context_id": "z#1"})
    with pytest.raises(DuologueError, match=r"Both task_id and context_id 'a#1' are given\. Leave one out"):
        make().reset(options={"context_id": "a#1", "task_id": "red"})
    plain = DialogueEnv(LoggedContexts(logs.logged).tasks, logs.Parrot(), logs.SaysReference())
    with pytest.raises(DuologueError, match=r"no contexts to choose by id\. Make the environment with contexts"):
        plain.reset(options={"context_id": "a#1"})


def test_vector_slots_are_the_single_environments(make: Make, logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged)
    reward = logs.SaysReference()
    vector = DialogueVectorEnv(4, None, logs.Parrot(), reward, 1, contexts=contexts)
    texts, infos = vector.reset(seed=5)
    singles = [make() for _ in range(4)]
    for i, single in enumerate(singles):
        text, info = single.reset(seed=5 + i)
        assert (texts[i], infos["messages"][i], infos["context_id"][i]) == (text, info["messages"], info["context_id"])
    replies = ["red!", "blue!", "red!", "hm"]
    _, rewards, terminated, truncated, infos = vector.step(replies)
    steps = [single.step(reply) for single, reply in zip(singles, replies, strict=True)]
    assert list(rewards) == [step[1] for step in steps]
    assert truncated.all()
    assert not terminated.any()
    assert [len(d.said_by("assistant")) for d in reward.scored] == [1] * 4
    vector.reset(seed=[None, 9, None, None], options={"reset_mask": np.array([False, True, False, False])})
    assert vector.parts.dynamics.simulator.asked == []  # type: ignore[attr-defined]


def test_a_cut_is_scored_without_the_history(make: Make, logs: SimpleNamespace) -> None:
    solved = logs.dialogue("d", "red", "hi", "red!", "sure?", "yes")
    reward = logs.SaysReference()
    vector = DialogueVectorEnv(1, None, logs.Parrot(), reward, 2, contexts=LoggedContexts([solved], "final"))
    vector.reset(seed=0)
    _, rewards, _, truncated, _ = vector.cut(np.array([True]), StopReason.TOKEN_LIMIT)
    assert (rewards[0], truncated[0]) == (0.0, True)
    assert reward.scored[0].said_by("assistant") == ()


@pytest.mark.parametrize("env_id", ["MathChat-v0", "MediumDocEditChat-v0"])
@pytest.mark.parametrize("max_turns", [1, 3])
def test_registered_environments_take_a_file(
    logs: SimpleNamespace, tmp_path: Path, env_id: str, max_turns: int
) -> None:
    file = write_logs(tmp_path / "logs.jsonl", logs.logged)
    env = gym.make(env_id, contexts=str(file), max_turns=max_turns)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(render|pygame|spec|different).*")
        if max_turns > 1:  # Gymnasium's check refuses any environment whose first step is its last
            check_env(env.unwrapped, skip_render_check=True)
    vector = gym.make_vec(
        env_id, num_envs=3, vectorization_mode="vector_entry_point", contexts=file, max_turns=max_turns
    )
    texts, infos = vector.reset(seed=0)
    text, info = env.reset(seed=0)
    assert (texts[0], infos["context_id"][0]) == (text, info["context_id"])
    vector.step(["a reply"] * 3)
    observation, *_ = env.step("a reply")
    assert observation == "" or max_turns > 1
    vector.close()
    env.close()


def test_wrappers_show_the_whole_history_within_their_space(make: Make) -> None:
    wrapped = MessagesObservation(make())
    observation, info = wrapped.reset(seed=find_seed(make(), "c#3"))
    assert observation == tuple(info["messages"])
    assert len(observation) == 5
    assert wrapped.observation_space.contains(observation)
    assert wrapped.max_messages == 5 + 2
    text, _ = ChatTemplateObservation(make(), "{% for m in messages %}{{ m.content }}\n{% endfor %}").reset(seed=0)
    assert text


def test_signatures_name_the_contexts(make: Make) -> None:
    signature = make().signature
    assert "|contexts:logged(n=6,turns=all,sha256=" in signature
    assert "|tasks:" not in signature
    assert signature != make(turns="final").signature


def test_what_contradicts_is_refused(make: Make, logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged)
    with pytest.raises(DuologueError, match=r"bring their own tasks\. Leave out tasks"):
        MathChatEnv(tasks="math:level=1", contexts=contexts)
    with pytest.raises(DuologueError, match=r"neither tasks nor contexts\. Pass one"):
        DialogueEnv(None, logs.Parrot(), logs.SaysReference())
    with pytest.raises(DuologueError, match=r"has 10 characters, over max_chars 9\. Raise max_chars"):
        make(max_chars=9)
