"""A policy that trains here and samples on a server: adapters go over, tokens come back, failures cost dialogues."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from duologue.engines import RowsError, Sampling
from duologue.engines.spec import make_engine
from duologue.errors import DuologueError
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Limits, TokenAgent
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.conversation import Conversation
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.rollout import Rollout, Start
from duologue.trainers.served import ByDisk, ServedPolicy
from duologue.types import Message, StopReason
from tests.engines.sglang_standin import StandIn

MakeTrainer = Callable[..., InteractiveTrainer]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [4, 0])
def test_every_step_samples_from_its_own_weights(
    server: StandIn, trainer: MakeTrainer, world: SimpleNamespace, rank: int, tmp_path: Path
) -> None:
    made = trainer({"reward": world.graded}, engine=f"sglang:{server.url}", lora_rank=rank, learning_rate=0.05)
    differences, check = [], made.trainer._recomputed

    def watched(output: dict[str, Any]) -> torch.Tensor:
        recomputed: torch.Tensor = check(output)
        mask = (output["completion_mask"] * output["tool_mask"]).bool()
        differences.append(float((recomputed - output["sampling_per_token_logps"])[mask].abs().max()))
        return recomputed

    made.trainer._recomputed = watched  # type: ignore[method-assign]
    final = made.train()
    assert len(differences) == 2  # once a step: the correction needs it, the comparison takes it
    assert max(differences) < 1e-4
    versions = {span["policy_version"] for row in episodes(tmp_path) for span in row["spans"]}
    assert versions == {0, 1}
    orders = [call for call in server.calls if call.startswith(("/load", "/update"))]
    assert orders == ["/load_lora_adapter" if rank else "/update_weights_from_disk"] * 2
    assert [folder.name for folder in (tmp_path / "run" / "served").iterdir()] == ["step-1"]
    assert server.adapters == {}
    assert final.is_dir()


def episodes(tmp_path: Path) -> list[dict[str, Any]]:
    import json

    lines = (tmp_path / "run" / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_failed_turn_ends_its_dialogue_unscored_and_no_other(
    server: StandIn, world: SimpleNamespace, model_folder: Path
) -> None:
    agent = make_agent(f"sglang:{server.url}#{model_folder}", Limits(6, 100), 1.0, None)
    rollout = Rollout(world.make_env(8, max_turns=2), agent)
    starts = [Start(i, i) for i in range(8)]
    wanted = rollout.play(starts)
    plain = server.generate
    unlucky = list(wanted[3].prompt_ids)

    def refuses(body: dict[str, Any]) -> tuple[int, Any]:
        return (400, {"error": {"message": "unlucky"}}) if body["input_ids"] == unlucky else plain(body)

    server.generate = refuses  # type: ignore[method-assign]
    met = rollout.play(starts)
    for before, after in zip(wanted, met, strict=True):
        if list(before.prompt_ids) == unlucky:
            assert (after.stop_reason, after.reward) == (StopReason.POLICY_ERROR, None)
            assert str(after.error).endswith("Correct the request, or look into the server's log.")
        else:
            assert (after.messages, after.logprobs, after.reward) == (before.messages, before.logprobs, before.reward)


def test_a_dead_server_is_no_reward_of_0(server: StandIn, world: SimpleNamespace, model_folder: Path) -> None:
    agent = make_agent(f"sglang:{server.url}#{model_folder}", Limits(6, 100), 1.0, None)
    server.kill()
    met = Rollout(world.make_env(4), agent).play([Start(i, i) for i in range(4)])
    assert {(e.stop_reason, e.reward) for e in met} == {(StopReason.POLICY_ERROR, None)}
    assert all("cannot be reached" in str(e.error) for e in met)


def test_training_stops_with_the_reason_when_the_server_is_gone(server: StandIn, trainer: MakeTrainer) -> None:
    made = trainer(engine=f"sglang:{server.url}", lora_rank=4)
    server.kill()
    with pytest.raises(DuologueError, match=r"cannot be reached after 25 attempts.*Start the server"):
        made.train()


@pytest.mark.slow
def test_a_run_that_fails_leaves_no_adapter_and_its_own_error(
    server: StandIn, trainer: MakeTrainer, capsys: pytest.CaptureFixture[str]
) -> None:
    made = trainer(engine=f"sglang:{server.url}", lora_rank=4)
    made.trainer._compute_loss = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(ValueError, match="no loss today"):
        made.train()
    assert server.calls.count("/load_lora_adapter") == 1
    assert server.adapters == {}
    server.unload_lora_adapter = refuses  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="no loss today"):
        made.train()
    assert "may still be on the server" in capsys.readouterr().err
    assert len(server.adapters) == 1


def fails(*_: Any) -> torch.Tensor:
    raise ValueError("no loss today")


def refuses(body: dict[str, Any]) -> tuple[int, Any]:
    return 400, {"success": False, "error_message": "busy"}


@pytest.mark.slow
def test_an_adapter_is_named_by_its_folder(server: StandIn, trainer: MakeTrainer, tmp_path: Path) -> None:
    final = trainer(lora_rank=4, steps=1, output=str(tmp_path / "local")).train()
    agent = make_agent(f"sglang:{server.url}#{final}", Limits(6, 100), 0.0, None)
    local = make_agent(str(final), Limits(6, 100), 0.0, None)
    asked = [Conversation((Message(role="user", content=f"please say {word}"),)) for word in ("red", "blue")]
    assert [r.token_ids for r in agent.act(asked)] == [r.token_ids for r in local.act(asked)]
    assert agent.signature.startswith(f"tiny@{server.url}|final|")
    assert isinstance(agent, TokenAgent)


def test_a_tokenizer_that_is_not_here(server: StandIn, tmp_path: Path) -> None:
    with pytest.raises(DuologueError, match=r"Cannot load a tokenizer from .*or in its local cache\.$|is no"):
        make_agent(f"sglang:{server.url}#{tmp_path}", Limits(6, 100), 1.0, None)


@pytest.mark.parametrize("engine", ["http://127.0.0.1:30000", "sglang:", "vllm:http://host", "sglang:host:30000"])
def test_what_is_no_engine(settings: Callable[..., InteractiveConfig], engine: str) -> None:
    with pytest.raises(DuologueError, match=r"Write it like sglang:http://127.0.0.1:30000\.$"):
        settings(engine=engine)


@pytest.mark.parametrize(
    ("sync", "engine", "message"),
    [
        ("distributd", "sglang:http://127.0.0.1:1", r"Unknown weight_sync 'distributd'\. Did you mean 'distributed'\?"),
        ("distributed", None, r"this process samples\. Name one with engine, or leave weight_sync out\.$"),
    ],
)
def test_weights_that_cannot_go_over(
    settings: Callable[..., InteractiveConfig], sync: str, engine: str | None, message: str
) -> None:
    with pytest.raises(DuologueError, match=message):
        settings(engine=engine, weight_sync=sync)


def test_the_same_version_is_sent_once(server: StandIn, load: Any, tmp_path: Path) -> None:
    model = load().model
    (tmp_path / "step-0").mkdir()
    (tmp_path / "step-0" / "adapter_config.json").write_text("{}")  # of another run, whose policy was an adapter
    policy = ServedPolicy(
        make_engine(f"sglang:{server.url}"), ByDisk(lambda to: model.save_pretrained(str(to)), tmp_path)
    )
    assert (policy.version, policy.context_length) == (0, 128)
    for version in (0, 0, 3, 3):
        policy.version = version
    assert server.calls.count("/update_weights_from_disk") == 2
    assert [row.version for row in policy.generate([[5, 6]], Sampling(2), [3], [0])] == [3]
    server.kill()
    with pytest.raises(RowsError):
        policy.generate([[5, 6]], Sampling(2), [3], [0])
