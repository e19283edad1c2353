"""Log-probabilities at the policy's tokens only, against TRL's own at every token."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOTrainer

from duologue.trainers.interactive import InteractiveTrainer
from duologue.trainers.policy_head import can_gather, gathered, labelled

MakeTrainer = Callable[..., InteractiveTrainer]
Golden = tuple[Any, dict[str, torch.Tensor], torch.Tensor, torch.Tensor]


@pytest.fixture(params=["full", "lora"])
def golden(request: pytest.FixtureRequest, trainer: MakeTrainer, world: SimpleNamespace) -> Golden:
    """A trainer, one batch as keyword arguments, and TRL's log-probabilities and entropies for it."""
    made = trainer(env={"reward": world.graded}, temperature=0.7, lora_rank=4 * (request.param == "lora"))
    trl = made.trainer
    torch.manual_seed(1)
    for name, parameter in trl.model.named_parameters():
        if "lora_B" in name:  # starts at 0, which would hide a wrong path
            torch.nn.init.normal_(parameter, std=0.3)
    out = world.score_batch(made)
    ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
    attention = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
    trained = out["completion_mask"] * out["tool_mask"]
    logp, entropy, _ = GRPOTrainer._get_per_token_logps_and_entropies(
        trl, trl.model, ids, attention, trained.shape[1], compute_entropy=True
    )
    return trl, {"ids": ids, "attention": attention, "trained": trained}, logp, entropy


@pytest.mark.parametrize("how", ["gathered", "labelled"])
def test_scores_equal_trls_and_are_zero_elsewhere(golden: Golden, how: str) -> None:
    trl, batch, logp, entropy = golden
    if how == "gathered":
        assert can_gather(trl.model)
        ours = gathered(trl.model, **batch, temperature=0.7)
    else:
        ours = labelled(trl.model, **batch)
    wanted = batch["trained"].bool()
    assert 0.2 < wanted.float().mean() < 0.8
    torch.testing.assert_close(ours[0][wanted], logp[wanted], atol=1e-5, rtol=0)
    torch.testing.assert_close(ours[1][wanted], entropy[wanted], atol=1e-5, rtol=0)
    assert not ours[0][~wanted].any()
    assert not ours[1][~wanted].any()


@pytest.mark.parametrize("how", ["gathered", "labelled"])
def test_gradients_equal_trls(golden: Golden, world: SimpleNamespace, how: str) -> None:
    trl, batch, logp, _ = golden
    weights = torch.linspace(-1, 1, batch["trained"].numel()).view_as(logp) * batch["trained"]
    expected = world.gradient(trl.model, [(logp * weights).sum()])
    ours = gathered(trl.model, **batch, temperature=0.7) if how == "gathered" else labelled(trl.model, **batch)
    torch.testing.assert_close(world.gradient(trl.model, [(ours[0] * weights).sum()]), expected, atol=1e-4, rtol=1e-4)
    assert expected.abs().max() > 0.01


@pytest.mark.parametrize("how", ["gathered", "labelled"])
def test_a_batch_without_policy_tokens_has_zero_gradient(golden: Golden, world: SimpleNamespace, how: str) -> None:
    trl, batch, _, _ = golden
    batch = {**batch, "trained": torch.zeros_like(batch["trained"])}
    ours = gathered(trl.model, **batch, temperature=0.7) if how == "gathered" else labelled(trl.model, **batch)
    assert not world.gradient(trl.model, [ours[0].sum()]).any()


def test_scaled_logits_are_left_to_the_model(golden: Golden) -> None:
    trl = golden[0]
    config = trl.model.config.get_text_config()
    config.final_logit_softcapping = 30.0
    assert not can_gather(trl.model)
    assert not can_gather(object())
