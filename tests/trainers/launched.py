"""Runs of two processes for tests: how they are launched, and how they are compared with one of one process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from duologue.trainers.interactive import InteractiveTrainer

WORKER = Path(__file__).with_name("distributed_worker.py")
SHIPPED = Path(__file__).parents[2] / "examples" / "accelerate"
UNLIKE = ("seconds", "step_time", "sampling/logp_difference", "epoch", "kl", "entropy")
"""Metrics that differ: clocks, a share of all steps, and means of the forward passes' means."""
BASE: dict[str, Any] = {
    "steps": 2,
    "groups_per_step": 2,
    "group_size": 4,
    "micro_batch_size": 2,
    "max_tokens_per_turn": 6,
    "max_total_tokens": 100,
    "lora_rank": 0,
    "learning_rate": 1e-3,
    "dtype": "float32",
}
Changes = dict[str, Any]
"""What a run has unlike ``BASE``; ``stop`` = after which step somebody stops it."""


def launch(
    folder: Path, model: Path, runs: dict[str, Changes], file: str = "ddp.yaml"
) -> "subprocess.CompletedProcess[str]":
    """Run the worker in two processes, as ``accelerate launch`` and a shipped configuration start them."""
    settings = [
        {**BASE, "case": name, "output": name, "model": str(model), **changes} for name, changes in runs.items()
    ]
    for one in settings:
        one["output"] = str(folder / one["output"])
    told = folder / "settings.json"
    told.write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--config_file",
        str(SHIPPED / file),
        str(WORKER),
        str(told),
    ]
    calm = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TRL_EXPERIMENTAL_SILENCE": "1"}
    return subprocess.run(command, env={**os.environ, **calm}, capture_output=True, text=True, timeout=300)


def play_alone(
    trainer: Callable[..., InteractiveTrainer], world: Any, changes: Changes, output: Path
) -> InteractiveTrainer:
    """Do one of the runs in this process alone: the same steps, twice as many micro-batches each."""
    same = {k: v for k, v in {**BASE, **changes}.items() if k not in ("stop", "save_steps")}
    made = trainer({"reward": world.graded}, **{**same, "output": str(output)})
    made.train()
    return made


def rows(file: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def note(folder: Path, name: str, process: int) -> dict[str, Any]:
    """Read what a process left about its run."""
    made: dict[str, Any] = json.loads((folder / name / f"process-{process}.json").read_text())
    return made


def compare(folder: Path, made: InteractiveTrainer) -> None:
    """The same episodes token by token in the same order; numbers and weights within float tolerance."""
    one, two = rows(made.output / "episodes.jsonl"), rows(folder / "episodes.jsonl")
    assert len(one) == len(two) == made.config.steps * made.config.episodes_per_step
    for ours, theirs in zip(one, two, strict=True):
        for row in (ours, theirs):
            row.pop("seconds")
        assert ours.pop("logprobs") == pytest.approx(theirs.pop("logprobs"), abs=1e-4)
        assert ours == theirs
    for ours, theirs in zip(made.metrics, rows(folder / "metrics.jsonl"), strict=True):
        names = [name for name in ours.keys() | theirs.keys() if not name.startswith(UNLIKE)]
        assert [ours[n] for n in names] == pytest.approx([theirs[n] for n in names], rel=1e-3, abs=1e-4)
    start = load_file(Path(made.config.model) / "model.safetensors")
    for name, tensor in same_weights(made.output / "final", folder / "final").items():
        assert name not in start or not torch.equal(tensor, start[name])


def same_weights(one: Path, two: Path) -> dict[str, torch.Tensor]:
    """Compare the weights in two folders, names and shapes and numbers, and return the second's."""
    [ours], [theirs] = (load_files(folder) for folder in (one, two))
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        torch.testing.assert_close(tensor, ours[name], atol=1e-5, rtol=1e-4)
    return theirs


def load_files(folder: Path) -> list[dict[str, torch.Tensor]]:
    """Load every file of weights in a folder."""
    return [load_file(path) for path in folder.glob("*.safetensors")]
