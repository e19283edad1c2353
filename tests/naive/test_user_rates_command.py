"""``duologue user-rates`` on files."""

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duologue.cli import app
from duologue.envs.tasks import make_tasks
from duologue.types import Episode, Message, StopReason

SPEC = "math:level=1,split=test"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["user-rates", *map(str, arguments)], env={"COLUMNS": "160"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two dialogues about level 1's test tasks: a wrong answer accepted, and one refused."""
    rows = []
    for task, reaction in zip(itertools.islice(make_tasks(SPEC), 2), ("Great, thanks!", "No."), strict=True):
        texts = [("user", "Hi"), ("assistant", "The answer is -7."), ("user", reaction), ("assistant", "Hm.")]
        messages = tuple(Message(role=role, content=text) for role, text in texts)  # type: ignore[typeddict-item]
        rows.append(Episode("MathChat-v0", task.task_id, 0, messages, StopReason.TURN_LIMIT, 0.0).to_json())
    path = tmp_path / "episodes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_column_per_file(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(file.read_text().splitlines()[0] + "\n")
    result = call(file, other)
    assert result.exit_code == 0, result.output
    (row,) = [line for line in result.output.splitlines() if "wrong accepted" in line]
    assert row.count("0.50 [") == 1
    assert row.count("1.00 [") == 1
    assert "2 (MathChat)" in result.output


def test_a_line_that_is_being_written_is_left_out_and_left_alone(file: Path) -> None:
    whole = file.read_text()
    file.write_text(whole + '{"env_id": "Math')
    assert "2 (MathChat)" in call(file).output
    assert file.read_text() == whole + '{"env_id": "Math'


def test_tasks_come_from_the_option_or_the_run(file: Path) -> None:
    wrong = call(file, "--tasks", "math:level=2,split=test")
    assert wrong.exit_code == 2
    assert "--tasks" in wrong.output
    (file.parent / "run.json").write_text(json.dumps({"config": {"tasks": "math:level=2,split=test"}}))
    assert call(file).exit_code == 2
    assert call(file, "--tasks", SPEC).exit_code == 0
    (file.parent / "run.json").write_text("[]")
    assert call(file).exit_code == 0


@pytest.mark.parametrize(("text", "message"), [("", "no whole line"), ("{}\n", "Line 1"), ("[1]\n", "Line 1")])
def test_files_of_something_else_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    result = call(path)
    assert result.exit_code == 2
    assert message in result.output


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    result = call(tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "There is no file" in result.output


def test_another_environments_episodes_are_refused(file: Path) -> None:
    file.write_text(file.read_text().replace("MathChat-v0", "Chess-v0"))
    result = call(file, "--tasks", SPEC)
    assert result.exit_code == 2
    assert "Chess" in result.output
