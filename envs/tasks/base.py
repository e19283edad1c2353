"""The task-source contract: where an environment's tasks come from."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from duologue.types import Task


class TaskSource(Protocol):
    """A finite list or an unlimited generator of tasks."""

    @property
    def signature(self) -> str:
        """Return a short string with name, split, level and, for finite sources, size and content hash."""
        ...

    def draw(self, rng: np.random.Generator) -> Task:
        """Return a task; the same generator state gives the same task."""
        ...

    def find(self, task_id: str) -> Task:
        """Return the task with this id.

        Raises:
            DuologueError: if there is none; the message names the nearest id.
        """
        ...

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks in a fixed order (for a generator: without end)."""
        ...
