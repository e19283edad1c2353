"""FSDP 2 in two processes, whose whole weights go to a real SGLang server over a network, once a step."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess
from tests.engines.sglang_standin import on_loopback
from tests.trainers.conftest import model_folder, tokenizer
from tests.trainers.launched import launch, note, rows

__all__ = ["model_folder", "tokenizer"]  # fixtures
pytestmark = pytest.mark.slow


@pytest.fixture
def url(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of the trainers' tiny model."""
    if not PYTHON.is_file():
        pytest.skip(MISSING)
    on_loopback(monkeypatch)
    server = SGLangProcess(model_folder, tmp_path / "log", "--dtype", "float32", "--sampling-defaults", "openai")
    try:
        server.start()
        yield server.url
    finally:
        server.end()


def test_weights_that_two_processes_share_arrive_whole(url: str, model_folder: Path, tmp_path: Path) -> None:
    served = {"engine": f"sglang:{url}", "weight_sync": "distributed", "steps": 3, "learning_rate": 0.01}
    done = launch(tmp_path, model_folder, {"served": served}, "fsdp.yaml")
    assert done.returncode == 0, done.stderr
    notes = [note(tmp_path, "served", process) for process in range(2)]
    assert [one["calls"] for one in notes] == [0, 0]  # of the engine in the process
    assert [one["share"] for one in notes] == pytest.approx([0.5, 0.5], abs=0.01)
    played = rows(tmp_path / "served" / "episodes.jsonl")
    assert [sum(row["step"] == step for row in played) for step in range(3)] == [8, 8, 8]
    assert all(span["policy_version"] == row["step"] for row in played for span in row["spans"])
    differences = [row["sampling/logp_difference"] for row in rows(tmp_path / "served" / "metrics.jsonl")]
    assert max(differences) < 1e-4
