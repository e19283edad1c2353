"""All weights of a real SGLang server replaced, from a folder and over a network (gloo here, NCCL between GPUs).

The server's base bears other labels from here on; what starts it anew gives it its own weights back.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from duologue.engines import SGLangEngine, load_model
from duologue.engines.weight_group import buckets
from duologue.errors import DuologueError
from duologue.simulators import make_simulator
from duologue.trainers import InteractiveTrainer
from examples.sglang_cpu.process import SGLangProcess
from tests.engines.sglang_standin import on_loopback
from tests.servers.test_sglang_server import GREEDY, PROMPTS, STOPS, check_run, trainer, worst

__all__ = ["trainer"]  # a fixture
pytestmark = pytest.mark.slow
State = dict[str, torch.Tensor]
Make = Callable[..., InteractiveTrainer]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    on_loopback(monkeypatch)


@pytest.fixture
def moved(served_model: Path, tmp_path: Path) -> Path:
    """The served model with other weights."""
    loaded = load_model(str(served_model), dtype="float32", device="cpu")
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.add_(0.05 * torch.sin(torch.arange(weight.numel()).reshape(weight.shape)))
    loaded.model.save_pretrained(tmp_path / "moved")
    loaded.tokenizer.save_pretrained(tmp_path / "moved")
    return tmp_path / "moved"


@pytest.fixture
def plain(sglang_server: SGLangProcess, served_model: Path) -> Iterator[SGLangEngine]:
    """An engine that leaves the server as it found it."""
    engine = SGLangEngine(sglang_server.url)
    yield engine
    engine.sync_weights(served_model, 99)
    assert worst(engine.generate(PROMPTS, GREEDY, STOPS, range(6)), served_model, PROMPTS) < 1e-3


def state(folder: Path) -> State:
    return dict(load_model(str(folder), dtype="float32", device="cpu").model.state_dict())


def test_from_a_folder(plain: SGLangEngine, moved: Path) -> None:
    plain.sync_weights(moved, 5)
    rows = plain.generate(PROMPTS, GREEDY, STOPS, range(6))
    assert worst(rows, moved, PROMPTS) < 1e-3
    assert {row.version for row in rows} == {5}


def test_over_a_network(plain: SGLangEngine, served_model: Path, moved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several parts, again in the same group, and between times from a folder."""
    parts: list[int] = []

    def small(weights: State) -> list[Any]:
        found = list(buckets(weights, 2**14))
        parts.append(len(found))
        return found

    monkeypatch.setattr("duologue.engines.sglang_broadcast.buckets", small)
    assert worst(plain.generate(PROMPTS, GREEDY, STOPS, range(6)), moved, PROMPTS) > 0.1  # the test could tell
    for version, folder in enumerate((moved, served_model, moved), 5):
        plain.sync_tensors(state(folder), version)
        rows = plain.generate(PROMPTS, GREEDY, STOPS, range(6))
        assert worst(rows, folder, PROMPTS) < 1e-3
        assert {row.version for row in rows} == {version}
        plain.sync_weights(served_model, 50 + version)
    assert parts[0] == parts[1] == parts[2] > 3


def test_an_update_that_nobody_ended(plain: SGLangEngine, sglang_server: SGLangProcess, moved: Path) -> None:
    """As a trainer leaves it that was killed while its weights arrived."""
    assert httpx.post(f"{sglang_server.url}/begin_weight_update", json={}).status_code == httpx.codes.OK
    plain.sync_tensors(state(moved), 5)
    assert worst(plain.generate(PROMPTS, GREEDY, STOPS, range(6)), moved, PROMPTS) < 1e-3


def test_weights_of_another_architecture(plain: SGLangEngine, moved: Path) -> None:
    wrong = {name: tensor[..., :1] for name, tensor in state(moved).items()}
    with pytest.raises(DuologueError, match=r"update_weights_from_distributed|answered 400"):
        plain.sync_tensors(wrong, 5)
    plain.sync_tensors(state(moved), 6)  # with a new group
    assert worst(plain.generate(PROMPTS, GREEDY, STOPS, range(6)), moved, PROMPTS) < 1e-3


def test_training_sends_each_step(
    sglang_server: SGLangProcess, served_model: Path, trainer: Make, tmp_path: Path
) -> None:
    """With a server that is killed before the third step and comes back with the weights of the start."""
    made = trainer(
        make_simulator("scripted", "MathChat-v0"),
        engine=f"sglang:{sglang_server.url}",
        weight_sync="distributed",
        lora_rank=0,
        learning_rate=0.005,
    )
    play, groups = made.play, []
    broadcast: Any = made.agent.engine.engine._broadcast  # type: ignore[attr-defined]

    def disturbed(rows: Any, step: int, training: bool) -> Any:
        if step == 2:
            made.agent.engine.version = step  # type: ignore[attr-defined]
            sglang_server.signal(signal.SIGKILL)
            sglang_server.start(wait=False)
        episodes = play(rows, step, training)
        groups.append(broadcast._group.name)
        return episodes

    object.__setattr__(made.trainer.options, "play", disturbed)
    made.train()
    check_run(tmp_path / "run")
    start, end = state(served_model), state(tmp_path / "run" / "final")
    assert all((end[name] - tensor).abs().max() > 1e-3 for name, tensor in start.items())  # old weights would differ
    assert not (tmp_path / "run" / "served").exists()
    assert groups[0] == groups[1] != groups[2]
    left = httpx.post(f"{sglang_server.url}/destroy_weights_update_group", json={"group_name": groups[2]})
    assert "does not exist" in left.text
    assert (broadcast._group, broadcast._weights) == (None, {})


def test_an_adapter_goes_from_disk(sglang_server: SGLangProcess, trainer: Make) -> None:
    served = {"engine": f"sglang:{sglang_server.url}", "weight_sync": "distributed"}
    with pytest.raises(DuologueError, match=r"trains an adapter\. Set lora_rank to 0 .* from disk\.$"):
        trainer(make_simulator("scripted", "MathChat-v0"), **served)
