"""Interactive training against a calibrated user: one base, a frozen user, a run that goes on."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from duologue.cli import app
from duologue.engines.shared import base_tensors
from duologue.errors import DuologueError
from duologue.simulators import CalibratedUser, GuardedUser
from duologue.simulators.logs import write_logs
from duologue.trainers.calibrated import train_calibrated
from duologue.trainers.calibration_config import CalibratedConfig
from duologue.trainers.interactive import InteractiveTrainer


@pytest.fixture
def logs(world: SimpleNamespace, tmp_path: Path) -> str:
    return str(write_logs(tmp_path / "people.jsonl", world.people(8)))


@pytest.fixture
def configured(model_folder: Path, tmp_path: Path) -> Callable[..., CalibratedConfig]:
    def make(**changes: Any) -> CalibratedConfig:
        defaults: dict[str, Any] = {
            "tasks": "math:level=1,split=train",
            "model": str(model_folder),
            "output": str(tmp_path / "run"),
            "max_turns": 2,
            "steps": 1,
            "groups_per_step": 1,
            "group_size": 2,
            "micro_batch_size": 2,
            "max_tokens_per_turn": 4,
            "max_total_tokens": 1500,
            "lora_rank": 2,
            "dtype": "float32",
            "calibration": {"epochs": 1, "lora_rank": 2},
        }
        return CalibratedConfig(**{**defaults, **changes})

    return make


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.slow
def test_calibrate_freeze_train_and_go_on(configured: Callable[..., CalibratedConfig], logs: str) -> None:
    said: list[str] = []
    config = configured(dialogues=logs)
    final = train_calibrated(config, on_phase=said.append)
    assert (final / "adapter_model.safetensors").is_file()
    user = Path(config.output) / "user"
    before = hashes(user)
    note = json.loads((Path(config.output) / "config.json").read_text())
    assert note["simulator"] == f"calibrated:{user}"
    episodes = [json.loads(line) for line in (Path(config.output) / "episodes.jsonl").read_text().splitlines()]
    assert len(episodes) == 2
    assert not any("error" in episode["stop_reason"] for episode in episodes)
    train_calibrated(config, on_phase=said.append)
    assert hashes(user) == before
    assert len(said) == 3  # the second run found its user
    with pytest.raises(DuologueError, match="calibrated with other settings or dialogues"):
        train_calibrated(configured(dialogues=logs, calibration={"epochs": 2}))


@pytest.mark.parametrize("rank", [2, 0])
def test_the_user_stands_on_the_policys_base_if_that_is_frozen(
    configured: Callable[..., CalibratedConfig], settings: Any, world: SimpleNamespace, rank: int
) -> None:
    from duologue.trainers.calibration import calibrate

    folder = calibrate(settings(epochs=1), world.people(8))
    config = configured(simulator=f"calibrated:{folder}", lora_rank=rank).for_policy(f"calibrated:{folder}")
    trainer = InteractiveTrainer(config)
    watched = trainer.env.unwrapped.parts.dynamics.simulator  # type: ignore[attr-defined]
    assert isinstance(watched, GuardedUser)
    assert isinstance(watched.user, CalibratedUser)
    policy, user = trainer.trainer.model, watched.user.loaded.model
    base = policy.get_base_model() if rank else policy
    places = {t.data_ptr() for t in base_tensors(base).values()}
    assert ({t.data_ptr() for t in base_tensors(user.get_base_model()).values()} <= places) is bool(rank)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "Give either dialogues to calibrate a user on, or simulator calibrated:FOLDER"),
        ({"dialogues": "a", "simulator": "calibrated:b"}, "Give either"),
        ({"simulator": "scripted"}, "'scripted', not calibrated:FOLDER. For other users run: duologue train interac"),
        ({"dialogues": "a", "calibration": {"epoch": 1}}, "no field 'epoch' to set. Did you mean 'epochs'"),
        ({"dialogues": "a", "calibration": {"seed": 1}}, "no field 'seed' to set"),
        ({"dialogues": "a", "calibration": {"epochs": -1}}, "epochs is -1"),
        ({"dialogues": "a", "group_size": 1}, "group_size is 1"),
    ],
)
def test_bad_settings(configured: Callable[..., CalibratedConfig], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        configured(**changes)


def test_the_command_prints_before_and_after(model_folder: Path, logs: str, tmp_path: Path) -> None:
    output = str(tmp_path / "user")
    flags = ["--model", str(model_folder), "--epochs", "1", "--dtype", "float32", "--output", output]
    result = CliRunner().invoke(app, ["calibrate", "MathChat-v0", "--dialogues", logs, *flags])
    assert result.exit_code == 0, result.output
    assert "NLL per token" in result.output
    assert f"--simulator calibrated:{output}" in result.output.replace("\n", "")
    again = CliRunner().invoke(app, ["calibrate", "MathChat-v0", "--dialogues", logs, *flags])
    assert again.exit_code == 2
    assert "holds a calibrated user already" in again.output


@pytest.mark.parametrize("command", [["calibrate"], ["train", "calibrated"]])
def test_commands_teach_and_say_what_is_missing(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).output
    assert "--dialogues" in shown
    assert "Examples:" in shown
    bare = CliRunner().invoke(app, command)
    assert bare.exit_code == 2
    assert "error: " in bare.output
    assert "dialogues" in bare.output
