"""A full disk stops training with what to do, costs nothing that was finished, and changes no number."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from duologue.cli import app
from duologue.disk import DiskFullError
from duologue.simulators.logs import LoggedDialogue, write_logs
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.run_folder import last_checkpoint, step_of
from duologue.types import Message

MakeTrainer = Callable[..., InteractiveTrainer]
CLOCKS = ("seconds", "step_time", "sampling/logp_difference", "epoch")  # the last: a share of all steps
KINDS = ("OSError", "SafetensorError", "RuntimeError", "Exception")  # of Python, safetensors, torch, tokenizers
OPTIONS: dict[str, Any] = {"steps": 4, "save_steps": 2, "learning_rate": 3e-3}


def logged(file: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.startswith(CLOCKS)} for row in rows]


def content(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def same_runs(one: Path, other: Path) -> None:
    """Weights, dialogues and metrics are equal, and each dialogue is there once."""
    left, right = (load_file(folder / "final" / "model.safetensors") for folder in (one, other))
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert logged(one / "metrics.jsonl") == logged(other / "metrics.jsonl")
    assert logged(one / "episodes.jsonl") == logged(other / "episodes.jsonl")
    assert [row["step"] for row in logged(one / "episodes.jsonl")] == [i // 8 for i in range(32)]


def stopped(made: InteractiveTrainer, disk: Any, room: int) -> DiskFullError | None:
    try:
        with disk.full(room):
            made.train()
    except DiskFullError as error:
        return error
    return None


def refused(trainer: Callable[[], InteractiveTrainer], disk: Any, room: int) -> BaseException | None:
    """Train with so little room; return what lay below the error, once it and what it left are as they should be."""
    made = trainer()
    before = {path.name: content(path) for path in made.output.glob("checkpoint-*")}
    error = stopped(made, disk, room)
    if error is None:
        return None
    found = last_checkpoint(made.output)
    begins = "begins again, as there is no checkpoint yet (save_steps makes some)"
    goes = f"goes on from step {step_of(found)}" if found else begins
    assert str(error).startswith(f"{str(made.output)!r} could not be written: ")
    assert str(error).endswith(f"Then run the same command: it {goes}.")
    assert before.items() <= {path.name: content(path) for path in made.output.glob("checkpoint-*")}.items()
    assert not list(made.output.rglob("*partial"))
    assert {row["stop_reason"] for row in made.episodes}.isdisjoint({"policy_error", "simulator_error"})
    return error.__cause__


def test_a_checkpoint_without_room_ends_the_run_and_the_next_call_goes_on(
    trainer: MakeTrainer, world: SimpleNamespace, small_disk: Any, tmp_path: Path
) -> None:
    """There is room for weights and not for the optimiser's state, first without a checkpoint and then with one."""
    env, output, room = {"reward": world.graded}, small_disk.folder / "run", 220_000 if small_disk.own else 130_000

    def make(**changes: Any) -> InteractiveTrainer:
        return trainer(env, **{**OPTIONS, "output": str(output), **changes})

    make(output=str(tmp_path / "straight")).train()
    assert isinstance(refused(make, small_disk, room), RuntimeError)
    assert last_checkpoint(output) is None
    make(steps=2).train()
    assert isinstance(refused(make, small_disk, room), RuntimeError)
    make().train()
    same_runs(tmp_path / "straight", output)


@pytest.mark.slow
def test_it_fails_at_every_file_in_turn_and_loses_nothing(
    trainer: MakeTrainer, world: SimpleNamespace, small_disk: Any, tmp_path: Path
) -> None:
    """From no room at all in small steps to enough: the same command each time, after two steps that went well."""
    env, output = {"reward": world.graded}, small_disk.folder / "run"

    def make(**changes: Any) -> InteractiveTrainer:
        return trainer(env, **{**OPTIONS, "output": str(output), **changes})

    make(output=str(tmp_path / "straight")).train()
    make(steps=2).train()
    room, causes = 0, []
    while cause := refused(make, small_disk, room):
        causes.append(type(cause).__name__)
        assert json.loads((output / "config.json").read_text())["learning_rate"] == 3e-3
        room += 4096 if room < 16384 else 28672
    assert {"OSError", "SafetensorError", "RuntimeError"} <= set(causes) <= {*KINDS}
    assert causes[0] == "OSError"  # not even the configuration could be noted
    same_runs(tmp_path / "straight", output)


def test_errors_of_the_run_are_not_about_the_disk(trainer: MakeTrainer, small_disk: Any) -> None:
    made = trainer(output=str(small_disk.folder / "run"))
    made.trainer.training_step = lambda *_, **__: torch.zeros(2) @ torch.zeros(3)
    with small_disk.full(500_000), pytest.raises(RuntimeError, match=r"inconsistent tensor size|size mismatch"):
        made.train()


@pytest.mark.parametrize("kind", ["interactive", "static"])
def test_the_commands_say_it_in_one_line(
    world: SimpleNamespace, small_disk: Any, model_folder: Path, tmp_path: Path, kind: str
) -> None:
    said = Message(role="user", content="please say red"), Message(role="assistant", content="red")
    logs = write_logs(tmp_path / "logs.jsonl", [LoggedDialogue("d", world.tasks[0], said)])
    given = ["train", kind, "MathChat-v0", "--model", str(model_folder), "--output", str(small_disk.folder / "run")]
    given += ["--lora-rank", "0", "--max-tokens-per-turn", "6", "--dtype", "float32"]
    with small_disk.full(0):
        result = CliRunner().invoke(app, given + (["--dialogues", str(logs)] if kind == "static" else []))
    assert result.exit_code == 2
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert "run' could not be written: " in line
    assert "Then run the same command: it begins again" in line
