"""The command: its help, its lines, its errors."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duologue.analysis.compare import run as run_module
from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.compare.stages import Done, Stage
from duologue.cli import app
from duologue.cli.compare import EXAMPLES, duration, stage_line


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments])


def test_help_teaches_by_example() -> None:
    result = call("--help")
    assert result.exit_code == 0
    for example in EXAMPLES:
        assert f"\n    {example}\n" in f"{result.output}\n"
    for flag in ("--preset", "--seeds", "--output", "--agent", "--dry-run", "--config FILE.yaml"):
        assert flag in result.output


def test_a_mistake_is_one_line() -> None:
    result = call("--preset", "tinny")
    assert (result.exit_code, result.stderr) == (2, "error: There is no preset 'tinny'. Did you mean 'tiny'?\n")


@pytest.mark.parametrize("preset", ["tiny", "small", "paper"])
@pytest.mark.parametrize("env", ["MathChat-v0", "MediumDocEditChat-v0"])
def test_dry_run(env: str, preset: str) -> None:
    result = call(env, "--preset", preset, "--dry-run", "--seeds", "2", "--agent", "mine=module:function")
    assert result.exit_code == 0, result.output
    assert f"# {env}, 2 seed(s)" in result.output
    assert ("GPU-hours" in result.output) is (preset == "paper")


def test_it_runs_and_prints_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    got: list[CompareConfig] = []

    def compare(config: CompareConfig, follow: Any) -> dict[str, Any]:
        got.append(config)
        return {}

    monkeypatch.setattr(run_module, "compare", compare)
    monkeypatch.setattr("duologue.analysis.compare.table.table", lambda results: "THE TABLE")
    result = call("--output", str(tmp_path / "out"), "--seeds", "3", "--agent", "a=b:c", "--agent", "d=e")
    assert result.exit_code == 0, result.output
    assert got == [CompareConfig(output=str(tmp_path / "out"), seeds=3, agent={"a": "b:c", "d": "e"})]
    assert "THE TABLE" in result.output


def test_a_line_for_each_finished_stage(capsys: pytest.CaptureFixture[str]) -> None:
    stages = [Stage(name, None, dict) for name in ("logs", "seed-0/naive")]
    ended = Done(120.0, 1, {})
    with stage_line(stages) as show:
        show(stages[0], None, {})
        show(stages[0], ended, {"logs": ended})
    assert capsys.readouterr().err == "[1/2] logs: 2 min, time left unknown\n"


@pytest.mark.parametrize(("seconds", "text"), [(3.2, "3 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
