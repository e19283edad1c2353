"""The commands, in this process and as a program."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from duologue import trainers
from duologue.cli import app
from duologue.cli.play import PlayConfig, play_dialogue
from duologue.trainers import InteractiveConfig
from tests.cli.running import call, program

pytestmark = pytest.mark.usefixtures("agents")


def test_evaluate_prints_and_writes() -> None:
    result = call("evaluate", "MathChat-v0", "--agent", "cli_agents:adder", "--episodes", "5", "--output", "out")
    assert result.exit_code == 0, result.output
    for part in ("accuracy", "(n=5)", "scored / unscored dialogues", "user leak rate", "split=test", "are in out"):
        assert part in result.output
    assert {p.name for p in Path("out").iterdir()} == {"run.json", "episodes.jsonl", "report.json", "report.md"}


def test_evaluate_from_a_file() -> None:
    Path("e.yaml").write_text("agent: cli_agents:adder\nepisodes: 3\noutput: from-file\n")
    assert call("evaluate", "--config", "e.yaml", "--episodes", "2").exit_code == 0
    assert len(Path("from-file/episodes.jsonl").read_text().splitlines()) == 2


def test_evaluate_when_nothing_could_be_scored() -> None:
    result = call("evaluate", "--agent", "cli_agents:fails", "--episodes", "2", "--output", "out")
    assert result.exit_code == 1
    assert "n/a (n=0)" in result.output
    assert "no dialogue was scored" in result.stderr


def test_a_killed_evaluation_goes_on_to_the_same_report() -> None:
    common = ["evaluate", "--agent", "cli_agents:adder", "--episodes", "30", "--num-envs", "6"]
    died = program(*common, "--output", "cut", DIE_AT="70")
    assert died.returncode == -signal.SIGKILL
    kept = Path("cut/episodes.jsonl").read_text()
    assert 0 < kept.count("\n") < 30
    resumed = program(*common, "--output", "cut")
    assert (resumed.returncode, resumed.stderr) == (0, "")  # also: no progress line where there is no terminal
    assert Path("cut/episodes.jsonl").read_text().startswith(kept)
    assert call(*common, "--output", "whole").exit_code == 0
    reports = [json.loads(Path(name, "report.json").read_text()) for name in ("cut", "whole")]
    assert [report.pop("config")["output"] for report in reports] == ["cut", "whole"]
    assert reports[0] == reports[1]


def test_rollout_prints_a_few_and_writes_all() -> None:
    result = call("rollout", "MathChat-v0", "--agent", "cli_agents:adder", "--episodes", "5", "--output", "e.jsonl")
    assert result.exit_code == 0, result.output
    assert result.output.count("assistant: Which numbers?") >= 3
    assert result.output.count("--- MathChat-v0") == 3
    assert len(Path("e.jsonl").read_text().splitlines()) == 5


def test_train_interactive_hands_its_configuration_on(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[InteractiveConfig] = []

    def make(config: InteractiveConfig) -> Any:
        got.append(config)
        return SimpleNamespace(train=lambda: Path(config.output))

    monkeypatch.setitem(vars(trainers), "InteractiveTrainer", make)  # setattr would load the real one first
    flags = [
        "--steps",
        "2",
        "--learning-rate",
        "1e-5",
        "--no-resume",
        "--trl",
        "optim=sgd",
        "--trl",
        "weight_decay=0.1",
    ]
    result = call("train", "interactive", "MathChat-v0", *flags)
    assert result.exit_code == 0, result.output
    expected = {"optim": "sgd", "weight_decay": 0.1}
    assert got == [InteractiveConfig(env="MathChat-v0", steps=2, learning_rate=1e-5, resume=False, trl=expected)]
    assert "runs/interactive" in result.output


def test_train_refuses_before_it_loads() -> None:
    result = call("train", "interactive", "--group-size", "1")
    assert result.exit_code == 2
    assert result.stderr == "error: group_size is 1. GRPO compares within a group: set it to 2 or more.\n"


def test_play_at_the_terminal() -> None:
    typed = "Which numbers?\n" * 8
    result = CliRunner().invoke(app, ["play", "MathChat-v0", "--seed", "3", "--max-turns", "2"], input=typed)
    assert result.exit_code == 0, result.output
    assert result.output.count("user: ") == 2
    assert "[turn_limit] score 0.00." in result.output


def test_leaving_play() -> None:
    said: list[str] = []

    def read(prompt: str) -> str:
        raise EOFError

    play_dialogue(PlayConfig(seed=3), read, said.append)
    assert said[-1] == "\nYou left."


def test_a_mistake_is_one_line_and_no_traceback() -> None:
    result = program("evaluate", "MahtChat-v0", "--agent", "cli_agents:adder")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: There is no environment 'MahtChat-v0'. Did you mean 'MathChat-v0'?\n"


def test_a_seed_below_0_is_one_line_in_play_too() -> None:
    result = call("play", "MathChat-v0", "--seed", "-1")
    assert (result.exit_code, result.stderr) == (2, "error: seed is -1. Set it to 0 or more.\n")


@pytest.mark.parametrize("command", [["evaluate"], ["rollout"], ["train", "interactive"], ["play"]])
def test_help_teaches_by_example(command: list[str]) -> None:
    result = call(*command, "--help")
    assert result.exit_code == 0
    assert f"\n    duologue {' '.join(command)} " in result.output
    assert "--config FILE.yaml" in result.output


def test_importing_the_command_line_is_light() -> None:
    heavy = ("torch", "transformers", "gymnasium", "sympy", "numpy", "matplotlib", "httpx")
    code = f"import sys, duologue.cli; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_both_modules_run() -> None:
    out = subprocess.run([sys.executable, "-m", "duologue.cli", "--help"], capture_output=True, text=True, check=True)
    assert "evaluate" in out.stdout
    assert program("--help").stdout == out.stdout
