"""Deterministic, disjoint splits of finite lists."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import accumulate

from duologue.envs.tasks.lists import TaskList, content_hash
from duologue.errors import DuologueError
from duologue.types import Task

DEFAULT_FRACTIONS: Mapping[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}


def split_tasks(
    tasks: Sequence[Task] | TaskList, fractions: Mapping[str, float] = DEFAULT_FRACTIONS, seed: int = 0
) -> dict[str, TaskList]:
    """Split tasks by a hash of their content.

    A task's split depends on its own content and ``seed`` alone: not on its id, its place or the other tasks. So equal
    tasks under two ids land in one split, and tasks added later move none. Sizes match ``fractions`` on average.

    Args:
        tasks: the tasks to split.
        fractions: share of each split; positive, with a sum of 1.
        seed: another seed gives another split.

    Returns:
        One list per split, named ``<name of the list>-<split>``.

    Raises:
        DuologueError: if the fractions are no shares of a whole, or a split gets no task.
    """
    if abs(sum(fractions.values()) - 1) > 1e-9 or min(fractions.values(), default=0) <= 0:
        raise DuologueError(f"Fractions must be positive with a sum of 1, got {dict(fractions)}. Change them.")
    parts: dict[str, list[Task]] = {split: [] for split in fractions}
    limits = list(accumulate(fractions.values()))
    for task in tasks:
        place = _place(task, seed)
        parts[
            next((s for s, limit in zip(fractions, limits, strict=True) if place < limit), list(fractions)[-1])
        ].append(task)
    _refuse_empty(parts)
    name = getattr(tasks, "name", "tasks")
    return {split: TaskList(part, f"{name}-{split}") for split, part in parts.items()}


def _place(task: Task, seed: int) -> float:
    """Return the task's place in [0, 1)."""
    digest = sha256(f"{seed}:{content_hash(task)}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _refuse_empty(parts: Mapping[str, Sequence[Task]]) -> None:
    total = sum(map(len, parts.values()))
    for split, part in parts.items():
        if not part:
            raise DuologueError(f"Of {total} tasks none falls into {split!r}. Give more tasks or a larger fraction.")
