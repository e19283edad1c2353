"""FSDP 2 in two processes, whose whole weights go to a real SGLang server over a network, once a step."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.sglang_cpu.process import MISSING, PYTHON, SGLangProcess
from tests.engines.sglang_standin import on_loopback
from tests.servers.test_sglang_server import check_run
from tests.trainers.conftest import model_folder, tokenizer
from tests.trainers.launched import launch, load_files, note

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
    check_run(tmp_path / "served")
    [start], [end] = load_files(model_folder), load_files(tmp_path / "served" / "final")
    assert all((end[name] - tensor).abs().max() > 1e-3 for name, tensor in start.items())  # old weights would differ
