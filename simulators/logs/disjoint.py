"""That no test dialogue leaks into training, by id, words and task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from duologue.errors import DuologueError
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.types import Task

_QUOTED = 3


@dataclass(frozen=True, slots=True)
class Overlap:
    """Something that two sets of dialogues share."""

    kind: str
    """``id``, ``words`` (task and all messages) or ``task`` (instruction and reference)."""
    train_id: str
    test_id: str
    train_row: int
    """Place among the training dialogues, from 1: the line in a file without blank lines."""
    test_row: int
    key: str
    """The id or hash that is the same."""

    def __str__(self) -> str:
        return (
            f"the same {self.kind}: {self.train_id!r} (row {self.train_row}) and {self.test_id!r} (row {self.test_row})"
        )


def task_hash(task: Task) -> str:
    """Return 16 hex digits that identify instruction and reference, whatever the id."""
    return sha256(json.dumps([task.instruction, task.reference], ensure_ascii=False).encode()).hexdigest()[:16]


_KEYS: Mapping[str, Callable[[LoggedDialogue], str]] = {
    "id": lambda dialogue: dialogue.dialogue_id,
    "words": lambda dialogue: dialogue.content_hash,
    "task": lambda dialogue: task_hash(dialogue.task),
}


def overlaps(train: Sequence[LoggedDialogue], test: Sequence[LoggedDialogue]) -> list[Overlap]:
    """Return what the two share, at most one overlap of each kind for a test dialogue."""
    return [found for kind, key in _KEYS.items() for found in _shared(kind, key, train, test)]


def check_disjoint(train: Sequence[LoggedDialogue], test: Sequence[LoggedDialogue], *, tasks: bool = True) -> None:
    """Refuse training dialogues that share something with the test dialogues.

    Args:
        train: what is trained on.
        test: what is measured on.
        tasks: also refuse a task that both are about; False for splits by person, where tasks recur.

    Raises:
        DuologueError: if ids, words or tasks appear in both; quotes the first three.
    """
    found = [overlap for overlap in overlaps(train, test) if tasks or overlap.kind != "task"]
    if found:
        quoted = "; ".join(map(str, found[:_QUOTED]))
        raise DuologueError(
            f"Training and test dialogues share {len(found)} things: {quoted}. Remove them from one side, or split "
            "again with split_logs or duologue logs split."
        )


def _shared(
    kind: str, key: Callable[[LoggedDialogue], str], train: Sequence[LoggedDialogue], test: Sequence[LoggedDialogue]
) -> Iterator[Overlap]:
    first: dict[str, int] = {}
    for row, dialogue in enumerate(train):
        first.setdefault(key(dialogue), row)
    for row, dialogue in enumerate(test):
        value = key(dialogue)
        if value in first:
            other = train[first[value]]
            yield Overlap(kind, other.dialogue_id, dialogue.dialogue_id, first[value] + 1, row + 1, value)
