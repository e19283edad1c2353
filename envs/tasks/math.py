"""Arithmetic and word problems in five levels, made on demand, with every number held back."""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import count
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np

from duologue.envs.tasks.dice import Dice
from duologue.envs.tasks.math_templates import ITEMS, LETTERS, NAMES, TEMPLATES, Template
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Task

Work = list[tuple[str, Fraction]]

SPLITS = ("train", "validation", "test")
_BUCKETS = ("train",) * 7 + ("validation",) + ("test",) * 2
_DRAWN_FROM = 10_000_000
_ID = re.compile(r"math-l\d+-\w+-(\d{7,})")
_OPERATORS: dict[str, Any] = {"+": add, "-": sub, "*": mul, "/": truediv}
_WORDING = sha256(repr((TEMPLATES, NAMES, ITEMS, LETTERS, _BUCKETS)).encode()).hexdigest()[:8]


class MathTasks:
    """An unlimited source of problems whose question holds no number; each fact holds one.

    =====  =====================================================================
    Level  Problems
    =====  =====================================================================
    1      one sum, two facts, numbers from 2 to 9
    2      differences, products, quotients, larger sums, two or three facts
    3      two steps, three facts
    4      percentages and fractions, four facts
    5      three to six steps, four or five facts
    =====  =====================================================================

    Level 1 leaves out differences because a model of 135M parameters can add such numbers but not subtract them.

    A problem's split follows from a hash of its template and numbers, in whatever order: 7 in 10 are train, 1 in 10
    validation, 2 in 10 test. So the splits stay disjoint however many tasks are drawn, and a test problem does not
    occur in train under other names, with other things to count or with its numbers swapped. Within a split, two ids
    can hold the same problem.

    The id fixes the problem on every platform and version of NumPy: all choices come from SHA-256 of the id.

    Args:
        level: 1 to 5.
        split: ``train``, ``validation`` or ``test``.

    Raises:
        DuologueError: for an unknown level or split.
    """

    def __init__(self, level: int = 1, split: str = "train") -> None:
        if level not in range(1, len(TEMPLATES) + 1):
            raise DuologueError(f"There is no math level {level!r}. Choose one of 1 to {len(TEMPLATES)}.")
        if split not in SPLITS:
            raise DuologueError(f"There is no math split {split!r}. {did_you_mean(split, SPLITS)}")
        self.level = level
        self.split = split

    @property
    def signature(self) -> str:
        """Level, split and a hash of the wording and the splits' sizes."""
        return f"math(level={self.level},split={self.split},sha256={_WORDING})"

    def draw(self, rng: np.random.Generator) -> Task:
        """Return one of the first ten million tasks."""
        return self.at(int(rng.integers(_DRAWN_FROM)))

    def find(self, task_id: str) -> Task:
        """Make the task with this id again.

        Raises:
            DuologueError: if the id is none of this source's; the message names the nearest one.
        """
        match = _ID.fullmatch(task_id)
        index = int(match[1]) if match else 0
        if task_id != self._id(index):
            raise DuologueError(f"No task {task_id!r} in {self.signature}. Did you mean {self._id(index)!r}?")
        return self.at(index)

    def __iter__(self) -> Iterator[Task]:
        """Count up from index 0, without end."""
        return map(self.at, count())

    def at(self, index: int) -> Task:
        """Make the task with this index (0 or more)."""
        task_id = self._id(index)
        dice = Dice(task_id)
        template = dice.pick(TEMPLATES[self.level - 1])
        words = _words(dice)
        numbers, work = _numbers(template, self.split, task_id)
        fields = words | dict(zip("abcde", map(str, numbers), strict=False))
        return Task(
            task_id=task_id,
            instruction=template.question.format(**fields),
            reference=str(work[-1][1]),
            solution="\n".join(f"{step} = {value}" for step, value in work),
            facts=tuple(fact.format(**fields) for fact in template.facts),
            metadata={"level": self.level, "kind": template.kind, "split": self.split},
        )

    def _id(self, index: int) -> str:
        return f"math-l{self.level}-{self.split}-{index:07d}"


def _words(dice: Dice) -> dict[str, str]:
    first = dice.pick(NAMES)
    second = dice.pick([name for name in NAMES if name != first])
    u, v = dice.pick(LETTERS)
    return {"n1": first, "n2": second, "u": u, "v": v, "items": dice.pick(ITEMS)}


def _numbers(template: Template, split: str, seed: str) -> tuple[tuple[int, ...], Work]:
    """Return the first allowed numbers of this split, and the way to the answer."""
    for attempt in count():
        dice = Dice(f"{seed}/{attempt}")
        numbers = tuple(dice.pick(options) for options in template.numbers)
        if _split_of(template, numbers) == split and _allowed(template, work := _work(template, numbers)):
            return numbers, work
    raise AssertionError("unreachable: every template has numbers in every split")


def _work(template: Template, numbers: Sequence[int]) -> Work:
    """Take the template's steps: each as text, such as ``7 + 5``, with its result."""
    values = {letter: Fraction(number) for letter, number in zip("abcde", numbers, strict=False)}
    work: Work = []
    for step in template.steps:
        left, sign, right = step.split()
        x, y = (values[name] if name in values else Fraction(name) for name in (left, right))
        if y == 0:  # an earlier step came out at 0, which is not allowed in any case
            return [(step, Fraction(0))]
        work.append((f"{x} {sign} {y}", _OPERATORS[sign](x, y)))
        values[f"s{len(work)}"] = work[-1][1]
    return work


def _allowed(template: Template, work: Work) -> bool:
    results = [value for _, value in work]
    whole = results[:-1] if template.fraction else results
    return (
        all(value > 0 for value in results)
        and all(value.denominator == 1 for value in whole)
        and results[-1] <= template.largest
    )


def _split_of(template: Template, numbers: Sequence[int]) -> str:
    """Sorted, because "Tom has 3, Ann has 5" is "Ann has 3, Tom has 5" with the names swapped."""
    key = f"{template.kind}:{','.join(map(str, sorted(numbers)))}"
    return _BUCKETS[int.from_bytes(sha256(key.encode()).digest(), "big") % len(_BUCKETS)]
