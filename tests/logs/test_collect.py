"""Collected dialogues carry their tasks, leave out what was not scored, and go on where they were."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.analysis.collect import CollectConfig, collect, collect_counted, logged_dialogues
from duologue.errors import DuologueError
from duologue.rewards import ExactMatch
from duologue.simulators.logs import check_logs, read_logs
from duologue.trainers.agents import FunctionAgent
from duologue.types import Dialogue, Episode, Message, StopReason, Task


def hasty(messages: Sequence[Message]) -> str:
    """Add the numbers told so far; ask when there are fewer than two."""
    told = " ".join(m["content"] for m in messages if m["role"] == "user").replace(".", " ").split()
    numbers = [int(word) for word in told if word.isdigit()]
    return "Which numbers?" if len(numbers) < 2 else f"The answer is {numbers[0] + numbers[1]}."


def fails_on_some(messages: Sequence[Message]) -> str:
    if "how many" in messages[0]["content"].lower():
        raise RuntimeError("not today")
    return hasty(messages)


AGENT = FunctionAgent(hasty, "hasty")


@pytest.fixture
def config(tmp_path: Path) -> CollectConfig:
    return CollectConfig(episodes=6, num_envs=3, output=str(tmp_path / "new" / "logs.jsonl"))


def test_a_collected_dialogue_holds_all_that_scores_it_again(config: CollectConfig) -> None:
    logs = collect(config, AGENT)
    assert len(logs) == 6
    assert read_logs(config.output) == logs
    assert check_logs(config.output) == []
    for log in logs:
        assert log.task.facts
        assert log.task.reference
        again = Dialogue(log.task, 0, log.messages, log.stop)
        assert ExactMatch()([again]) == [log.metadata["reward"]]
        assert log.source.startswith("user:")
        assert log.source.endswith("|agent:hasty")
        assert log.person is not None
        assert log.dialogue_id == f"{log.task.task_id}-{log.person}"


def test_it_goes_on_where_it_was_and_grows(config: CollectConfig) -> None:
    whole = collect(replace(config, output=config.output + ".whole"), AGENT)
    collect(replace(config, episodes=2), AGENT)
    calls: list[int] = []

    def counted(messages: Sequence[Message]) -> str:
        calls.append(1)
        return hasty(messages)

    assert collect(config, FunctionAgent(counted, "hasty")) == whole
    played = len(calls)
    assert 0 < played < sum(len(log.messages) // 2 for log in whole)
    assert collect(config, FunctionAgent(counted, "hasty")) == whole
    assert len(calls) == played


def test_another_agent_does_not_mix_in(config: CollectConfig) -> None:
    collect(config, AGENT)
    other = FunctionAgent(lambda _: "The answer is -7.", "other")
    with pytest.raises(DuologueError, match=r"agent:hasty there.*--overwrite"):
        collect(config, other)
    assert {log.source.rpartition("agent:")[2] for log in collect(replace(config, overwrite=True), other)} == {"other"}


def test_a_file_of_somebody_else_is_kept(config: CollectConfig) -> None:
    path = Path(config.output)
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(DuologueError, match=r"exists already\. Give another output"):
        collect(config, AGENT)
    assert path.read_text() == "mine"


def test_a_folder_is_refused_before_anything_is_played(config: CollectConfig, tmp_path: Path) -> None:
    for overwrite in (False, True):
        with pytest.raises(DuologueError, match=r"is a folder\. Give a file, such as .*logs\.jsonl\.$"):
            collect(replace(config, output=str(tmp_path), overwrite=overwrite), AGENT)
    assert not Path(f"{tmp_path}.episodes").exists()


def test_what_failed_is_left_out_and_counted(config: CollectConfig) -> None:
    found = collect_counted(replace(config, episodes=20), FunctionAgent(fails_on_some, "fails"))
    failed = found.left_out["not scored: policy_error"]
    assert 0 < failed < 20
    assert len(found.dialogues) == 20 - failed


def test_when_nothing_could_be_kept(config: CollectConfig) -> None:
    def fails(messages: Sequence[Message]) -> str:
        raise RuntimeError("never")

    with pytest.raises(DuologueError, match=r"policy_error 6.*never.*Mend the agent"):
        collect(config, FunctionAgent(fails, "fails"))
    assert not Path(config.output).exists()


def test_documents_are_collected_too(config: CollectConfig) -> None:
    def writer(messages: Sequence[Message]) -> str:
        return f"<document>Draft {len(messages)}.</document> What else?"

    logs = collect(replace(config, env="MediumDocEditChat-v0", episodes=2), FunctionAgent(writer, "writer"))
    assert all(log.task.outline and log.task.reference for log in logs)


def test_turns_that_a_log_cannot_hold() -> None:
    def episode(*said: str, seed: int = 0, reward: float | None = 1.0) -> Episode:
        roles = ("user", "assistant") * 4
        messages = tuple(Message(role=r, content=c) for r, c in zip(roles, said, strict=False))  # type: ignore[typeddict-item]
        return Episode("MathChat-v0", "t", seed, messages, StopReason.USER_GAVE_UP, reward)

    episodes = [
        episode("hi", "Hello.", "", seed=1),
        episode("hi", "", "what?", seed=2),
        episode("hi", "Hello.", seed=3),
        episode("hi", "Bye.", seed=4, reward=None),
        episode("hi", "Bye.", "ok", seed=5, reward=0.0),
    ]
    found = logged_dialogues(episodes, lambda _: Task("t", "i", "r"), "s", scripted=False)
    assert [log.dialogue_id for log in found.dialogues] == ["t-seed-1", "t-seed-5"]
    assert [len(log.messages) for log in found.dialogues] == [2, 3]
    assert [log.metadata["reward"] for log in found.dialogues] == [1.0, 0.0]
    assert all(log.person is None for log in found.dialogues)
    assert found.left_out == {
        "a blank turn": 1,
        "the same task and words as another": 1,
        "not scored: user_gave_up": 1,
    }
