"""A finite source of tasks."""

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256

import numpy as np

from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task


def content_hash(task: Task) -> str:
    """Return the SHA-256 (64 hex digits) of what a task says: instruction, facts and reference, without its id."""
    content = [task.instruction, list(task.facts), task.reference]
    return sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


class TaskList:
    """Tasks in a fixed order.

    Args:
        tasks: at least one, with distinct ids.
        name: what signatures call this list.

    Raises:
        DuologueError: if there is no task, or two have one id.
    """

    def __init__(self, tasks: Iterable[Task], name: str = "tasks") -> None:
        self.name = name
        self._tasks = tuple(tasks)
        self._by_id = {task.task_id: task for task in self._tasks}
        if not self._tasks:
            raise DuologueError(f"The task list {name!r} is empty. Give it at least one task.")
        if len(self._by_id) < len(self._tasks):
            raise DuologueError(
                f"The task list {name!r} holds two tasks with the id {_repeated(self._tasks)!r}. Give each its own id."
            )

    @cached_property
    def signature(self) -> str:
        """Name, size and a hash of the tasks with their order, on which draws depend."""
        rows = "\n".join(json.dumps(task.to_json(), sort_keys=True, ensure_ascii=False) for task in self._tasks)
        return f"{self.name}(n={len(self)},sha256={sha256(rows.encode()).hexdigest()[:12]})"

    def draw(self, rng: np.random.Generator) -> Task:
        """Return a task, each with the same probability."""
        return self._tasks[int(rng.integers(len(self)))]

    def find(self, task_id: str) -> Task:
        """Return the task with this id.

        Raises:
            DuologueError: if there is none; the message names the nearest id.
        """
        if task_id not in self._by_id:
            raise DuologueError(f"No task {task_id!r} in {self.name!r}. {_nearest(task_id, self._by_id)}")
        return self._by_id[task_id]

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks, once, in order."""
        return iter(self._tasks)

    def __len__(self) -> int:
        """Return how many tasks there are."""
        return len(self._tasks)


def _repeated(tasks: Iterable[Task]) -> str:
    seen: set[str] = set()
    return next(t.task_id for t in tasks if t.task_id in seen or seen.add(t.task_id))  # type: ignore[func-returns-value]


def _nearest(task_id: str, known: Iterable[str]) -> str:
    """Return ``did_you_mean``'s sentence, but do not list thousands of ids when none is close."""
    ids = list(known)
    sentence = did_you_mean(task_id, ids)
    return sentence if sentence.startswith("Did") or len(ids) <= 10 else f"Ids look like {ids[0]!r}."
