"""Micro-batches: sorted, trimmed, without idle rows, and the same gradient as TRL's."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from duologue.trainers.batches import micro_batches
from duologue.trainers.interactive import InteractiveTrainer

MakeTrainer = Callable[..., InteractiveTrainer]


def batch(lengths: list[int], advantages: list[float], prompts: list[int]) -> dict[str, torch.Tensor]:
    """A batch whose every id names its row."""
    width, blank = max(lengths) + 2, max(prompts) + 1
    rows = torch.arange(1, len(lengths) + 1).unsqueeze(1)
    completion_mask = (torch.arange(width) < torch.tensor(lengths).unsqueeze(1)).long()
    prompt_mask = (torch.arange(blank) >= blank - torch.tensor(prompts).unsqueeze(1)).long()
    return {
        "prompt_ids": rows * prompt_mask,
        "prompt_mask": prompt_mask,
        "completion_ids": rows * completion_mask,
        "completion_mask": completion_mask,
        "tool_mask": completion_mask,
        "advantages": torch.tensor(advantages),
        "num_items_in_batch": torch.tensor(sum(lengths)),
    }


def rows_of(chunk: dict[str, torch.Tensor]) -> list[int]:
    return [int(i) - 1 for i in chunk["prompt_ids"].max(dim=1).values]


def test_rows_are_sorted_by_length_and_cut_to_the_longest() -> None:
    chunks = micro_batches(batch([9, 2, 7, 3], [1.0, -1.0, 0.5, -0.5], [2, 3, 2, 4]), 2, skip_idle=False)
    assert [rows_of(chunk) for chunk in chunks] == [[1, 3], [2, 0]]
    assert [tuple(chunk["completion_ids"].shape) for chunk in chunks] == [(2, 3), (2, 9)]
    assert [tuple(chunk["prompt_mask"].shape) for chunk in chunks] == [(2, 4), (2, 2)]
    assert all(chunk["tool_mask"].shape == chunk["completion_ids"].shape for chunk in chunks)
    assert [chunk["advantages"].tolist() for chunk in chunks] == [[-1.0, -0.5], [0.5, 1.0]]
    assert [int(chunk["num_items_in_batch"]) for chunk in chunks] == [21, 21]


def test_idle_rows_are_left_out_and_the_rest_shared_evenly() -> None:
    whole = batch([5, 6, 7, 8, 9, 3], [0.0, 1.0, 0.0, -1.0, 0.0, 1.0], [1] * 6)
    assert [rows_of(chunk) for chunk in micro_batches(whole, 3, skip_idle=True)] == [[5], [1], [3]]
    assert sum(len(rows_of(chunk)) for chunk in micro_batches(whole, 3, skip_idle=False)) == 6


def test_a_micro_batch_without_work_holds_one_row_without_loss() -> None:
    chunks = micro_batches(batch([5, 6, 7], [0.0, 1.0, 0.0], [1, 1, 1]), 3, skip_idle=True)
    assert [len(rows_of(chunk)) for chunk in chunks] == [1, 1, 1]
    assert [chunk["advantages"].tolist() for chunk in chunks] == [[1.0], [0.0], [0.0]]


def test_advantages_per_token_are_cut_too() -> None:
    whole = batch([4, 2], [0.0, 0.0], [1, 1])
    whole["advantages"] = torch.zeros(2, 6)
    whole["advantages"][1, 1] = 1.0
    [chunk] = micro_batches(whole, 1, skip_idle=True)
    assert rows_of(chunk) == [1]
    assert chunk["advantages"].tolist() == [[0.0, 1.0]]


def test_rows_masked_whole_keep_a_column() -> None:
    whole = batch([1, 1], [1.0, -1.0], [1, 1])
    whole["completion_mask"] = torch.zeros_like(whole["completion_mask"])
    assert [c["completion_ids"].shape[1] for c in micro_batches(whole, 2, skip_idle=False)] == [1, 1]


@pytest.mark.parametrize(
    ("loss_type", "beta", "skip"),
    [
        ("dapo", 0.0, False),
        ("dapo", 0.0, True),
        ("cispo", 0.0, True),
        ("dapo", 0.1, False),
        ("grpo", 0.0, False),
        ("dr_grpo", 0.0, False),
    ],
)
def test_gradient_equals_trls(
    trainer: MakeTrainer, world: SimpleNamespace, loss_type: str, beta: float, skip: bool
) -> None:
    made = trainer(env={"reward": world.graded}, groups_per_step=4, loss_type=loss_type, beta=beta)
    trl = made.trainer
    out = world.score_batch(made)
    assert (out["advantages"] != 0).all()
    if skip:
        out["advantages"][:8] = 0.0  # as in flat groups
    plain = {name: value for name, value in out.items() if value is not None}
    theirs = [GRPOTrainer._compute_loss(trl, trl.model, chunk) for chunk in split_tensor_dict(plain, 4)]
    expected = world.gradient(trl.model, theirs)
    chunks = micro_batches(out, 4, skip_idle=skip)
    ours = world.gradient(trl.model, [trl._compute_loss(trl.model, chunk) for chunk in chunks])
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=1e-4)
    assert expected.abs().max() > 1e-3
    assert sum(chunk["completion_ids"].numel() for chunk in chunks) < out["completion_ids"].numel()


@pytest.mark.parametrize(
    ("options", "sorts"), [({}, True), ({"loss_type": "bnpo"}, False), ({"trl": {"entropy_coef": 0.01}}, False)]
)
def test_losses_that_average_within_a_micro_batch_keep_trls_random_one(
    trainer: MakeTrainer, options: dict[str, Any], sorts: bool
) -> None:
    made = trainer(groups_per_step=4, steps=1, **options)
    made.train()
    assert bool(made.trainer._micro_batches) is sorts
