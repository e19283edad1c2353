"""An unmodified GRPOTrainer learns from our dialogues, and sees the same rows as our own trainer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOConfig, GRPOTrainer

from duologue.engines.chat import ChatFormat
from duologue.engines.models import LoadedModel
from duologue.errors import DuologueError
from duologue.trainers.agents import Limits
from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.progress import quiet_console
from duologue.trainers.trl_rollout import dialogue_rollout_func, episode_reward, seed_prompts
from duologue.types import Dialogue

LIMITS = Limits(max_tokens_per_turn=6, max_total_tokens=100)
Make = Callable[..., Any]


@pytest.fixture
def stock(load: Callable[[], LoadedModel], tmp_path: Path, world: SimpleNamespace) -> Make:
    """Makes TRL's own trainer of two steps; ``env`` is changes of the environment, the rest of GRPOConfig."""

    def make(env: dict[str, Any] | None = None, slots: int = 8, **changes: Any) -> Any:
        loaded = load()
        arguments: dict[str, Any] = {
            "output_dir": str(tmp_path / "stock"),
            "max_steps": 2,
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": 2,
            "num_generations": 4,
            "max_completion_length": 100,
            "learning_rate": 1e-3,
            "shuffle_dataset": False,
            "seed": 0,
            "bf16": False,
            "use_cpu": True,
            "gradient_checkpointing": False,
            "logging_steps": 1,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
        }
        dialogues = world.make_env(slots, **{"reward": world.graded, **(env or {})})
        with quiet_console():
            return GRPOTrainer(
                model=loaded.model,
                reward_funcs=episode_reward,
                args=GRPOConfig(**{**arguments, **changes}),
                train_dataset=seed_prompts(4, seed=0),
                processing_class=loaded.tokenizer,
                rollout_func=dialogue_rollout_func(dialogues, ChatFormat(loaded.tokenizer), LIMITS),
            )

    return make


def score(trainer: Any) -> dict[str, Any]:
    """Let TRL play and score its first generation batch."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    rows = [dict(row) for row in trainer.train_dataset for _ in range(4)][:8]
    with quiet_console():
        out: dict[str, Any] = trainer._generate_and_score_completions(rows)
    return out


def test_two_steps_move_the_weights(stock: Make) -> None:
    made = stock()
    before = [p.detach().clone() for p in made.model.parameters()]
    with quiet_console():
        made.train()
    assert made.state.global_step == 2
    assert any(not torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))
    rewards = [row["reward"] for row in made.state.log_history if "reward" in row]
    assert len(rewards) == 2
    assert all(0 < reward < 1 for reward in rewards)


def test_rows_are_those_of_our_trainer(
    stock: Make, trainer: Callable[..., InteractiveTrainer], world: SimpleNamespace
) -> None:
    theirs, ours = score(stock()), trainer(env={"reward": world.graded})
    out = world.score_batch(ours)
    for name in ("prompt_ids", "completion_ids", "completion_mask", "tool_mask"):
        assert torch.equal(theirs[name], out[name]), name
    torch.testing.assert_close(theirs["advantages"], out["advantages"])
    assert len({tuple(row) for row in theirs["completion_ids"].tolist()}) > 4


def test_later_steps_are_those_of_our_trainer_too(
    stock: Make, trainer: Callable[..., InteractiveTrainer], world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows = stock(learning_rate=1e-12), list[tuple[int, ...]]()
    inner = made.rollout_func

    def watched(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        out: dict[str, Any] = inner(prompts, trainer)
        rows.extend(tuple(ids) for ids in out["completion_ids"])
        return out

    monkeypatch.setattr(made, "rollout_func", watched)
    ours = trainer(env={"reward": world.graded}, learning_rate=1e-12)
    with quiet_console():
        made.train()
    ours.train()
    assert rows == [e.completion_ids for e in ours.episodes.read()]
    assert len(rows) == 16


def test_user_tokens_have_exactly_no_gradient(stock: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stock()
    out = score(made)
    logps = torch.full(out["completion_ids"].shape, -2.0, requires_grad=True)
    scores = (logps, torch.ones_like(logps), None)
    monkeypatch.setattr(made, "_get_per_token_logps_and_entropies", lambda *a, **k: scores)
    [gradient] = torch.autograd.grad(made._compute_loss(made.model, out), logps)
    policy = (out["completion_mask"] * out["tool_mask"]).bool()
    assert ((out["completion_mask"] == 1) & ~policy).any()
    assert not gradient[~policy].any()
    assert (gradient[policy] != 0).all()


def test_groups_share_the_user(stock: Make) -> None:
    made = stock()
    rows = [dict(row)["prompt"] for row in made.train_dataset for _ in range(4)][:8]
    out = made.rollout_func(rows, made)
    openings = [tuple(ids) for ids in out["prompt_ids"]]
    assert all(len(set(openings[i : i + 4])) == 1 for i in (0, 4))
    assert openings[0] != openings[4]
    assert all(len(m) == len(c) for m, c in zip(out["env_mask"], out["completion_ids"], strict=True))


def test_what_cannot_be_scored_carries_no_loss(stock: Make, world: SimpleNamespace) -> None:
    def dead(dialogue: Dialogue) -> None:
        if dialogue.messages and len(dialogue.messages[-1]["content"]) % 2:
            raise OSError("no line")

    out = score(stock(env={"simulator": world.Wants(dead)}))
    broken = (out["completion_mask"] * out["tool_mask"]).sum(1) == 0
    assert 0 < broken.sum() < 8
    assert not out["advantages"][broken].any()
    assert torch.isfinite(out["advantages"]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_p": 0.9}, r"top_p is 0.9, .* Set it to 1.0\.$"),
        ({"top_k": 5}, r"top_k is 5, .* Set it to 0\.$"),
        ({"mask_truncated_completions": True}, r"mask_truncated_completions is True, .* Set it to False\.$"),
        ({"max_completion_length": 16}, r"is 16, but dialogues have up to 100 tokens\..*max_total_tokens\.$"),
    ],
)
def test_what_would_bias_the_gradient_is_refused(stock: Make, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        score(stock(**changes))


def test_prompts_must_be_seeds(stock: Make) -> None:
    made = stock()
    with pytest.raises(DuologueError, match=r"'hello'.* is no seed\. Make the data set with seed_prompts"):
        made.rollout_func([[{"role": "user", "content": "hello"}]] * 8, made)


def test_prompts_are_the_seeds_of_our_trainer(settings: Make) -> None:
    from duologue.trainers.interactive import seed_rows

    ours = seed_rows(replace(settings(), seed=3))["seed"]
    assert [int(row[0]["content"]) for row in seed_prompts(4, seed=3)["prompt"]] == list(ours)
    assert seed_prompts(2, seed=3)["prompt"][:] == seed_prompts(4, seed=3)["prompt"][:2]
