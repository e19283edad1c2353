"""Truncated importance sampling by the token."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from duologue.trainers.correction import truncated_ratio
from duologue.trainers.interactive import InteractiveTrainer


def test_ratios_worked_out_by_hand() -> None:
    old = torch.tensor([[math.log(0.5), math.log(0.2), math.log(0.9), -7.0]])
    sampled = torch.tensor([[math.log(0.25), math.log(0.4), math.log(0.1), float("nan")]])
    mask = torch.tensor([[1, 1, 1, 0]])
    assert truncated_ratio(old, sampled, mask, 4.0)[0].tolist() == pytest.approx([2.0, 0.5, 4.0, 1.0])
    assert truncated_ratio(old, sampled, mask, 2.0)[0].tolist() == pytest.approx([2.0, 0.5, 2.0, 1.0])


def test_equal_weights_are_left_alone_and_no_gradient_flows() -> None:
    old = torch.randn(3, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    ratio = truncated_ratio(old, old.detach(), torch.ones(3, 5), 2.0)
    assert torch.equal(ratio, torch.ones(3, 5))
    assert not ratio.requires_grad


@pytest.mark.parametrize("shift", [0.0, -math.log(1.5), math.log(1.5), -9.0])
def test_advantages_are_weighed_by_the_token(
    trainer: Callable[..., InteractiveTrainer], world: SimpleNamespace, shift: float, monkeypatch: Any
) -> None:
    made = trainer(env={"reward": world.graded})
    plain = world.score_batch(made)
    made = trainer(env={"reward": world.graded})
    options = replace(made.trainer.options, ratio_cap=2.0, logprob_tolerance=10.0)  # samples are off on purpose
    monkeypatch.setattr(made.trainer, "options", options)
    generate = made.agent.engine.generate

    def shifted(*asked: Any) -> Any:
        rows = generate(*asked)
        return [type(r)(r.token_ids, tuple(x + shift for x in r.logprobs), r.finish, r.version) for r in rows]

    monkeypatch.setattr(made.agent.engine, "generate", shifted)
    weighed = world.score_batch(made)
    mask = (plain["completion_mask"] * plain["tool_mask"]).bool()
    wanted = plain["advantages"].unsqueeze(1) * torch.where(mask, min(math.exp(-shift), 2.0), 1.0)
    assert torch.allclose(weighed["advantages"], wanted, rtol=1e-3, atol=1e-5)
