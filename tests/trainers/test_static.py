"""Training on logged contexts: the same machine as interactive training, from another history."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from duologue.disk import DiskFullError
from duologue.engines.chat import ChatFormat
from duologue.envs import DialogueVectorEnv, LoggedContexts
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.trainers import StaticConfig, StaticTrainer
from duologue.trainers.agents import FunctionAgent, TokenAgent
from duologue.trainers.conversation import Conversation, Reply, encode
from duologue.trainers.interactive import env_maker
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Dialogue, Message, StopReason

Logs = list[LoggedDialogue]
MakeTrainer = Callable[..., StaticTrainer]
MakeAgent = Callable[..., TokenAgent]


@pytest.fixture
def logs(world: SimpleNamespace) -> Logs:
    """Four dialogues of two turns; in each the assistant has named the right word in its first turn."""
    return [logged(f"{hello}-{task.task_id}", task, hello) for hello in ("hello", "hi") for task in world.tasks]


def logged(dialogue_id: str, task: Any, hello: str) -> LoggedDialogue:
    texts = (f"{hello} {task.instruction}", task.reference, f"no {task.instruction}", "what")
    messages = tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts))
    return LoggedDialogue(dialogue_id, task, messages, StopReason.USER_GAVE_UP)


def no_user(dialogue: Dialogue) -> None:
    raise AssertionError("Static contexts need no user.")


@pytest.fixture
def static(settings: Callable[..., Any], world: SimpleNamespace, logs: Logs, tmp_path: Path) -> MakeTrainer:
    """Makes a trainer on the logs in the world of ``conftest``, whose user must not be asked."""
    file = write_logs(tmp_path / "logs.jsonl", logs)

    def make(reward: Any = world.heard, simulator: Any = None, **changes: Any) -> StaticTrainer:
        base = settings()
        fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
        config = StaticConfig(**{**fields, "max_turns": 1, "dialogues": str(file), **changes})
        user = simulator or world.Wants(no_user)
        return StaticTrainer(
            config, make_env=lambda n, c: DialogueVectorEnv(n, None, user, reward, config.max_turns or 1, contexts=c)
        )

    return make


def test_a_group_is_one_context_and_the_loss_is_on_the_one_reply(static: MakeTrainer) -> None:
    made = static(steps=3)
    made.train()
    episodes = made.episodes.read()
    groups = [episodes[i : i + 4] for i in range(0, 24, 4)]
    histories = [{tuple(m["content"] for m in e.messages[: e.given]) for e in group} for group in groups]
    assert all(len(history) == 1 for history in histories)
    assert all(len({e.completion_ids for e in group}) > 1 for group in groups)
    assert len({len(*map(tuple, history)) for history in histories}) == 2  # both turns of the logs were drawn
    for e in episodes:
        assert (e.n_turns, len(e.spans), len(e.messages)) == (1, 1, e.given + 1)
        assert e.stop_reason is StopReason.TURN_LIMIT
        [span] = e.spans
        assert sum(e.completion_mask) == span.end - span.start
    assert [row["dialogue/turns"] for row in made.metrics] == [1.0, 1.0, 1.0]


def test_a_right_answer_of_the_log_earns_nothing(static: MakeTrainer) -> None:
    made = static(steps=1, turns="final")
    made.train()
    for e in made.episodes.read():
        assert e.messages[1]["content"] == e.task_id  # the log's assistant said the word
        assert e.reward == float(e.task_id in e.messages[-1]["content"].split())


def test_the_history_is_the_prompt(static: MakeTrainer, chat: ChatFormat) -> None:
    made = static(steps=1, turns="final")
    made.train()
    e = made.episodes.read()[0]
    spelled = " ".join(chat.tokenizer.convert_ids_to_tokens(list(e.prompt_ids)))
    expected = [f"<|im_start|> {m['role']} {m['content']} <|im_end|>" for m in e.messages[:3]]
    assert spelled == " ".join([*expected, "<|im_start|> assistant"])


def test_a_history_has_the_tokens_that_a_rollout_would_have_read(chat: ChatFormat, logs: Logs) -> None:
    for dialogue in logs:
        first, reply, second = dialogue.messages[:3]
        ids = (*chat.text_ids(reply["content"]), chat.end_of_turn_id)
        played = Conversation((first,), (Reply(reply["content"], ids, (0.0,) * len(ids)),), (second["content"],))
        assert encode(Conversation((first, reply, second)), chat).ids == encode(played, chat).ids


def test_rollouts_with_more_turns_go_on_from_the_log(make_agent: MakeAgent, world: SimpleNamespace, logs: Logs) -> None:
    contexts = LoggedContexts(logs, "final")
    env = DialogueVectorEnv(2, None, world.Wants(), world.heard, 2, contexts=contexts)
    for agent in (make_agent(), FunctionAgent(lambda messages: f"{len(messages)} red")):
        for e in Rollout(env, agent).play([Start(i, i) for i in range(8)]):
            context = contexts.find(f"{e.messages[0]['content'].split()[0]}-{e.task_id}#2")
            assert e.messages[: e.given] == context.messages
            assert 1 <= e.n_turns <= 2
            assert len(e.completion_ids) == len(e.completion_mask)
            assert sum(e.completion_mask) == sum(s.end - s.start for s in e.spans)


def test_ordinary_episodes_have_nothing_given(make_agent: MakeAgent, world: SimpleNamespace) -> None:
    episodes = Rollout(world.make_env(2), make_agent()).play([Start(i) for i in range(4)])
    assert {e.given for e in episodes} == {0}
    assert all(e.played == e.messages for e in episodes)


def test_a_full_disk_costs_no_finished_step(static: MakeTrainer, world: Any, small_disk: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"reward": world.graded, "steps": 4, "save_steps": 2}
    whole = static(**options, output=str(tmp_path / "whole"))
    whole.train()
    output = str(small_disk.folder / "run")
    static(**{**options, "steps": 2}, output=output).train()
    with small_disk.full(80_000), pytest.raises(DiskFullError, match=r"the same command: it goes on from step 2\.$"):
        static(**options, output=output).train()
    resumed = static(**options, output=output)
    final = resumed.train()
    name = "final/model.safetensors"
    assert (final.parent / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert [e.completion_ids for e in whole.episodes.read()] == [e.completion_ids for e in resumed.episodes.read()]
    assert [row["step"] for row in resumed.metrics] == [1, 2, 3, 4]


def test_resume_goes_on_and_other_data_is_another_run(
    static: MakeTrainer, world: SimpleNamespace, logs: Logs, tmp_path: Path
) -> None:
    static(steps=1, save_steps=1).train()
    moved = write_logs(tmp_path / "moved.jsonl", logs)
    resumed = static(steps=2, save_steps=1, dialogues=str(moved))
    resumed.train()
    assert [row["step"] for row in resumed.metrics] == [1, 2]
    fresh = static(steps=2, output=str(tmp_path / "fresh"))
    fresh.train()
    assert [e.completion_ids for e in fresh.episodes.read()] == [e.completion_ids for e in resumed.episodes.read()]
    fewer = write_logs(tmp_path / "fewer.jsonl", logs[:3])
    with pytest.raises(
        DuologueError, match=r"another run \(data: 'logged\(n=8,turns=all,sha256=\w+\)' -> 'logged\(n=6"
    ):
        static(steps=2, dialogues=str(fewer)).train()
    with pytest.raises(DuologueError, match="turns: 'all' -> 'final'"):
        static(steps=2, turns="final").train()


def test_held_out_dialogues_must_not_be_in_training(static: MakeTrainer, logs: Logs, tmp_path: Path) -> None:
    leaked = write_logs(tmp_path / "test.jsonl", [logs[2]])
    with pytest.raises(DuologueError, match="'hi-red'"):
        static(held_out=str(leaked))
    task = logs[0].task.__class__("now", "say now", reference="now")
    clean = write_logs(tmp_path / "clean.jsonl", [logged("new", task, "then")])
    assert static(held_out=str(clean)).contexts.signature == static().contexts.signature


def test_histories_without_room_for_a_reply_are_refused(static: MakeTrainer) -> None:
    with pytest.raises(
        DuologueError, match=r"4 of 4 logged dialogues .* reply of 6 tokens, such as hello-red#2\. Raise"
    ):
        static(max_total_tokens=20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dialogues": None}, r"no dialogues to take histories from\. Set dialogues"),
        ({"dialogues": "x", "tasks": "math:level=1"}, r"bring their own tasks\. Leave out tasks"),
        ({"dialogues": "x", "group_size": 1}, r"group_size is 1"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_loads(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        StaticConfig(**changes)


def test_the_registered_environment_takes_the_contexts(world: SimpleNamespace, logs: Logs) -> None:
    contexts = LoggedContexts(logs)
    env: Any = env_maker(StaticConfig(dialogues="x"), contexts)(3)
    assert env.parts.contexts is contexts
    assert env.parts.dynamics.max_turns == 1
    env.close()


@pytest.mark.slow
def test_what_can_be_learned_from_logged_contexts_is_learned(static: MakeTrainer) -> None:
    made = static(steps=24, groups_per_step=4, group_size=8, micro_batch_size=16)
    made.train()
    rewards = by_step([e.reward or 0.0 for e in made.episodes.read()], 24)
    assert np.mean(rewards[-6:]) - np.mean(rewards[:6]) > 0.3
    assert min(rewards[-6:]) > max(rewards[:6])  # by chance 1 in 924


def by_step(values: Sequence[float], steps: int) -> list[float]:
    return [float(x) for x in np.reshape(values, (steps, -1)).mean(axis=1)]
