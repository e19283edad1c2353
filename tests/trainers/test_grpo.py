"""The loss of whole dialogues: what is trained on, what only read, and what neither."""

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from duologue.engines.hf import TransformersEngine
from duologue.errors import DuologueError
from duologue.trainers.interactive import InteractiveTrainer
from duologue.types import Dialogue

MakeTrainer = Callable[..., InteractiveTrainer]


class Series:
    """Rewards from a list, in the order in which dialogues end."""

    def __init__(self, rewards: Sequence[float | None]) -> None:
        self.rewards = list(rewards)

    def __call__(self, dialogues: Sequence[Dialogue]) -> list[float | None]:
        return [self.rewards.pop(0) for _ in dialogues]


def one_turn(rewards: Sequence[float | None]) -> dict[str, Any]:
    """Dialogues that all end in their first turn, so that rewards are asked for in batch order."""
    return {"reward": Series(rewards), "max_turns": 1}


@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo", "vespo", "luspo"])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_user_tokens_have_exactly_no_gradient(
    trainer: MakeTrainer, world: SimpleNamespace, loss_type: str, beta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer(env={"reward": world.graded}, loss_type=loss_type, beta=beta)
    out = world.score_batch(made)
    logps = torch.full(out["completion_ids"].shape, -2.0, requires_grad=True)
    scores = (logps, torch.ones_like(logps), None)
    monkeypatch.setattr(made.trainer, "_get_per_token_logps_and_entropies", lambda *a, **k: scores)
    [gradient] = torch.autograd.grad(made.trainer._compute_loss(made.trainer.model, out), logps)
    policy = (out["completion_mask"] * out["tool_mask"]).bool()
    assert not gradient[~policy].any()
    assert (gradient[policy] != 0).all()


def test_user_tokens_are_read_all_the_same(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    made = trainer(env={"reward": world.graded})
    out = world.score_batch(made)
    user = (out["completion_mask"] == 1) & (out["tool_mask"] == 0)
    assert user.any()
    seen: list[torch.Tensor] = []
    backbone = made.trainer.model.base_model
    handle = backbone.register_forward_pre_hook(lambda m, a, k: seen.append(k["attention_mask"]), with_kwargs=True)
    before = made.trainer._compute_loss(made.trainer.model, out)
    handle.remove()
    width = user.shape[1]
    assert (seen[0][:, -width:][user] == 1).all()
    assert (seen[0][:, -width:] == out["completion_mask"]).all()
    changed = {**out, "completion_ids": out["completion_ids"].masked_fill(user, 5)}
    losses = before, made.trainer._compute_loss(made.trainer.model, changed)
    one, other = (world.gradient(made.trainer.model, [loss]) for loss in losses)
    assert (one - other).abs().max() > 1e-3


def test_rows_are_the_episodes(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    made = trainer(env={"reward": world.graded})
    out = world.score_batch(made)
    for i, episode in enumerate(made.episodes.read()):
        n = len(episode.completion_ids)
        assert out["completion_ids"][i, :n].tolist() == list(episode.completion_ids)
        assert out["tool_mask"][i, :n].tolist() == list(episode.completion_mask)
        assert out["completion_mask"][i].sum() == n
    assert out["num_items_in_batch"] == sum(sum(e.completion_mask) for e in made.episodes.read())
    assert "sampling_per_token_logps" not in out


def test_advantages_are_the_groups_z_scores_at_every_turn(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    rewards = [0.0, 1.0, 1.0, 0.0, 0.2, 0.4, 0.6, 0.8]
    out = world.score_batch(trainer(env=one_turn(rewards)))
    groups = torch.tensor(rewards).view(2, 4)
    expected = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)
    torch.testing.assert_close(out["advantages"], expected.flatten())
    unscaled = world.score_batch(trainer(env=one_turn(rewards), scale_rewards=False))
    torch.testing.assert_close(unscaled["advantages"], (groups - groups.mean(1, keepdim=True)).flatten())


def test_unscored_episodes_are_in_neither_loss_nor_baseline(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    out = world.score_batch(trainer(env=one_turn([1.0, None, None, 0.0, 0.5, 0.2, 0.3, None])))
    first, second = torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.2, 0.3])
    z = [(group - group.mean()) / (group.std() + 1e-4) for group in (first, second)]
    expected = [z[0][0], 0.0, 0.0, z[0][1], *z[1], 0.0]
    assert out["advantages"].tolist() == pytest.approx([float(x) for x in expected], abs=1e-6)
    assert [bool(row.any()) for row in out["tool_mask"]] == [True, False, False, True, True, True, True, False]
    assert out["num_items_in_batch"] == (out["completion_mask"] * out["tool_mask"]).sum()
    assert (out["completion_mask"].sum(1) > 0).all()


@pytest.mark.parametrize("size", [3, 7])
def test_rounding_does_not_give_a_flat_group_a_gradient(
    trainer: MakeTrainer, world: SimpleNamespace, size: int
) -> None:
    flat, other = [0.22] * size, [i / size for i in range(size)]
    assert (torch.tensor(flat) - torch.tensor(flat).nanmean()).any()  # or the test would test nothing
    made = trainer(env=one_turn(flat + other), group_size=size, micro_batch_size=size)
    advantages = world.score_batch(made)["advantages"]
    assert not advantages[:size].any()
    assert advantages[size:].any()


def test_flat_groups_can_be_dropped_from_the_normaliser(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    rewards = [1.0] * 4 + [0.0, 1.0, 0.0, 1.0]
    kept, dropped = (world.score_batch(trainer(env=one_turn(rewards), drop_flat_groups=drop)) for drop in (False, True))
    torch.testing.assert_close(kept["advantages"], dropped["advantages"])
    assert not dropped["tool_mask"][:4].any()
    assert (dropped["tool_mask"][4:] == kept["tool_mask"][4:]).all()
    trained = (dropped["completion_mask"] * dropped["tool_mask"]).sum()
    assert dropped["num_items_in_batch"] == trained < kept["num_items_in_batch"]


def test_a_step_of_dropped_groups_alone_moves_nothing(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    made = trainer(env={"reward": lambda ds: [0.5] * len(ds)}, drop_flat_groups=True, steps=1)
    before = [p.detach().clone() for p in made.trainer.model.parameters()]
    made.train()
    assert all(torch.equal(a, b) for a, b in zip(before, made.trainer.model.parameters(), strict=True))
    [row] = made.metrics
    assert (row["dialogue/flat_groups"], row["loss"]) == (1.0, 0.0)


def test_training_without_any_score_stops_with_the_reason(trainer: MakeTrainer) -> None:
    made = trainer(env={"reward": lambda ds: [None] * len(ds)}, steps=9, max_empty_steps=2)
    with pytest.raises(DuologueError, match=r"2 steps in a row had no token to train on.*max_total_tokens\.$"):
        made.train()
    assert [row["step"] for row in made.episodes] == [0] * 8 + [1] * 8
    [row] = made.metrics
    assert row["reward"] is None
    assert row["dialogue/unscored"] == 1.0
    assert math.isfinite(row["loss"])


def test_a_scored_step_resets_the_count_of_empty_ones(trainer: MakeTrainer) -> None:
    none, some = [None] * 8, [0.0, 1.0] * 4
    env = {"reward": Series([*none, *some, *none, *some]), "max_turns": 1}
    made = trainer(env=env, steps=4, max_empty_steps=2)
    made.train()
    assert [row["reward"] for row in made.metrics] == [None, 0.5, None, 0.5]


def test_sampled_and_recomputed_logprobs_agree(trainer: MakeTrainer) -> None:
    made = trainer(steps=2, temperature=0.8)
    made.train()
    first, second = made.metrics
    assert first["sampling/logp_difference"] < 1e-5
    assert "sampling/logp_difference" not in second


@pytest.mark.parametrize("what", ["weights", "temperature"])
def test_an_engine_that_samples_otherwise_is_found_out(
    trainer: MakeTrainer, load: Callable[[], Any], what: str
) -> None:
    made = trainer(steps=1)
    if what == "temperature":
        made.agent.temperature = 0.5
    else:
        other = load().model
        with torch.no_grad():
            other.lm_head.weight += 0.1 * torch.sin(
                torch.arange(other.lm_head.weight.numel()).view_as(other.lm_head.weight)
            )
        made.agent.engine = TransformersEngine(other, 0)
    with pytest.raises(DuologueError, match=r"differ by .* nats per token.* share weights, temperature"):
        made.train()


def test_log_probabilities_that_are_no_numbers_do_not_pass(trainer: MakeTrainer) -> None:
    made = trainer()
    made.trainer._compare(torch.zeros(2))
    made.trainer._compare(torch.zeros(0))  # no token to train on
    with pytest.raises(DuologueError, match="differ by nan nats"):
        made.trainer._compare(torch.tensor([0.0, float("nan")]))


def test_a_batch_of_another_size_is_refused(
    trainer: MakeTrainer, world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer()
    monkeypatch.setattr(made.rollout, "play", lambda starts: [])
    with pytest.raises(RuntimeError, match="0 episodes for 8 rows"):
        world.score_batch(made)


def test_rows_that_do_not_share_a_seed_are_refused(trainer: MakeTrainer) -> None:
    with pytest.raises(RuntimeError, match="do not share their seed"):
        trainer().play([{"seed": i} for i in range(8)], 0, True)
