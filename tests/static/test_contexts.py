"""Which histories are drawn, how they are called, and what is refused."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.envs.contexts import LoggedContexts, make_contexts
from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.types import Message, Task


def test_every_assistant_turn_has_the_history_before_it(logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged)
    assert [c.context_id for c in contexts] == ["a#1", "a#2", "b#1", "c#1", "c#2", "c#3"]
    assert [[m["content"] for m in c.messages] for c in list(contexts)[:3]] == [
        ["hi"],
        ["hi", "what?", "the colour"],
        ["hello"],
    ]
    assert [c.task.task_id for c in contexts] == ["red", "red", "blue", "red", "red", "red"]
    assert [t.task_id for t in contexts.tasks] == ["red", "blue"]


def test_final_turns_are_one_row_a_dialogue(logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged, turns="final")
    assert [c.context_id for c in contexts] == ["a#2", "b#1", "c#3"]
    assert [m["content"] for m in contexts.find("c#3").messages] == ["hey", "hm", "come on", "green", "no"]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.booleans())
def test_histories_are_prefixes_that_end_with_the_user(turns: list[int], closed: bool) -> None:
    dialogues = [made(str(i), 2 * n + closed) for i, n in enumerate(turns)]
    contexts = list(LoggedContexts(dialogues))
    assert len(contexts) == sum(turns)
    by_id = {d.dialogue_id: d for d in dialogues}
    for context in contexts:
        name, _, k = context.context_id.rpartition("#")
        assert context.messages == by_id[name].messages[: 2 * int(k) - 1]
        assert context.messages[-1]["role"] == "user"
        assert by_id[name].messages[len(context.messages)]["role"] == "assistant"


def made(dialogue_id: str, n: int) -> LoggedDialogue:
    messages = tuple(Message(role=("user", "assistant")[i % 2], content=f"m{i}") for i in range(n))
    return LoggedDialogue(dialogue_id, Task("t", "x", reference="y"), messages)


def test_draws_are_uniform_over_rows_and_repeat(logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged)
    rng = np.random.default_rng(0)
    counts = Counter(contexts.draw(rng).context_id for _ in range(6000))
    assert set(counts) == {c.context_id for c in contexts}
    chi2 = sum((n - 1000) ** 2 / 1000 for n in counts.values())
    assert chi2 < 20.5  # 99.9 % of the chi-squared distribution with 5 degrees of freedom
    first, again = (contexts.draw(np.random.default_rng(7)) for _ in range(2))
    assert first == again
    assert {contexts.draw(rng, "blue").context_id for _ in range(9)} == {"b#1"}


def test_signatures_tell_data_order_and_turns_apart(logs: SimpleNamespace) -> None:
    base = LoggedContexts(logs.logged).signature
    assert base.startswith("logged(n=6,turns=all,sha256=")
    assert base == LoggedContexts(logs.logged).signature
    changed = [replace(logs.logged[0], messages=logs.logged[0].messages[:2]), *logs.logged[1:]]
    others = [LoggedContexts(logs.logged, "final"), LoggedContexts(logs.logged[::-1]), LoggedContexts(changed)]
    assert len({base, *(other.signature for other in others)}) == 4


def test_a_file_is_read_and_broken_characters_become_valid(logs: SimpleNamespace, tmp_path: Path) -> None:
    file = write_logs(tmp_path / "logs.jsonl", logs.logged)
    contexts = make_contexts(str(file))
    assert contexts is not None
    assert contexts.signature == LoggedContexts(logs.logged).signature
    assert make_contexts(contexts) is contexts
    assert make_contexts(None) is None
    row = json.dumps(logs.logged[1].to_json()).replace('"hello"', '"hell\\ud800"')
    half = LoggedDialogue.from_json(json.loads(row))
    odd = LoggedContexts([half])
    assert odd.signature
    odd.find("b#1").messages[-1]["content"].encode()


def broken(logs: SimpleNamespace, case: str) -> list[LoggedDialogue]:
    d = logs.dialogue
    return {
        "none": [],
        "twice": [logs.logged[0], logs.logged[0]],
        "order": [replace(logs.logged[1], messages=logs.logged[1].messages[::-1])],
        "alone": [d("x", "t", "hi")],
        "blank": [d("x", "t", "hi", "yes?", "  ", "ok")],
        "tasks": [d("x", "t", "hi", "yo"), replace(d("y", "t", "hi", "yo"), task=Task("t", "other", reference="r"))],
    }[case]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("none", r"no assistant turn.* Pass dialogues in which both spoke\.$"),
        ("twice", r"one dialogue_id\. Give each its own\.$"),
        ("order", r"'b' must start with the user and take turns\. Merge or drop"),
        ("alone", r"no assistant turn.* Pass dialogues in which both spoke\.$"),
        ("blank", r"'x' has a blank user message.* Leave it out\.$"),
        ("tasks", r"two tasks with the id 't'\. Give each its own id\.$"),
    ],
)
def test_what_cannot_be_a_context_is_refused(logs: SimpleNamespace, case: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        LoggedContexts(broken(logs, case))


def test_a_dialogue_in_which_only_the_user_spoke_has_no_context(logs: SimpleNamespace) -> None:
    for turns in ("all", "final"):
        contexts = LoggedContexts([logs.dialogue("x", "t", "hi"), logs.logged[1]], turns)
        assert [c.context_id for c in contexts] == ["b#1"]
        assert [t.task_id for t in contexts.tasks] == ["blue"]


def test_a_blank_goodbye_is_no_context_and_does_no_harm(logs: SimpleNamespace) -> None:
    assert len(LoggedContexts([logs.dialogue("x", "t", "hi", "yo", " ")])) == 1


def test_names_that_do_not_exist(logs: SimpleNamespace) -> None:
    contexts = LoggedContexts(logs.logged)
    with pytest.raises(DuologueError, match=r"No context 'a#9'. Write DIALOGUE#TURN, for instance 'a#1'"):
        contexts.find("a#9")
    with pytest.raises(DuologueError, match=r"No task 'blu'.*Did you mean 'blue'"):
        contexts.draw(np.random.default_rng(0), "blu")
    with pytest.raises(DuologueError, match=r"turns 'finl'. Did you mean 'final'"):
        LoggedContexts(logs.logged, "finl")
    wrong: Any = [1]
    with pytest.raises(DuologueError, match=r"contexts is list. Pass LoggedContexts or the path"):
        make_contexts(wrong)
