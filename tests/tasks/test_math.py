import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from duologue.envs.tasks.math import MathTasks, _split_of
from duologue.envs.tasks.math_templates import TEMPLATES
from duologue.errors import DuologueError
from duologue.types import Task

LEVELS = (1, 2, 3, 4, 5)
SPLITS = ("train", "validation", "test")
GOLDEN_L1 = (
    "How many marbles does Mia have in all?",
    ("Mia has 7 marbles at home.", "Mia has 2 marbles at school."),
    "9",
)
GOLDEN_L5 = (
    "How many dollars does the bakery take in today?",
    (
        "The bakery fills 18 trays with rolls.",
        "Each tray holds 35 rolls.",
        "40 percent of the rolls are not sold.",
        "5 rolls are given away for free, the rest is paid for.",
        "One roll costs 4 dollars.",
    ),
    "1492",
)


def first(n: int, level: int, split: str = "train") -> list[Task]:
    return list(itertools.islice(MathTasks(level, split), n))


def numbers(task: Task) -> tuple[str, ...]:
    return tuple(n for fact in task.facts for n in re.findall(r"\d+", fact.replace("1/", "")))


def problem(task: Task) -> tuple[object, ...]:
    return task.metadata["kind"], *sorted(map(int, numbers(task)))


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
        "boxes": lambda a, b: a * b,
        "buy-and-give": lambda a, b, c: a + b - c,
        "goal": lambda a, b: a - b,
        "share": lambda a, b: a // b,
        "loss": lambda a, b: a - b,
        "difference": lambda a, b: a - b,
        "bare-minus-2": lambda a, b: a - b,
        "bare-times-2": lambda a, b: a * b,
        "bare-plus-2": lambda a, b: a + b,
    }
    tasks = first(300, 2)
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


def test_level_1_is_one_sum_of_two_digits() -> None:
    for task in first(500, 1):
        assert not re.search(r"\b(more|left|fewer|less|minus)\b", task.instruction)
        assert all(3 <= len(fact.split()) <= 7 for fact in task.facts)
        left, right = map(int, numbers(task))
        assert {left, right} <= set(range(2, 10))
        assert (task.reference, task.solution) == (f"{left + right}", f"{left} + {right} = {left + right}")


@pytest.mark.parametrize("level", LEVELS)
def test_splits_share_no_problem_under_any_names_or_order(level: int) -> None:
    seen = {split: {problem(task) for task in first(300, level, split)} for split in SPLITS}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["validation"]
    assert not seen["validation"] & seen["test"]


@pytest.mark.parametrize(("split", "least"), [("train", 250), ("validation", 35), ("test", 80)])
def test_no_split_of_level_1_is_tiny(split: str, least: int) -> None:
    tasks = first(1500, 1, split)
    assert len({(task.instruction, task.facts) for task in tasks}) > 1000
    assert len({(task.metadata["kind"], numbers(task)) for task in tasks}) >= least


def test_seven_in_ten_are_train_and_two_in_ten_test() -> None:
    found = Counter(_split_of(TEMPLATES[0][0], (a, b)) for a in range(100) for b in range(a, 100))
    for split, share in zip(SPLITS, (0.7, 0.1, 0.2), strict=True):
        assert found[split] / found.total() == pytest.approx(share, abs=0.03)


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
    task = MathTasks(1, "train").find("math-l1-train-0000124")
    assert (task.instruction, task.facts, task.reference) == GOLDEN_L1
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
