"""The embedded goal documents: sizes, splits, originality against their own facts and against each other."""

import json
import re
from importlib.resources import files
from itertools import combinations

import pytest
from sacrebleu.metrics.bleu import BLEU

from duologue.types import Task

TEXT = (files("duologue.envs.tasks") / "data" / "documents.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in TEXT.splitlines()]
TASKS = [Task.from_json(row) for row in ROWS]
WORDS = {"short": (60, 100), "long": (250, 400)}
COUNTS = {"short": 40, "long": 24}
SHARES = {"train": 0.60, "validation": 0.15, "test": 0.25}
KINDS = {"article", "email", "post", "notice", "story"}
RUN = 8


def runs(text: str) -> set[tuple[str, ...]]:
    """Return every run of ``RUN`` consecutive words, case and punctuation aside."""
    words = re.findall(r"[\w']+", text.lower())
    return {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d.,:]*\d|\d", text))


def n_words(text: str) -> int:
    return len(text.split())


def texts(task: Task) -> tuple[str, ...]:
    return (task.instruction, task.reference, *task.facts, *task.outline)


every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)


def test_rows_round_trip() -> None:
    assert [task.to_json() for task in TASKS] == ROWS


def test_ids_are_unique_and_name_the_length() -> None:
    expected = [f"doc-{length}-{i + 1:03d}" for length, n in COUNTS.items() for i in range(n)]
    assert [task.task_id for task in TASKS] == expected
    assert all(task.task_id.split("-")[1] == task.metadata["length"] for task in TASKS)


@pytest.mark.parametrize("name", ["instruction", "reference", "outline", "facts"])
def test_texts_are_unique(name: str) -> None:
    values = [getattr(task, name) for task in TASKS]
    assert len(set(values)) == len(values)


@every_task
def test_sizes(task: Task) -> None:
    low, high = WORDS[str(task.metadata["length"])]
    assert low <= n_words(task.reference) <= high
    assert 8 <= n_words(task.instruction) <= 20
    assert 2 <= len(task.outline) <= 6
    assert all(3 <= n_words(point) <= 10 for point in task.outline)
    assert 4 <= len(set(task.facts)) == len(task.facts) <= 10


@every_task
def test_metadata(task: Task) -> None:
    assert set(task.metadata) == {"length", "topic", "kind", "split"}
    assert task.metadata["kind"] in KINDS
    assert n_words(str(task.metadata["topic"])) == 1
    assert task.solution == ""


@every_task
def test_plain_text(task: Task) -> None:
    """No markdown, control or invisible characters: the reward compares words alone."""
    for text in texts(task):
        assert text == text.strip()
        assert text.replace("\n\n", "").isprintable()
        assert not re.search(r"[*_`#\[\]<>|]|^\s*[-+>]\s", text, re.MULTILINE)


@every_task
def test_facts_are_told_in_other_words(task: Task) -> None:
    """A user who recites the document would hand the assistant its reward."""
    said = set[tuple[str, ...]]().union(*map(runs, (task.instruction, *task.facts, *task.outline)))
    assert not said & runs(task.reference)


@every_task
def test_numbers_in_facts_stand_in_the_document(task: Task) -> None:
    """A fact that contradicts the document would punish the assistant for listening."""
    told = set[str]().union(*map(numbers, task.facts))
    assert told <= numbers(task.reference)


@every_task
def test_instruction_keeps_the_particulars_back(task: Task) -> None:
    assert not re.search(r"\d", task.instruction)
    assert re.search(r"\bI\b|\bI'd\b", task.instruction)


def test_splits_are_disjoint_and_hold_both_lengths() -> None:
    by_split = {split: [task for task in TASKS if task.metadata["split"] == split] for split in SHARES}
    assert sum(map(len, by_split.values())) == len(TASKS)
    for split, tasks in by_split.items():
        assert {task.metadata["length"] for task in tasks} == set(COUNTS)
        assert len(tasks) / len(TASKS) == pytest.approx(SHARES[split], abs=0.03)


def test_documents_differ_from_each_other() -> None:
    """No document is worth much as an answer to another one's task."""
    bleu = BLEU(effective_order=True)
    pairs = [(a, b) for x, y in combinations(TASKS, 2) for a, b in ((x, y), (y, x))]
    close = [
        (hyp.task_id, ref.task_id)
        for hyp, ref in pairs
        if bleu.sentence_score(hyp.reference, [ref.reference]).score >= 20
    ]
    assert close == []
