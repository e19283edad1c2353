"""FSDP 2 in two processes, really launched (gloo, CPU): whole runs that learn, write and resume as one process does.

accelerate shards only over accelerators, so the worker has it take CPUs for some; all else is what GPUs run.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from duologue.engines.models import load_model
from duologue.trainers.interactive import InteractiveTrainer
from tests.engines.sglang_standin import StandIn
from tests.trainers.launched import Changes, compare, launch, load_files, note, play_alone, rows, same_weights

pytestmark = pytest.mark.slow
MakeTrainer = Callable[..., InteractiveTrainer]
RUNS: dict[str, Changes] = {
    "stopped": {"steps": 3, "save_steps": 2, "stop": 2},
    "goes on": {"steps": 3, "save_steps": 2, "output": "stopped"},
    "anchored": {"beta": 0.1, "trl": {"gradient_checkpointing": True}},
    "adapter": {"lora_rank": 4, "save_steps": 1},
    "uneven": {"steps": 1},
}
"""What each run changes, in the order in which they are run in the same two processes."""


@pytest.fixture(scope="module")
def launched(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all runs wrote."""
    folder = tmp_path_factory.mktemp("sharded")
    done = launch(folder, model_folder, RUNS, "fsdp.yaml")
    assert done.returncode == 0, done.stderr
    return folder


def test_every_process_held_half_of_the_weights(launched: Path) -> None:
    for name in ("stopped", "anchored", "adapter", "uneven"):
        for process in range(2):
            assert note(launched, name, process)["share"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("name", "folder"), [("goes on", "stopped"), ("anchored", "anchored"), ("adapter", "adapter")])
def test_it_learns_what_one_process_learns(
    launched: Path, trainer: MakeTrainer, world: SimpleNamespace, tmp_path: Path, name: str, folder: str
) -> None:
    made = play_alone(trainer, world, RUNS[name], tmp_path / "alone")
    compare(launched / folder, made)


def test_the_policy_is_saved_whole(launched: Path, model_folder: Path) -> None:
    [expected], [saved] = load_files(model_folder), load_files(launched / "stopped" / "final")
    assert {name: tensor.shape for name, tensor in saved.items()} == {n: t.shape for n, t in expected.items()}
    policy = load_model(str(launched / "adapter" / "final"), dtype="float32", device="cpu")
    assert all(parameter.isfinite().all() for parameter in policy.model.parameters())
    [adapter] = load_files(launched / "adapter" / "final")
    assert all("lora_" in name for name in adapter)


def test_processes_out_of_step_wait_for_each_other(launched: Path) -> None:
    first, second = (note(launched, "uneven", process) for process in range(2))
    assert (first["error"], second["error"]) == (None, None)
    assert first["calls"] == 1
    assert second["calls"] > first["calls"]


def test_a_server_is_given_whole_weights(
    server: StandIn, model_folder: Path, trainer: MakeTrainer, world: SimpleNamespace, tmp_path: Path
) -> None:
    """What the server was told to load after a step of training, and what it sampled from that."""
    served = {"engine": f"sglang:{server.url}"}
    runs: dict[str, Changes] = {"of an adapter": {**served, "lora_rank": 4, "learning_rate": 5e-3}, "of all": served}
    done = launch(tmp_path, model_folder, runs, "fsdp.yaml")
    assert done.returncode == 0, done.stderr
    orders = [call for call in server.calls if call.startswith(("/load", "/update"))]
    assert orders == ["/load_lora_adapter"] * 2 + ["/update_weights_from_disk"] * 2
    for name, changes in runs.items():
        [first, second] = (note(tmp_path, name, process) for process in range(2))
        assert (first["calls"], second["calls"]) == (0, 0)  # of the engine in the process
        assert first["share"] == pytest.approx(0.5, abs=0.01)
        server.kill()
        server.start()  # with its own weights again
        made = play_alone(trainer, world, changes, tmp_path / f"{name} alone")
        weights = same_weights(made.output / "served" / "step-1", tmp_path / name / "served" / "step-1")
        trained = [tensor for part, tensor in weights.items() if "lora_B" in part]
        assert bool(trained) == (name == "of an adapter")
        assert all(tensor.abs().max() > 0 for tensor in trained)
        played = rows(tmp_path / name / "episodes.jsonl")
        assert {span["policy_version"] for row in played for span in row["spans"]} == {0, 1}
        compare(tmp_path / name, made)
