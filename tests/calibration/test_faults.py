"""A calibration that a full disk or a kill ends leaves no user, and the same call makes the one it would have made."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from duologue.cli import app
from duologue.disk import DiskFullError
from duologue.errors import DuologueError
from duologue.simulators.calibrated_folder import FILE, read_note
from duologue.simulators.logs import write_logs
from duologue.trainers.calibration import calibrate
from duologue.trainers.calibration_config import CalibrateConfig

Settings = Callable[..., CalibrateConfig]


def same_users(one: Path, other: Path) -> None:
    names = {path.name for path in one.iterdir()}
    assert names == {path.name for path in other.iterdir()}
    for name in names - {FILE, "README.md"}:  # these name the output folder
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def stopped(config: CalibrateConfig, disk: Any, room: int) -> str | None:
    """Calibrate with so little room, and return what was said; no user may be left then."""
    try:
        with disk.full(room):
            calibrate(config)
    except DiskFullError as error:
        with pytest.raises(DuologueError, match=r"no calibrated user|no folder"):
            read_note(Path(config.output))
        assert not list(Path(config.output).rglob("*.partial"))
        return str(error)
    return None


def test_a_full_disk_leaves_no_user_and_the_next_call_makes_it(
    settings: Settings, world: SimpleNamespace, small_disk: Any, tmp_path: Path
) -> None:
    logs = str(write_logs(tmp_path / "people.jsonl", world.people(10)))
    common = {"dialogues": logs, "epochs": 1, "lora_rank": 0}
    whole = calibrate(settings(output=str(tmp_path / "whole"), **common))
    config = settings(output=str(small_disk.folder / "user"), **common)
    size = sum(path.stat().st_size for path in whole.iterdir()) if small_disk.own else 30_000
    for room in (0, size // 2, size - (size % 4096) - 8192):  # nothing; some weights; all but what is written last
        said = stopped(config, small_disk, room)
        assert said is not None
        assert said.endswith("Then run the same command: it calibrates anew, over what is half written.")
    calibrate(config)
    same_users(whole, Path(config.output))


def test_the_command_says_it_in_one_line(
    settings: Settings, world: SimpleNamespace, small_disk: Any, tmp_path: Path
) -> None:
    logs = str(write_logs(tmp_path / "people.jsonl", world.people(10)))
    config = settings()
    given = ["calibrate", "MathChat-v0", "--dialogues", logs, "--model", config.model, "--epochs", "1"]
    with small_disk.full(0):
        result = CliRunner().invoke(app, [*given, "--output", str(small_disk.folder / "user"), "--lora-rank", "0"])
    assert result.exit_code == 2
    [said] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "could not be written" in said
    assert said.endswith("it calibrates anew, over what is half written.")


@pytest.mark.slow
def test_a_killed_calibration_is_made_anew(settings: Settings, world: SimpleNamespace, tmp_path: Path) -> None:
    """``kill -9`` of the command while it trains, then the same command again."""
    logs = str(write_logs(tmp_path / "people.jsonl", world.people(10)))
    config = settings(dialogues=logs, epochs=20, lora_rank=0, output=str(tmp_path / "whole"))
    whole, killed = calibrate(config), tmp_path / "killed"
    told = tmp_path / "calibrate.json"
    told.write_text(json.dumps({"dialogues": logs, "epochs": 20, "lora_rank": 0, "model": config.model}))
    command = [sys.executable, "-m", "duologue", "calibrate", "--config", str(told), "--output", str(killed)]
    command += ["--dtype", "float32", "--learning-rate", str(config.learning_rate)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    with first.stderr as lines:
        assert any(line.startswith("step") for line in lines)
        first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    assert not (killed / FILE).exists()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    same_users(whole, killed)
