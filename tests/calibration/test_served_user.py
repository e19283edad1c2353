"""A calibrated user whose model is on a server: who loads what, and what it is called."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model

from duologue.analysis.fidelity.foretell import foretold
from duologue.engines import SGLangEngine
from duologue.engines.chat import ChatFormat
from duologue.engines.models import load_model, without_bars
from duologue.errors import DuologueError
from duologue.simulators import CalibratedUser, GuardedUser, make_simulator
from duologue.simulators.calibrated_folder import CalibrationNote
from duologue.types import Dialogue, Task
from tests.engines.sglang_standin import StandIn, log_softmax, on_loopback, standin

DIALOGUES = [Dialogue(Task("t", "say red", reference="red"), seed) for seed in range(3)]


@pytest.fixture
def server(chat: ChatFormat, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """It says only "no", which takes a few tokens, and ends its turn."""
    on_loopback(monkeypatch)
    says = [*chat.text_ids("no"), chat.end_of_turn_id]

    def logits(tokens: list[int], weights: str, adapter: str | None) -> object:
        said = next((n for n in range(len(says) - 1, 0, -1) if list(tokens[-n:]) == says[:n]), 0)
        row = torch.full((chat.end_of_turn_id + 1,), -30.0)
        row[says[said]] = 0.0
        return log_softmax(row.numpy())

    with standin(logits) as running:  # type: ignore[arg-type]
        yield running


def note(folder: Path, world: SimpleNamespace) -> Path:
    CalibrationNote("MathChat", world.PROMPT, 8, "tiny", "0" * 16, {}).write(folder)
    return folder


@pytest.fixture
def whole(model_folder: Path, world: SimpleNamespace, tmp_path: Path) -> Path:
    return note(Path(shutil.copytree(model_folder, tmp_path / "whole")), world)


@pytest.fixture
def adapter(model_folder: Path, world: SimpleNamespace, tmp_path: Path) -> Path:
    loaded = load_model(str(model_folder), dtype="float32", device="cpu")
    with torch.random.fork_rng(), without_bars():
        get_peft_model(loaded.model, LoraConfig(r=2, target_modules="all-linear")).save_pretrained(
            str(tmp_path / "user")
        )
    loaded.tokenizer.save_pretrained(tmp_path / "user")
    return note(tmp_path / "user", world)


def test_the_server_loads_the_adapter_and_samples(server: StandIn, adapter: Path) -> None:
    spec = f"calibrated:sglang:{server.url}#{adapter}"
    guarded = make_simulator(spec, "MathChat-v0")
    assert isinstance(guarded, GuardedUser)
    assert [turn.text for turn in guarded.respond(DIALOGUES)] == ["no"] * 3
    [(name, path)] = server.adapters.items()
    assert path == str(adapter)
    assert [(b["lora_path"], b["sampling_params"]["temperature"]) for b in server.bodies] == [(name, 1.0)] * 3
    assert foretold(guarded, []) is None  # its log-probabilities are not here


def test_two_users_on_a_server_do_not_take_each_others_adapter(server: StandIn, adapter: Path) -> None:
    users = [CalibratedUser(adapter, engine=SGLangEngine(server.url)) for _ in range(2)]
    assert len(server.adapters) == 2
    for user in users:
        user.respond(DIALOGUES[:1])
    assert [body["lora_path"] for body in server.bodies] == list(server.adapters)
    assert users[0].signature == users[1].signature


def test_no_model_is_here(server: StandIn, adapter: Path) -> None:
    user = CalibratedUser(adapter, engine=SGLangEngine(server.url))
    assert not user.is_local
    with pytest.raises(DuologueError, match=r"on a server\. Make it from its folder alone to have it here\.$"):
        _ = user.loaded


def test_a_whole_model_is_what_the_server_serves(server: StandIn, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DuologueError, match=r"weights of its own\. Start a server with --model-path .*--lora-rank"):
        CalibratedUser(whole, engine=SGLangEngine(server.url))
    get = server.get
    info = {"model_path": str(whole), "weight_version": "default"}
    monkeypatch.setattr(server, "get", lambda path: (200, info) if path == "/model_info" else get(path))
    user = CalibratedUser(whole, engine=SGLangEngine(server.url))
    assert [turn.text for turn in user.respond(DIALOGUES)] == ["no"] * 3
    assert server.adapters == {}
    assert user.signature.startswith(f"calibrated:whole@{server.url}|")


@pytest.mark.parametrize("kind", ["whole", "adapter"])
def test_other_weights_are_another_user(
    server: StandIn, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(kind)
    get = server.get
    info = {"model_path": str(folder), "weight_version": "default"}
    monkeypatch.setattr(server, "get", lambda path: (200, info) if path == "/model_info" else get(path))
    before = CalibratedUser(folder, engine=SGLangEngine(server.url)).signature
    [weights] = folder.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes() + b" ")
    assert CalibratedUser(folder, engine=SGLangEngine(server.url)).signature != before
