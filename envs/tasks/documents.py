"""The goal documents that come with the package."""

import json
from collections.abc import Iterator
from importlib.resources import files

from duologue.envs.tasks.lists import TaskList
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

LENGTHS = ("short", "long")
SPLITS = ("train", "test")


class DocumentTasks(TaskList):
    """The embedded goal documents, with the outline and the facts that the user knows.

    Args:
        length: ``short`` (some 60 to 100 words), ``long`` (some 250 to 400) or None for both.
        split: ``train`` or ``test``.

    Raises:
        DuologueError: for an unknown length or split.
    """

    def __init__(self, length: str | None = "short", split: str = "train") -> None:
        if length is not None and length not in LENGTHS:
            raise DuologueError(f"There is no document length {length!r}. {did_you_mean(length, LENGTHS)}")
        if split not in SPLITS:
            raise DuologueError(f"There is no document split {split!r}. {did_you_mean(split, SPLITS)}")
        wanted = LENGTHS if length is None else (length,)
        tasks = (t for t in _embedded() if t.metadata["length"] in wanted and t.metadata["split"] == split)
        super().__init__(tasks, f"documents-{length or 'all'}-{split}")
        self.length = length
        self.split = split


def _embedded() -> Iterator[Task]:
    text = (files("duologue.envs.tasks") / "data" / "documents.jsonl").read_text(encoding="utf-8")
    return (Task.from_json(json.loads(line)) for line in text.split("\n") if line.strip())
