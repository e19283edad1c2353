"""The commands for logs, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duologue.cli import app
from duologue.simulators.logs import LoggedDialogue, check_disjoint, read_logs, write_logs

MakeDialogue = Callable[..., LoggedDialogue]
MakeRow = Callable[..., dict[str, Any]]
WriteRows = Callable[..., Path]
AGENT = """
def constant(messages):
    return "The answer is 7."

def fails(messages):
    raise RuntimeError("never")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "logs_agents.py").write_text(AGENT)
    monkeypatch.delitem(__import__("sys").modules, "logs_agents", raising=False)
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_check_lists_everything_and_exits_with_1(write: WriteRows, row: MakeRow) -> None:
    good = write(row(1), row(2), name="good.jsonl")
    bad = write("{", row(3, person=1), name="bad.jsonl")
    assert call("logs", "check", good).output == f"ok: {good}: 2 dialogues\n"
    result = call("logs", "check", good, bad)
    assert result.exit_code == 1
    assert result.output.count("error: ") == 2
    assert f"error: {bad}: line 2: 'person' is 1." in result.output


def test_check_compares_files(write: WriteRows, row: MakeRow) -> None:
    train, test = write(row(1), row(2), name="train.jsonl"), write(row(3), row(2), name="test.jsonl")
    result = call("logs", "check", train, test)
    assert result.exit_code == 1
    assert "the same words: 'd-2' (row 2) and 'd-2' (row 2). Remove it from one of them." in result.output
    said = [{"role": "user", "content": "said in another way"}]
    other = write(row(2, dialogue_id="x", messages=said), name="other.jsonl")
    result = call("logs", "check", train, other)
    assert result.exit_code == 0
    assert "warning: " in result.output
    assert "the same task" in result.output


def test_check_of_a_missing_file() -> None:
    result = call("logs", "check", "no.jsonl")
    assert result.exit_code == 2
    assert "error: There is no 'no.jsonl'." in result.stderr


def test_summary_has_a_column_per_file(dialogue: MakeDialogue) -> None:
    write_logs("a.jsonl", [dialogue(i) for i in range(3)])
    write_logs("b.jsonl", [dialogue(i, person="p") for i in range(2)])
    result = call("logs", "summary", "a.jsonl", "b.jsonl")
    assert result.exit_code == 0, result.output
    for part in ("a.jsonl", "b.jsonl", "0, 3 dialogues of unknown ones", "2 [2, 2]", "unknown 3"):
        assert part in result.output


def test_split_writes_a_file_per_part(dialogue: MakeDialogue) -> None:
    write_logs("logs.jsonl", [dialogue(i, person=f"p{i % 10}") for i in range(40)])
    split = ("logs", "split", "logs.jsonl", "--by", "person", "--shares", "train=0.6, test=0.4", "--output", "parts")
    result = call(*split)
    assert result.exit_code == 0, result.output
    train, test = read_logs("parts/train.jsonl"), read_logs("parts/test.jsonl")
    assert len(train) + len(test) == 40
    check_disjoint(train, test)
    assert not {d.person for d in train} & {d.person for d in test}
    assert f"{len(train)} dialogues are in parts/train.jsonl" in result.output
    again = call(*split)
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)


@pytest.mark.parametrize("shares", ["train", "train=x", "=1", "train=0.5,train=0.5", "../x=1", "train=nan"])
def test_bad_shares(dialogue: MakeDialogue, shares: str) -> None:
    write_logs("logs.jsonl", [dialogue(i) for i in range(4)])
    result = call("logs", "split", "logs.jsonl", "--shares", shares, "--output", "parts")
    assert result.exit_code == 2
    assert "Write --shares train=0.8,test=0.2." in result.stderr
    assert not Path("parts").exists()


def test_import_tells_what_it_left_out(write: WriteRows) -> None:
    said = [{"role": "user", "content": "hi"}]
    rows = [{"id": "a", "scenario": "x", "messages": said}, {"id": "b", "scenario": "x", "messages": said}]
    result = call("logs", "import", "halie", write(*rows, name="raw.jsonl"), "--output", "halie.jsonl")
    assert result.exit_code == 0, result.output
    assert "1 dialogues are in halie.jsonl\nleft out: 1 (the same task and words as another)" in result.output
    assert read_logs("halie.jsonl")[0].dialogue_id == "a"
    assert "Did you mean 'halie'" in call("logs", "import", "hali", "raw.jsonl", "--output", "new.jsonl").stderr
    assert "exists already" in call("logs", "import", "halie", "raw.jsonl", "--output", "halie.jsonl").stderr


def test_collect_and_collect_again() -> None:
    command = ("collect", "MathChat-v0", "--agent", "logs_agents:constant", "--episodes")
    assert "3 of 3 dialogues are in logs.jsonl" in call(*command, 3).output
    result = call(*command, 5)
    assert result.exit_code == 0, result.output
    assert len(Path("logs.jsonl").read_text().splitlines()) == 5
    assert len(Path("logs.jsonl.episodes/episodes.jsonl").read_text().splitlines()) == 5
    assert json.loads(Path("logs.jsonl").read_text().splitlines()[0])["task"]["reference"]


def test_collect_when_nothing_could_be_kept() -> None:
    result = call("collect", "MathChat-v0", "--agent", "logs_agents:fails", "--episodes", 2)
    assert result.exit_code == 2
    assert "No dialogue could be kept (not scored: policy_error 2)" in result.stderr


@pytest.mark.parametrize("command", [["logs"], ["logs", "check"], ["logs", "split"], ["logs", "import"], ["collect"]])
def test_help_teaches(command: list[str]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    assert command == ["logs"] or "Examples:" in result.output
