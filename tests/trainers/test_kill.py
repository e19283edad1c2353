"""``kill -9`` at the worst places, one after the other in one run: it comes to what the undisturbed run came to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from duologue.trainers.interactive import InteractiveTrainer

WORKER = Path(__file__).with_name("kill_worker.py")
CLOCKS = ("seconds", "step_time", "sampling/logp_difference")  # the last: checked once per process
PLACES = (
    "in the log",
    "while dialogues are played",
    "in the optimiser",
    "in a checkpoint",
    "before a checkpoint is moved",
    "in the metrics",
    "before the policy is moved",
)


def logged(file: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(CLOCKS)} for row in rows]


def die_everywhere(settings: dict[str, Any], folder: Path) -> "subprocess.CompletedProcess[str]":
    told = folder / "settings.json"
    told.write_text(json.dumps(settings))
    calm = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TRL_EXPERIMENTAL_SILENCE": "1"}
    command = [sys.executable, str(WORKER), str(told)]
    return subprocess.run(command, env={**os.environ, **calm}, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_a_run_that_died_everywhere_is_the_run_that_did_not(
    trainer: Callable[..., InteractiveTrainer], world: SimpleNamespace, tmp_path: Path
) -> None:
    options = {"steps": 4, "save_steps": 2, "learning_rate": 3e-3}
    straight = trainer({"reward": world.graded}, output=str(tmp_path / "straight"), **options)
    straight.train()
    output = tmp_path / "killed"
    settings = {**asdict(straight.config), "output": str(output), "places": PLACES}
    done = die_everywhere(settings, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [-signal.SIGKILL] * len(PLACES) + [0], done.stderr

    expected, found = (load_file(folder / "final" / "model.safetensors") for folder in (straight.output, output))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    for name in ("episodes.jsonl", "metrics.jsonl"):
        assert logged(straight.output / name) == logged(output / name)
    assert [row["step"] for row in logged(output / "episodes.jsonl")] == [i // 8 for i in range(32)]
    assert {path.name for path in output.iterdir()} == {path.name for path in straight.output.iterdir()}
