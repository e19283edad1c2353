"""Splits are disjoint, deterministic and stable; leaks between two sets are found."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, check_disjoint, overlaps, split_logs, task_hash
from duologue.types import Message, Task

MakeDialogue = Callable[..., LoggedDialogue]

SHARES = {"train": 0.6, "test": 0.4}


def logged(task: int, words: int, person: int, i: int) -> LoggedDialogue:
    said = (Message(role="user", content=f"words {words}"),)
    return LoggedDialogue(f"d-{i}", Task(f"t-{i}", f"Task {task}?", ""), said, person=f"p-{person}")


@pytest.mark.parametrize("by", ["dialogue", "person", "task"])
def test_parts_hold_every_dialogue_once_in_order(by: str, dialogue: MakeDialogue) -> None:
    logs = [dialogue(i, person=f"p-{i % 20}") for i in range(200)]
    parts = split_logs(logs, SHARES, by)  # type: ignore[arg-type]
    assert Counter(d.dialogue_id for part in parts.values() for d in part) == Counter(d.dialogue_id for d in logs)
    assert all(part == [d for d in logs if d in part] for part in parts.values())
    assert 0.35 < len(parts["train"]) / 200 < 0.85
    check_disjoint(parts["train"], parts["test"])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=25),
    st.sampled_from(["dialogue", "person", "task"]),
    st.integers(0, 5),
)
def test_no_group_and_no_words_stand_in_two_parts(rows: list[tuple[int, int, int]], by: str, seed: int) -> None:
    logs = [logged(*row, i) for i, row in enumerate(rows)]
    try:
        parts = split_logs(logs, SHARES, by, seed)  # type: ignore[arg-type]
    except DuologueError:  # too few groups for two parts
        return
    for key in (
        lambda d: d.content_hash,
        lambda d: d.person if by == "person" else None,
        lambda d: task_hash(d.task) if by == "task" else None,
    ):
        train, test = ({key(d) for d in parts[name]} - {None} for name in ("train", "test"))
        assert not train & test
    backwards = split_logs(logs[::-1], SHARES, by, seed)  # type: ignore[arg-type]
    assert {name: part[::-1] for name, part in backwards.items()} == parts


def test_later_rows_move_no_others_and_the_seed_matters(dialogue: MakeDialogue) -> None:
    few, many = ([dialogue(i) for i in range(n)] for n in (40, 120))
    old, new = split_logs(few, SHARES), split_logs(many, SHARES)
    assert all({d.dialogue_id for d in old[name]} <= {d.dialogue_id for d in new[name]} for name in SHARES)
    assert split_logs(few, SHARES) == old
    assert split_logs(few, SHARES, seed=1) != old


def test_persons_who_share_a_dialogue_word_for_word_stay_together() -> None:
    tied = [logged(0, 0, 1, 0), logged(0, 0, 2, 1), logged(1, 1, 1, 2), logged(2, 2, 2, 3)]
    others = [logged(9 + i, 9, 10 + i, 10 + i) for i in range(20)]
    for seed in range(10):
        parts = split_logs([*tied, *others], {"a": 0.5, "b": 0.5}, "person", seed)
        assert sum(any(d in tied for d in part) for part in parts.values()) == 1


@pytest.mark.parametrize(
    ("shares", "by", "message"),
    [
        ({"train": 0.8, "test": 0.1}, "dialogue", "with a sum of 1"),
        ({"train": 1.2, "test": -0.2}, "dialogue", "must be positive"),
        ({}, "dialogue", "must be positive"),
        (SHARES, "persons", "Did you mean 'person'"),
        (SHARES, "person", "not known whose dialogue 'd-0' is.*split by task or dialogue"),
        ({"train": 0.999, "test": 0.001}, "dialogue", "none falls into 'test'. Give more dialogues"),
    ],
)
def test_bad_splits(shares: dict[str, float], by: str, message: str, dialogue: MakeDialogue) -> None:
    with pytest.raises(DuologueError, match=message):
        split_logs([dialogue(i) for i in range(5)], shares, by)  # type: ignore[arg-type]


def test_overlaps_name_ids_words_and_tasks_with_their_rows(dialogue: MakeDialogue) -> None:
    other = (Message(role="user", content="said in another way"),)
    train = [dialogue(0), dialogue(1), dialogue(2)]
    test = [dialogue(5), dialogue(1, dialogue_id="new"), dialogue(2, dialogue_id="newer", messages=other)]
    found = [(o.kind, o.train_id, o.train_row, o.test_id, o.test_row) for o in overlaps(train, test)]
    assert found == [
        ("words", "d-1", 2, "new", 2),
        ("task", "d-1", 2, "new", 2),
        ("task", "d-2", 3, "newer", 3),
    ]
    with pytest.raises(DuologueError, match=r"share 3 things: the same words: 'd-1' \(row 2\) and 'new' \(row 2\)"):
        check_disjoint(train, test)
    check_disjoint(train, [test[0], test[2]], tasks=False)
    with pytest.raises(DuologueError, match="the same id: 'd-0'"):
        check_disjoint(train, [dialogue(7, dialogue_id="d-0")], tasks=False)
