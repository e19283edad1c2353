"""Deterministic, disjoint splits of finite lists."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from math import ceil, log, log1p

from duologue.envs.tasks.lists import TaskList, content_hash
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

DEFAULT_FRACTIONS: Mapping[str, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
_RISK = 0.01
"""Probability at which a split of so many tasks may still be empty, for advice."""


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
    parts = _parts(tasks, fractions, seed)
    for split in fractions:
        _refuse_empty(parts, split, fractions)
    name = getattr(tasks, "name", "tasks")
    return {split: TaskList(part, f"{name}-{split}") for split, part in parts.items()}


def one_split(tasks: Sequence[Task] | TaskList, split: str) -> TaskList:
    """Return one of the parts that ``split_tasks`` makes by default; the others may be empty.

    Raises:
        DuologueError: if there is no such split, or it gets no task.
    """
    if split not in DEFAULT_FRACTIONS:
        raise DuologueError(f"There is no split {split!r}. {did_you_mean(split, DEFAULT_FRACTIONS)}")
    parts = _parts(tasks, DEFAULT_FRACTIONS, seed=0)
    _refuse_empty(parts, split, DEFAULT_FRACTIONS)
    return TaskList(parts[split], f"{getattr(tasks, 'name', 'tasks')}-{split}")


def _parts(tasks: Sequence[Task] | TaskList, fractions: Mapping[str, float], seed: int) -> dict[str, list[Task]]:
    if abs(sum(fractions.values()) - 1) > 1e-9 or min(fractions.values(), default=0) <= 0:
        raise DuologueError(f"Fractions must be positive with a sum of 1, got {dict(fractions)}. Change them.")
    parts: dict[str, list[Task]] = {split: [] for split in fractions}
    limits = list(accumulate(fractions.values()))
    for task in tasks:
        place = _place(task, seed)
        split = next((s for s, limit in zip(fractions, limits, strict=True) if place < limit), list(fractions)[-1])
        parts[split].append(task)
    return parts


def _place(task: Task, seed: int) -> float:
    """Return the task's place in [0, 1)."""
    digest = sha256(f"{seed}:{content_hash(task)}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _refuse_empty(parts: Mapping[str, Sequence[Task]], split: str, fractions: Mapping[str, float]) -> None:
    if parts[split]:
        return
    share, total = fractions[split], sum(map(len, parts.values()))
    enough = max(total + 1, ceil(log(_RISK) / log1p(-min(share, 0.99))))
    raise DuologueError(
        f"Of {total} tasks none falls into {split!r}, whose share is {share:g}: a split follows from what a task says, "
        f"not from their number. Give more tasks ({enough} nearly always suffice), or do not split them."
    )
