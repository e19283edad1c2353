"""Two processes, really launched (gloo, CPU): what they learn, what they write, and how they end."""

import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from duologue.engines.base import Sampling
from duologue.engines.hf import TransformersEngine
from duologue.engines.models import load_model
from duologue.trainers.interactive import InteractiveTrainer
from tests.engines.sglang_standin import StandIn
from tests.trainers.launched import BASE, Changes, compare, launch, note, play_alone, rows

pytestmark = pytest.mark.slow
RUNS: dict[str, Changes] = {
    "plain": {"steps": 4, "save_steps": 2, "stop": 3},
    "resumed": {"steps": 4, "save_steps": 2, "output": "plain"},
    "one group": {"groups_per_step": 1, "loss_type": "grpo", "drop_flat_groups": True, "lora_rank": 4},
    "uneven": {},
    "flat": {"loss_type": "dapo"},
    "fails": {},
}
"""What each run changes, in the order in which they are run in the same two processes."""


@pytest.fixture(scope="module")
def launched(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which all runs wrote, and what they said."""
    folder = tmp_path_factory.mktemp("two")
    done = launch(folder, model_folder, RUNS)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.fixture
def alone(
    trainer: Callable[..., InteractiveTrainer], world: Any, tmp_path: Path
) -> Callable[[str], InteractiveTrainer]:
    """Plays one of the runs in this process alone."""
    return lambda name: play_alone(trainer, world, RUNS[name], tmp_path / "alone")


def test_stopped_and_continued_by_two_is_what_one_process_learns(
    launched: tuple[Path, str], alone: Callable[[str], InteractiveTrainer]
) -> None:
    compare(launched[0] / "plain", alone("resumed"))


def test_one_process_can_go_on_where_two_stopped(
    launched: tuple[Path, str], trainer: Callable[..., InteractiveTrainer], world: Any, tmp_path: Path
) -> None:
    shutil.copytree(launched[0] / "plain", tmp_path / "moved")
    extended = {**BASE, "steps": 5, "save_steps": 5}
    trainer({"reward": world.graded}, **extended, output=str(tmp_path / "moved")).train()
    straight = trainer({"reward": world.graded}, **extended, output=str(tmp_path / "straight"))
    straight.train()
    compare(tmp_path / "moved", straight)


def test_a_group_that_spans_processes_is_one_group(
    launched: tuple[Path, str], alone: Callable[[str], InteractiveTrainer]
) -> None:
    compare(launched[0] / "one group", alone("one group"))


def test_one_file_of_everything(launched: tuple[Path, str]) -> None:
    folder, said = launched
    written = {path.name for path in (folder / "plain").iterdir()}
    logs = {"config.json", "episodes.jsonl", "metrics.jsonl", "process-0.json", "process-1.json"}
    assert written == {"checkpoint-2", "checkpoint-4", "final", "README.md"} | logs
    assert [row["step"] for row in rows(folder / "plain" / "metrics.jsonl")] == [1, 2, 3, 4]
    assert [row["step"] for row in rows(folder / "plain" / "episodes.jsonl")] == [i // 8 for i in range(32)]
    steps = [line.split("/")[0].split()[-1] for line in said.splitlines() if line.startswith("step ") and "/4 " in line]
    assert steps == ["1", "2", "3", "3", "4"]  # the third once more, after resuming from the second


def test_a_process_whose_users_leave_early_waits_for_the_other(launched: tuple[Path, str]) -> None:
    folder = launched[0] / "uneven"
    [first, second] = (note(launched[0], "uneven", i) for i in range(2))
    assert (first["error"], second["error"]) == (None, None)
    assert first["calls"] == BASE["steps"]  # one reply to each dialogue, no empty or padded calls
    assert second["calls"] > first["calls"]
    turns = [len(row["spans"]) for row in rows(folder / "episodes.jsonl") if row["step"] == 0]
    assert turns[:4] == [1] * 4
    assert min(turns[4:]) > 1
    assert (folder / "final").is_dir()


def test_a_process_without_anything_to_learn_keeps_up_with_the_other(launched: tuple[Path, str]) -> None:
    folder = launched[0] / "flat"
    assert [note(launched[0], "flat", i)["error"] for i in range(2)] == [None, None]
    assert [row["frac_reward_zero_std"] for row in rows(folder / "metrics.jsonl")] == [0.5, 0.5]
    [weights] = (folder / "final").glob("*.safetensors")
    assert all(tensor.isfinite().all() for tensor in load_file(weights).values())


def test_a_failure_of_one_is_said_by_both(launched: tuple[Path, str]) -> None:
    first, second = (note(launched[0], "fails", i)["error"] for i in range(2))
    assert second == "The users of this process are gone. Bring them back."
    assert first == f"Process 1 failed: {second}"


def test_sharded_weights_sample_what_whole_ones_do(launched: tuple[Path, str], model_folder: Path) -> None:
    loaded = load_model(str(model_folder), dtype="float32", device="cpu")
    engine = TransformersEngine(loaded.model, 0)
    expected = [list(engine.generate([[2, 4, 7]], Sampling(6, 1.0), [3], [s])[0].token_ids) for s in range(5)]
    first, second = (note(launched[0], "plain", i) for i in range(2))  # of the resumed run
    assert (first["tokens"], second["tokens"]) == (expected[:2], expected)
    ids = torch.tensor([[2, 4, 7, 8]])
    loaded.model(ids, labels=ids).loss.backward()
    norm = sum(float(p.grad.square().sum()) for p in loaded.model.parameters() if p.grad is not None)
    assert first["gradient"] == pytest.approx(norm, rel=1e-3)
    assert second["gradient"] == pytest.approx(norm, rel=1e-3)


def test_a_full_disk_and_a_process_that_dies_end_the_others_and_cost_no_finished_step(
    model_folder: Path, tmp_path: Path, alone: Callable[[str], InteractiveTrainer]
) -> None:
    """No room for the optimiser's state, then ``kill -9`` of one process in its third step, then nothing."""
    options = {**RUNS["resumed"], "output": "run"}
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, most))  # the processes inherit it
    try:
        full = launch(tmp_path, model_folder, {"full": options})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
    assert full.returncode != 0
    assert "it begins again, as there is no checkpoint yet" in str(note(tmp_path, "run", 0)["error"])
    assert not list((tmp_path / "run").glob("checkpoint-*"))

    died = launch(tmp_path, model_folder, {"dies": options})
    assert died.returncode != 0
    assert [path.name for path in (tmp_path / "run").glob("checkpoint-*")] == ["checkpoint-2"]
    assert not (tmp_path / "run" / "final").exists()

    assert launch(tmp_path, model_folder, {"goes on": options}).returncode == 0
    compare(tmp_path / "run", alone("resumed"))


def test_two_processes_sample_on_one_server(
    server: StandIn,
    model_folder: Path,
    trainer: Callable[..., InteractiveTrainer],
    world: Any,
    tmp_path: Path,
) -> None:
    """The first process has the server load each step's adapter; the episodes are those of one process."""
    served = {"engine": f"sglang:{server.url}", "lora_rank": 4, "learning_rate": 0.05, "steps": 3}
    done = launch(tmp_path, model_folder, {"served": served})
    assert done.returncode == 0, done.stderr
    assert server.calls.count("/load_lora_adapter") == 3
    assert not server.adapters  # unloaded at the end
    played = rows(tmp_path / "served" / "episodes.jsonl")
    assert all(span["policy_version"] == row["step"] for row in played for span in row["spans"])
    made = trainer({"reward": world.graded}, **{**BASE, **served, "output": str(tmp_path / "alone")})
    made.train()
    compare(tmp_path / "served", made)
