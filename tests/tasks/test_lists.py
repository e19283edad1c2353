import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duologue.envs.tasks import DocumentTasks, MathTasks, TaskList, split_tasks, splits
from duologue.envs.tasks.splits import one_split
from duologue.errors import DuologueError
from duologue.types import Task


def some(n: int, prefix: str = "t") -> list[Task]:
    return [Task(f"{prefix}{i}", f"question {i}", f"{i}") for i in range(n)]


def test_a_list_draws_finds_and_iterates_its_tasks() -> None:
    tasks = TaskList(some(20), "mine")
    rng = np.random.default_rng(0)
    assert list(tasks) == some(20)
    assert len(tasks) == 20
    assert {tasks.draw(rng).task_id for _ in range(500)} == {f"t{i}" for i in range(20)}
    assert tasks.find("t7").reference == "7"


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(DuologueError, match="Did you mean 'doc-1'"):
        TaskList([Task("doc-1", "a", "b"), Task("other", "a", "b")]).find("doc1")


def test_an_unknown_id_does_not_list_thousands() -> None:
    with pytest.raises(DuologueError, match="look like 't0'") as caught:
        TaskList(some(2000)).find("zzz")
    assert len(str(caught.value)) < 200


def test_empty_and_duplicates_are_refused() -> None:
    with pytest.raises(DuologueError, match=r"empty.*at least one"):
        TaskList([])
    with pytest.raises(DuologueError, match="'t3'"):
        TaskList([*some(5), Task("t3", "again", "x")])


def test_a_signature_tells_content_and_order_apart() -> None:
    a = TaskList(some(3), "x").signature
    assert a == TaskList(some(3), "x").signature
    assert a.startswith("x(n=3,sha256=")
    changed = [*some(2), Task("t2", "question 2", "2", facts=("new",))]
    assert a not in (TaskList(changed, "x").signature, TaskList(some(3)[::-1], "x").signature)


def test_embedded_documents_of_each_kind() -> None:
    for length in ("short", "long"):
        train, test = DocumentTasks(length), DocumentTasks(length, "test")
        assert {t.metadata["length"] for t in train} == {length}
        assert {t.metadata["split"] for t in test} == {"test"}
        assert not {t.reference for t in train} & {t.reference for t in test}
        assert all(t.facts and t.outline and t.instruction for t in train)
    assert len(DocumentTasks(None)) == len(DocumentTasks("short")) + len(DocumentTasks("long"))


def test_unknown_documents() -> None:
    with pytest.raises(DuologueError, match="Did you mean 'short'"):
        DocumentTasks("shrot")
    with pytest.raises(DuologueError, match="Did you mean 'train'"):
        DocumentTasks("long", "trian")


def test_splits_are_disjoint_complete_and_about_as_large_as_asked() -> None:
    parts = split_tasks(some(2000))
    ids = {name: {t.task_id for t in part} for name, part in parts.items()}
    assert sum(map(len, ids.values())) == len(set.union(*ids.values())) == 2000
    assert len(ids["train"]) == pytest.approx(1600, abs=60)
    assert len(ids["test"]) == pytest.approx(200, abs=50)


def test_the_same_content_lands_in_one_split_and_new_tasks_move_none() -> None:
    alone, joined = split_tasks(some(300)), split_tasks(some(600)[::-1])
    copies = split_tasks(some(300) + some(300, "copy-of-t"))
    for name, part in alone.items():
        assert {t.task_id for t in part} <= {t.task_id for t in joined[name]}
        texts = {t.instruction for t in part}
        assert {t.instruction for t in copies[name]} == texts
        assert len(copies[name]) == 2 * len(texts)


def test_another_seed_gives_another_split_and_names_follow_the_list() -> None:
    halves = {"a": 0.5, "b": 0.5}
    one, two = (split_tasks(TaskList(some(50), "mine"), halves, seed)["a"] for seed in (0, 1))
    assert one.name == "mine-a"
    assert list(one) != list(two)


@pytest.mark.parametrize("fractions", [{"a": 0.5}, {"a": 1.5, "b": -0.5}, {}])
def test_bad_fractions(fractions: dict[str, float]) -> None:
    with pytest.raises(DuologueError, match="sum of 1"):
        split_tasks(some(5), fractions)


def test_a_split_without_tasks_is_refused() -> None:
    with pytest.raises(DuologueError, match=r"Of 2 tasks none falls into '\w+'.*Give more tasks \(44 nearly always"):
        split_tasks(some(2))
    with pytest.raises(DuologueError, match=r"Of 0 tasks none falls into 'a', whose share is 1"):
        split_tasks([], {"a": 1.0})


def test_the_advice_how_many_tasks_to_give_is_good() -> None:
    sizes = [len(_part(some(44), seed)) for seed in range(200)]
    assert sizes.count(0) <= 6  # 2 are expected


def _part(tasks: list[Task], seed: int) -> list[Task]:
    """Return the part of one task in ten, by the rule of the splits, empty or not."""
    return [task for task in tasks if splits._place(task, seed) >= 0.9]


def test_one_split_needs_tasks_for_itself_alone() -> None:
    tasks = some(2000)
    parts = split_tasks(tasks)
    for name, part in parts.items():
        assert one_split(tasks, name).signature == part.signature
    few = list(parts["test"])[:2]
    assert list(one_split(few, "test")) == few
    with pytest.raises(DuologueError, match=r"Of 2 tasks none falls into 'train', whose share is 0\.8"):
        one_split(few, "train")
    with pytest.raises(DuologueError, match="Did you mean 'test'"):
        one_split(few, "tset")


def test_tasks_survive_json() -> None:
    for task in [*DocumentTasks("short"), MathTasks(4).at(0)]:
        assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task


def test_importing_the_tasks_loads_nothing_heavy() -> None:
    heavy = "{'datasets', 'pyarrow', 'torch', 'transformers', 'sympy', 'sacrebleu'}"
    code = f"import sys, duologue.envs.tasks; print({heavy} & set(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(os.sep), timeout=60
    )
    assert run.stdout.strip() == "set()"
