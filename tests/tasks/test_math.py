import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from duologue.envs.tasks.math import MathTasks
from duologue.envs.tasks.math_templates import TEMPLATES
from duologue.errors import DuologueError
from duologue.types import Task

LEVELS = (1, 2, 3, 4, 5)
SPLITS = ("train", "validation", "test")
GOLDEN_123 = ("What is x minus y?", ("x is 18.", "y is 11."), "7")
GOLDEN_L5 = (
    "How many dollars does the bakery take in today?",
    (
        "The bakery fills 12 trays with rolls.",
        "Each tray holds 25 rolls.",
        "10 percent of the rolls are not sold.",
        "6 rolls are given away for free, the rest is paid for.",
        "One roll costs 3 dollars.",
    ),
    "792",
)


def first(n: int, level: int, split: str = "train") -> list[Task]:
    return list(itertools.islice(MathTasks(level, split), n))


def numbers(task: Task) -> tuple[str, ...]:
    return tuple(n for fact in task.facts for n in re.findall(r"\d+", fact.replace("1/", "")))


def problem(task: Task) -> tuple[object, ...]:
    return task.metadata["kind"], numbers(task)


@pytest.mark.parametrize("level", LEVELS)
def test_each_fact_holds_one_number_and_the_question_none(level: int) -> None:
    for task in first(300, level):
        assert not re.search(r"\d", task.instruction)
        assert len(numbers(task)) == len(task.facts) <= 5
        assert "{" not in task.instruction + "".join(task.facts)


@pytest.mark.parametrize("level", LEVELS)
def test_the_worked_steps_are_true_and_end_in_the_reference(level: int) -> None:
    for task in first(300, level):
        for line in task.solution.split("\n"):
            left, sign, right, _, result = line.split()
            x, y = Fraction(left), Fraction(right)
            assert {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[sign] == Fraction(result) > 0
        assert task.reference == result


def test_the_wording_means_the_step() -> None:
    """Answers worked out from the sentences, independently of the templates' steps."""
    rules: dict[str, Callable[..., int]] = {
        "gain": lambda a, b: a + b,
        "loss": lambda a, b: a - b,
        "together": lambda a, b: a + b,
        "difference": lambda a, b: a - b,
        "bare-plus-1": lambda a, b: a + b,
        "bare-minus-1": lambda a, b: a - b,
    }
    tasks = first(300, 1)
    assert {t.metadata["kind"] for t in tasks} == set(rules)
    for task in tasks:
        assert int(task.reference) == rules[str(task.metadata["kind"])](*map(int, numbers(task)))


def test_hard_levels_give_the_answers_worked_out_by_hand() -> None:
    rules: dict[str, Callable[..., float]] = {
        "discount": lambda a, b, c, d: a * b * (1 - c / 100) + d,
        "part-given": lambda a, b, c, d: a * (1 - 1 / b) - c + d,
        "bus": lambda a, b, c, d: a * b * (1 - c / 100) - d,
        "red-part": lambda a, b, c, d: a / (a + b + c + d),
        "percent-sold": lambda a, b, c, d: 100 * (c + d) / (a + b),
        "machine": lambda a, b, c, d, e: a * b * c - d - e,
        "trip": lambda a, b, c, d, e: a * b + c * d - e,
        "drive": lambda a, b, c, d, e: a / b + c / d + e,
        "saving": lambda a, b, c, d: (a - b) / (c - d),
        "bakery": lambda a, b, c, d, e: (a * b * (1 - c / 100) - d) * e,
    }
    tasks = first(200, 4) + first(200, 5)
    assert {t.metadata["kind"] for t in tasks} == set(rules)
    for task in tasks:
        expected = rules[str(task.metadata["kind"])](*map(int, numbers(task)))
        assert float(Fraction(task.reference)) == pytest.approx(expected)


def test_level_1_is_small_and_simple() -> None:
    for task in first(500, 1):
        assert 1 <= int(task.reference) <= 20
        assert len(task.facts) == 2
        assert all(3 <= len(fact.split()) <= 7 for fact in task.facts)
        assert all(2 <= int(n) <= 20 for n in numbers(task))


@pytest.mark.parametrize("level", LEVELS)
def test_splits_share_no_problem_under_any_names(level: int) -> None:
    seen = {split: {problem(task) for task in first(300, level, split)} for split in SPLITS}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["validation"]
    assert not seen["validation"] & seen["test"]


@pytest.mark.parametrize("split", SPLITS)
def test_no_split_of_level_1_is_tiny(split: str) -> None:
    tasks = first(1500, 1, split)
    assert len({(task.instruction, task.facts) for task in tasks}) > 1000
    assert len({problem(task) for task in tasks}) > 50


@pytest.mark.parametrize("level", LEVELS)
def test_every_template_occurs_in_every_split(level: int) -> None:
    for split in SPLITS:
        assert {task.metadata["kind"] for task in first(200, level, split)} == {t.kind for t in TEMPLATES[level - 1]}


def test_kinds_are_unique() -> None:
    kinds = [template.kind for templates in TEMPLATES for template in templates]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("level", LEVELS)
def test_find_makes_a_drawn_task_again(level: int) -> None:
    source = MathTasks(level, "test")
    task = source.draw(np.random.default_rng(3))
    assert source.find(task.task_id) == task == source.draw(np.random.default_rng(3))
    assert source.draw(np.random.default_rng(4)) != task


def test_tasks_are_what_they_were() -> None:
    """A change here changes every published number: the signature must change with it."""
    task = MathTasks(1, "train").find("math-l1-train-0000123")
    assert (task.instruction, task.facts, task.reference) == GOLDEN_123
    task = MathTasks(5, "test").at(12_345_678)
    assert task.task_id == "math-l5-test-12345678"
    assert (task.instruction, task.facts, task.reference) == GOLDEN_L5


def test_another_process_makes_the_same_tasks() -> None:
    code = "from duologue.envs.tasks.math import MathTasks; print(repr(MathTasks(3).at(7)), MathTasks(3).signature)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{MathTasks(3).at(7)!r} {MathTasks(3).signature}"


@pytest.mark.parametrize("task_id", ["math-l2-train-0000123", "math-l1-test-0000123", "math-l1-train-123"])
def test_an_id_of_another_source_is_refused(task_id: str) -> None:
    with pytest.raises(DuologueError, match=r"Did you mean 'math-l1-train-0000\d\d\d'"):
        MathTasks().find(task_id)


def test_unknown_level_and_split() -> None:
    with pytest.raises(DuologueError, match="1 to 5"):
        MathTasks(6)
    with pytest.raises(DuologueError, match="Did you mean 'test'"):
        MathTasks(1, "tests")


def test_signatures_tell_level_and_split() -> None:
    assert len({MathTasks(level, split).signature for level in LEVELS for split in SPLITS}) == 15
