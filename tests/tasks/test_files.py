import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from duologue.envs.tasks import (
    DocumentTasks,
    load_articles,
    load_gsm8k,
    load_sharded_gsm8k,
    load_tasks,
    split_tasks,
)
from duologue.envs.tasks.lists import content_hash
from duologue.errors import DuologueError, MissingExtraError
from duologue.types import Task

GSM8K = {"question": "How many?", "answer": "2*600 = <<2*600=1200>>1200 in all.\n#### 1,200"}
SHARDS = [
    {"shard_id": 2, "shard": "Tom has 2."},
    {"shard_id": 1, "shard": "How many?"},
    {"shard_id": 3, "shard": ""},
    {"shard_id": 4, "shard": "How many?"},
]


def jsonl(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    return path


def test_own_format_round_trip(tmp_path: Path) -> None:
    tasks = list(DocumentTasks(None))
    loaded = load_tasks(jsonl(tmp_path / "mine.jsonl", *(t.to_json() for t in tasks)))
    assert list(loaded) == tasks
    assert loaded.name == "mine"


def test_columns_of_another_format_with_unicode_line_separators(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "qa.jsonl", {"q": "two\u2028lines", "a": 7, "hints": ["x", "y"]}, {"q": "b", "a": "8", "hints": "z"}
    )
    tasks = list(load_tasks(path, {"instruction": "q", "reference": "a", "facts": "hints"}))
    assert tasks[0] == Task("qa-000000", "two\u2028lines", "7", facts=("x", "y"))
    assert tasks[1].facts == ("z",)


def test_rows_without_an_id_get_one_that_follows_from_what_they_say(tmp_path: Path) -> None:
    rows = [{"instruction": f"How many {i}?", "reference": str(i), "facts": ["One."]} for i in range(3)]
    tasks = list(load_tasks(jsonl(tmp_path / "a.jsonl", *rows)))
    assert tasks[1] == Task(f"task-{content_hash(tasks[1])[:12]}", "How many 1?", "1", facts=("One.",))
    moved = load_tasks(jsonl(tmp_path / "b.jsonl", {"task_id": "own", **rows[0]}, rows[2], rows[1]))
    assert [t.task_id for t in moved] == ["own", tasks[2].task_id, tasks[1].task_id]
    assert moved.find(tasks[2].task_id) == tasks[2]
    with pytest.raises(DuologueError, match=r"holds two tasks with the id 'task-\w{12}'"):
        load_tasks(jsonl(tmp_path / "c.jsonl", rows[0], rows[0]))
    with pytest.raises(DuologueError, match="column 'task_id' must hold text"):
        load_tasks(jsonl(tmp_path / "d.jsonl", {"task_id": "", **rows[0]}))


def test_parquet_reads_like_jsonl(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [{"q": f"question {i}", "a": i, "hints": ["x", "y"]} for i in range(3)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "qa.parquet")
    columns = {"instruction": "q", "reference": "a", "facts": "hints"}
    assert list(load_tasks(tmp_path / "qa.parquet", columns)) == list(
        load_tasks(jsonl(tmp_path / "qa.jsonl", *rows), columns)
    )
    with pytest.raises(DuologueError, match=r"qa.parquet, row 1 has no column 'b'.*Choose one of: 'a', 'hints', 'q'"):
        load_tasks(tmp_path / "qa.parquet", {"instruction": "q", "reference": "b"})


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'duologue\[hub\]'"):
        load_tasks(tmp_path / "x.parquet")


def test_broken_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "x.parquet").write_bytes(b"junk")
    with pytest.raises(DuologueError, match="not readable as Parquet"):
        load_tasks(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", r"bad.jsonl, line 3 is not JSON"),
        ("[1]", r"bad.jsonl, line 3 must be a JSON object"),
        ('{"task_id": "b", "instruction": "i"}', r"line 3 has no column 'reference'"),
        ('{"task_id": "b", "instruction": " ", "reference": "r"}', r"line 3: column 'instruction' must hold text"),
        ('{"task_id": "b", "instruction": null, "reference": "r"}', r"line 3: column 'instruction' must hold text"),
        (
            '{"task_id": "b", "instruction": "i", "reference": "r", "facts": [1]}',
            r"line 3: column 'facts' must hold a list",
        ),
        ('{"task_id": "b", "instruction": "i", "reference": "r", "fact": []}', r"line 3: .*Did you mean 'facts'"),
        (
            '{"task_id": "b", "instruction": "i", "reference": "r", "metadata": 1}',
            r"line 3: 'metadata' must be an object",
        ),
        ('{"task_id": "a", "instruction": "i", "reference": "r"}', r"two tasks with the id 'a'"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"task_id": "a", "instruction": "i", "reference": "r"}\n\n' + line + "\n")
    with pytest.raises(DuologueError, match=message):
        load_tasks(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"instruction": "questio", "reference": "answer"}, "Did you mean 'question'"),
        ({"instructions": "question", "reference": "answer"}, "Did you mean 'instruction'"),
        ({"instruction": "question"}, "Add 'reference'"),
    ],
)
def test_bad_columns(tmp_path: Path, columns: dict[str, str], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        load_tasks(jsonl(tmp_path / "x.jsonl", GSM8K), columns)


def test_files_that_are_not_there_or_of_no_use(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text("\n")
    (tmp_path / "tasks.xlsx").write_bytes(b"")
    (tmp_path / "latin.jsonl").write_bytes(b'{"a": "\xe9"}')
    (tmp_path / "one.json").write_text("{}")
    for name, message in {
        "task.jsonl": "Did you mean 'tasks.jsonl'",
        "no/tasks.jsonl": "its folder does not exist",
        "tasks.jsonl": "holds no rows",
        "tasks.xlsx": r"kind in .jsonl, .json, .parquet",
        "latin.jsonl": "UTF-8",
        "one.json": "one JSON array",
    }.items():
        with pytest.raises(DuologueError, match=message):
            load_tasks(tmp_path / name)


def test_gsm8k_row(tmp_path: Path) -> None:
    (task,) = load_gsm8k(jsonl(tmp_path / "train.jsonl", GSM8K))
    assert task == Task("gsm8k-train-000000", "How many?", "1200", solution="2*600 = 1200 in all.")
    with pytest.raises(DuologueError, match="line 1: 'answer' must end with '#### RESULT'"):
        load_gsm8k(jsonl(tmp_path / "train.jsonl", {"question": "q", "answer": "12"}))


def test_sharded_row_orders_shards_and_drops_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps([{**GSM8K, "shards": SHARDS}]))
    (task,) = load_sharded_gsm8k(path)
    assert (task.instruction, task.facts, task.reference) == ("How many?", ("Tom has 2.",), "1200")


@pytest.mark.parametrize("shards", ["text", [{"shard": "x"}], [{"shard_id": 1, "shard": "x"}], None])
def test_bad_shards(tmp_path: Path, shards: object) -> None:
    with pytest.raises(DuologueError, match=r"line 1: 'shards' must .*(Correct it|Remove this row)"):
        load_sharded_gsm8k(jsonl(tmp_path / "s.jsonl", {**GSM8K, "shards": shards}))


ARTICLE = """---
title: "On bees"
date: 2020
---
# On bees in the U.S. today

The U.S. has many bees, says Mr. Smith. They hum.

## Why they hum
Humming warms the whole hive. So they do it.

- a list item that has five words

```
code that is not prose at all.

more code that is not prose.
```

**What we know**

Too short. Then it goes on.

This sentence introduces a list of things:
"""


def test_article_file(tmp_path: Path) -> None:
    (tmp_path / "2020-01-02-bees.md").write_text(ARTICLE)
    (tmp_path / "my-plain_text.txt").write_text(
        "One paragraph of plain words here.\n\nA second one without an end mark\n"
    )
    (tmp_path / "ignored.png").write_bytes(b"\x89")
    bees, plain = load_articles(tmp_path)
    assert bees.instruction == 'I want to write an article titled "On bees".'
    assert bees.reference.startswith("The U.S. has many bees")
    assert bees.facts == ("The U.S. has many bees, says Mr. Smith.", "Humming warms the whole hive.")
    assert bees.outline == ("Why they hum", "What we know")
    assert plain.instruction == 'I want to write an article titled "my plain text".'
    assert plain.facts == plain.outline == ("One paragraph of plain words here.", "A second one without an end mark")
    assert next(iter(load_articles(tmp_path / "2020-01-02-bees.md"))).reference == bees.reference


def test_a_heading_names_an_article_without_front_matter(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# The title #\n\nSome text of five words.\n")
    (task,) = load_articles(tmp_path)
    assert (task.instruction, task.reference) == (
        'I want to write an article titled "The title".',
        "Some text of five words.",
    )


def test_articles_that_are_empty_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(DuologueError, match=r"no \.txt or \.md file"):
        load_articles(tmp_path)
    (tmp_path / "a.md").write_text("# Only a title\n")
    with pytest.raises(DuologueError, match=r"a\.md: column 'text' must hold text"):
        load_articles(tmp_path)


def test_real_gsm8k(shared: Path) -> None:
    tasks = load_gsm8k(shared / "gsm8k" / "train.jsonl")
    assert len(tasks) == 7473
    assert all(t.reference.lstrip("-").replace(".", "", 1).isdigit() for t in tasks)
    assert not any("<<" in t.solution or "####" in t.solution for t in tasks)


def test_real_sharded_gsm8k(shared: Path) -> None:
    tasks = load_sharded_gsm8k(shared / "sharded_gsm8k" / "sharded_gsm8k_v2.json")
    assert len(tasks) == 698
    assert all(1 <= len(t.facts) <= 8 and all(t.facts) for t in tasks)
    parts = split_tasks(tasks)
    train, test = ({(t.instruction, t.facts) for t in parts[name]} for name in ("train", "test"))
    assert not train & test


def test_real_articles(shared: Path) -> None:
    tasks = load_articles(shared / "articles_18f" / "posts_300_1000.jsonl")
    assert len(tasks) == 271
    assert all(t.facts and t.outline for t in tasks)
    for task in tasks:
        text = " ".join(task.reference.split())
        assert all(fact in text for fact in task.facts)
