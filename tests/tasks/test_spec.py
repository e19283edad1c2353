import json
from pathlib import Path

import pytest

from duologue.envs.tasks import DocumentTasks, MathTasks, TaskList, make_tasks, spec
from duologue.errors import DuologueError
from duologue.types import Task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"question": f"How many {i}?", "answer": f"#### {i}"} for i in range(60)]
    shards = [{"shard_id": 1, "shard": "How many?"}, {"shard_id": 2, "shard": "Two."}]
    own = Task("a", "i", "r").to_json()
    (tmp_path / "gsm.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "sharded.jsonl").write_text(json.dumps({"answer": "#### 2", "shards": shards}))
    (tmp_path / "own,split=test.jsonl").write_text(json.dumps(own))
    (tmp_path / "a.txt").write_text("Some text of five words.")
    return tmp_path


def test_sources_and_sequences_pass_through() -> None:
    source = MathTasks(3)
    assert make_tasks(source) is source
    made = make_tasks([Task("a", "i", "r")])
    assert isinstance(made, TaskList)
    assert made.find("a").reference == "r"


def test_none_is_the_usual_tasks_of_the_environment() -> None:
    assert make_tasks(None).signature == MathTasks(1, "train").signature
    assert make_tasks(None, "MediumDocEditChat").signature == DocumentTasks("short", "train").signature


def test_specs_of_embedded_tasks() -> None:
    assert make_tasks("math").signature == MathTasks().signature
    assert make_tasks("math:level=2,split=test").signature == MathTasks(2, "test").signature
    for text, length in {"long": "long", "all": None}.items():
        made = make_tasks(f"documents:length={text},split=test", "MediumDocEditChat")
        assert made.signature == DocumentTasks(length, "test").signature


def test_specs_of_files(folder: Path) -> None:
    gsm = make_tasks(f"gsm8k:{folder / 'gsm.jsonl'}")
    assert len(list(gsm)) == 60
    assert next(iter(make_tasks(f"sharded-gsm8k:{folder / 'sharded.jsonl'}"))).facts == ("Two.",)
    assert len(list(make_tasks(f"articles:{folder}", "MediumDocEditChat"))) == 1
    own = folder / "own,split=test.jsonl"
    assert [t.task_id for t in make_tasks(f"file:{own}")] == [t.task_id for t in make_tasks(str(own))] == ["a"]


def test_a_file_can_be_split(folder: Path) -> None:
    parts = [list(make_tasks(f"gsm8k:{folder / 'gsm.jsonl'},split={s}")) for s in ("train", "validation", "test")]
    ids = [task.task_id for part in parts for task in part]
    assert len(ids) == len(set(ids)) == 60


def test_a_split_that_gets_no_task_is_named(tmp_path: Path) -> None:
    own = [Task(f"t{i}", f"How many {i}?", str(i)).to_json() for i in range(2)]
    (tmp_path / "two.jsonl").write_text("\n".join(map(json.dumps, own)))
    parts = {"train": 0, "validation": 0, "test": 0}
    for split in parts:
        try:
            parts[split] = len(list(make_tasks(f"file:{tmp_path / 'two.jsonl'},split={split}")))
        except DuologueError as error:
            assert f"Of 2 tasks none falls into '{split}'" in str(error)  # noqa: PT017
    assert sum(parts.values()) == 2


def test_a_hub_spec_reaches_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []

    def load(dataset_id: str, split: str | None, limit: int | None) -> TaskList:
        calls.append((dataset_id, split, limit))
        return TaskList([Task("a", "i", "r")])

    monkeypatch.setattr(spec, "load_hub", load)
    make_tasks("hub:openai/gsm8k")
    make_tasks("hub:openai/gsm8k,split=test,limit=20")
    assert calls == [("openai/gsm8k", None, None), ("openai/gsm8k", "test", 20)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("maths", "Did you mean 'math'"),
        ("math:levle=2", "Did you mean 'level'"),
        ("math:level=two", "level must be a whole number"),
        ("math:level=9", "1 to 5"),
        ("math:split=tset", "Did you mean 'test'"),
        ("math:level", "Write level=VALUE once"),
        ("math:level=1,level=2", "Write level=VALUE once"),
        ("gsm8k:", "Write gsm8k:PATH"),
        ("gsm8k", "Write gsm8k:PATH"),
        ("file:/no/such/file.jsonl", "Check the path"),
        ("hub:openai/gsm8", "Did you mean 'openai/gsm8k'"),
        ("hub:openai/gsm8k,limit=x", "limit must be a whole number"),
        ("documents", "for MediumDocEditChat, not for MathChat"),
        ("hub:Kamaljp/medium_articles", "for MediumDocEditChat, not for MathChat"),
        ("missing.jsonl", "no such file, nor such a kind"),
        ("", "nor such a kind"),
    ],
)
def test_bad_specs(text: str, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        make_tasks(text)


def test_bad_split_of_a_file_and_bad_environment(folder: Path) -> None:
    with pytest.raises(DuologueError, match="Did you mean 'train'"):
        make_tasks(f"gsm8k:{folder / 'gsm.jsonl'},split=trian")
    with pytest.raises(DuologueError, match="Did you mean 'MathChat'"):
        make_tasks("math", "MathChats")
    with pytest.raises(DuologueError, match="empty"):
        make_tasks([])
    for junk in (5, ["text"], {"a": 1}):
        with pytest.raises(DuologueError, match="Give a task source"):
            make_tasks(junk)  # type: ignore[arg-type]
