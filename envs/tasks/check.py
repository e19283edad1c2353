"""The task contract as a function: a task must be solvable by its own gold answer, and not by saying nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from duologue.envs.tasks.base import TaskSource
from duologue.errors import DuologueError
from duologue.rewards.base import Reward
from duologue.types import Dialogue, StopReason, Task

_TOLERANCE = 1e-6
_SHOWN = 5


def math_gold_reply(task: Task) -> str:
    """Return the reply of an assistant that knows the answer."""
    return f"Answer: {task.reference}"


def document_gold_reply(task: Task) -> str:
    """Return the reply of an assistant that hands over the goal document."""
    return f"<document>{task.reference}</document>"


def gold_reply(task: Task) -> str:
    """Return the document reply for a task with an outline, else the math reply."""
    return document_gold_reply(task) if task.outline else math_gold_reply(task)


def check_tasks(
    source: TaskSource, reward: Reward, n: int = 100, gold_reply: Callable[[Task], str] = gold_reply
) -> int:
    """Prove that tasks and reward fit: each task's gold answer scores 1, an empty one 0, and ids can be found again.

    Args:
        source: the tasks.
        reward: the reward they will be used with.
        n: how many tasks to check, from the first on.
        gold_reply: wraps a task's reference as an assistant would say it.

    Returns:
        The number of tasks checked; less than ``n`` if the source ends earlier.

    Raises:
        DuologueError: if a check fails; the message lists ids and the probable cause.
    """
    tasks = list(islice(source, n)) if n > 0 else []
    if not tasks:
        raise DuologueError(f"There are no tasks to check (n={n}). Give a source with tasks and n of 1 or more.")
    gold = _scores(reward, tasks, gold_reply)
    empty = _scores(reward, tasks, lambda task: "")
    faults = [*_faults(source, tasks), *_misses(tasks, gold, 1.0), *_misses(tasks, empty, 0.0)]
    if faults:
        raise DuologueError("The tasks do not pass:\n- " + "\n- ".join(faults))
    return len(tasks)


def _faults(source: TaskSource, tasks: Sequence[Task]) -> Iterator[str]:
    ids = [task.task_id for task in tasks]
    yield from _fault({i for i in ids if ids.count(i) > 1}, "share an id. Give each task its own.")
    yield from _fault(
        (t.task_id for t in tasks if not _found(source, t)), "are not what find(task_id) returns. Fix find."
    )
    yield from _fault((t.task_id for t in tasks if not t.instruction.strip()), "have an empty instruction. Fill it in.")
    yield from _fault(
        (t.task_id for t in tasks if any(fact and fact in t.instruction for fact in t.facts)),
        "give a fact away in the instruction, so there is nothing to ask. Take it out of one of the two.",
    )


def _fault(ids: Iterable[str], problem: str) -> Iterator[str]:
    listed = sorted(set(ids))
    if listed:
        more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        yield f"{', '.join(listed[:_SHOWN])}{more} {problem}"


def _found(source: TaskSource, task: Task) -> bool:
    try:
        return source.find(task.task_id) == task
    except (DuologueError, KeyError):
        return False


def _scores(reward: Reward, tasks: Sequence[Task], reply: Callable[[Task], str]) -> list[float | None]:
    dialogues = [
        Dialogue(task, seed=0)
        .then("user", task.instruction)
        .then("assistant", reply(task))
        .ended(StopReason.USER_SATISFIED)
        for task in tasks
    ]
    scores = reward(dialogues)
    if len(scores) != len(tasks):
        raise DuologueError(
            f"The reward gave {len(scores)} scores for {len(tasks)} dialogues. Return one each, in order."
        )
    return scores


def _misses(tasks: Sequence[Task], scores: Sequence[float | None], wanted: float) -> Iterator[str]:
    pairs = list(zip(tasks, scores, strict=True))
    what = "gold answer" if wanted else "empty answer"
    yield from _fault(
        (t.task_id for t, score in pairs if score is None),
        f"were not scored (None) for the {what}: the reward failed on them. Read its log, or correct the references.",
    )
    wrong = {t.task_id: score for t, score in pairs if score is not None and not abs(score - wanted) <= _TOLERANCE}
    cause = (
        "the reference is not readable for this reward, or gold_reply wraps it in another way than the reward reads. "
    )
    cause = cause if wanted else "the reward gives credit for nothing. "
    yield from _fault(
        wrong, f"do not score {wanted:g} for the {what} (scores: {list(wrong.values())[:_SHOWN]}): {cause}Correct that."
    )
