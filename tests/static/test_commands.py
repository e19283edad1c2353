"""``duologue train static`` and ``duologue train clone``, and the page about them."""

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from duologue import trainers
from duologue.cli import app
from duologue.simulators.logs import write_logs
from duologue.trainers import InteractiveConfig, StaticConfig, cloning
from duologue.trainers.cloning import CloningConfig

PAGE = (Path(__file__).parents[2] / "docs" / "static.md").read_text(encoding="utf-8")


def call(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_static_hands_its_configuration_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[StaticConfig] = []

    def make(config: StaticConfig) -> SimpleNamespace:
        seen.append(config)
        return SimpleNamespace(train=lambda: Path(config.output))

    monkeypatch.setitem(vars(trainers), "StaticTrainer", make)  # setattr would load the real one first
    flags = ["--dialogues", "l.jsonl", "--turns", "final", "--held-out", "t.jsonl", "--steps", "3", "--output", "out"]
    result = call("train", "static", "MediumDocEditChat-v0", *flags)
    assert result.exit_code == 0
    assert "The trained policy is in out" in result.stdout
    expected = {"dialogues": "l.jsonl", "turns": "final", "held_out": "t.jsonl", "steps": 3, "output": "out"}
    assert seen == [StaticConfig(env="MediumDocEditChat-v0", **expected)]  # type: ignore[arg-type]
    assert seen[0].max_turns == 1


def test_clone_reads_the_file(monkeypatch: pytest.MonkeyPatch, logs: SimpleNamespace, tmp_path: Path) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(cloning, "load_model", lambda name, dtype: SimpleNamespace(tokenizer=None))
    monkeypatch.setattr(cloning, "ChatFormat", lambda *_: None)
    monkeypatch.setattr(cloning, "training_rows", lambda dialogues, chat, limit: seen.append(dialogues))
    monkeypatch.setattr(cloning, "fit", lambda config, rows, loaded: seen.append(config))
    file = write_logs(tmp_path / "logs.jsonl", [*logs.logged, logs.dialogue("alone", "t", "hi")])
    result = call("train", "clone", "--dialogues", str(file), "--epochs", "2", "--output", str(tmp_path / "out"))
    assert f"The trained policy is in {tmp_path / 'out'}" in result.stdout
    assert seen[0] == [d.messages for d in logs.logged]
    assert seen[1] == CloningConfig(dialogues=str(file), epochs=2.0, output=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["static"], "Set dialogues to a JSONL file of logs."),
        (["clone"], "Set dialogues to a JSONL file of logs, or pass some."),
        (["static", "--dialogues", "nowhere.jsonl"], "nowhere.jsonl"),
        (["static", "--dialogues", "x", "--tasks", "math:level=1"], "Leave out tasks."),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str) -> None:
    result = call("train", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["static", "clone"])
def test_help_teaches_by_example(command: str) -> None:
    result = call("train", command, "--help")
    assert f"duologue train {command}" in result.stdout.partition("Examples:")[2]
    assert "--dialogues" in result.stdout


def test_the_page_lists_the_fields_that_differ() -> None:
    inherited = {f.name: f for f in fields(InteractiveConfig)}
    own = [f for f in fields(StaticConfig) if f.metadata != getattr(inherited.get(f.name), "metadata", None)]
    own += [f for f in fields(StaticConfig) if f not in own and f.default != inherited[f.name].default]
    own = [f for f in own if f.name != "trl"]
    assert {f.name for f in own} == {"max_turns", "output", "dialogues", "turns", "held_out"}
    for f in own:
        value = "none" if f.default is None else f"`{f.default}`"
        assert f"| `{f.name}` | {value} | {f.metadata['help']} |" in PAGE
