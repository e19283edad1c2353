"""Configurations that cannot work are refused by the name of their field."""

import inspect
import math
import re
from dataclasses import fields
from typing import Any

import pytest
from trl import GRPOTrainer

from duologue.errors import DuologueError
from duologue.trainers.cloning import CloningConfig
from duologue.trainers.config import LOSS_TYPES, InteractiveConfig

WHOLE = ("steps", "groups_per_step", "micro_batch_size", "max_tokens_per_turn", "max_total_tokens", "max_empty_steps")
BAD: list[tuple[str, Any]] = [
    *((name, value) for name in (*WHOLE, "max_turns", "lora_top_layers") for value in (0, -1, 1.5, "3")),
    *((name, value) for name in ("lora_rank", "warmup_steps", "save_steps", "seed") for value in (-1, 0.5)),
    *((name, value) for name in ("learning_rate", "temperature") for value in (0, -1e-5, math.nan, math.inf, "1e-5")),
    *((name, value) for name in ("beta", "max_grad_norm") for value in (-0.1, math.nan, None)),
    ("group_size", 1),
    ("group_size", 0),
    ("dtype", "float64"),
    ("dtype", "bf16"),
    ("loss_type", "dappo"),
    ("micro_batch_size", 7),
    ("max_tokens_per_turn", 4096),
    ("max_total_tokens", 100),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(DuologueError, match=rf"\b{name}\b.*[.?]$"):
        InteractiveConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 0), ("epochs", -1), ("batch_size", 0), ("learning_rate", 0.0), ("max_total_tokens", 0), ("dtype", "x")],
)
def test_cloning_refuses_by_name_too(name: str, value: Any) -> None:
    with pytest.raises(DuologueError, match=rf"\b{name}\b"):
        CloningConfig(**{name: value})


@pytest.mark.parametrize("make", [InteractiveConfig, CloningConfig])
def test_top_layers_without_adapters_are_a_contradiction(make: Any) -> None:
    with pytest.raises(DuologueError, match=r"lora_top_layers needs adapters. Set lora_rank above 0"):
        make(lora_rank=0, lora_top_layers=2)


def test_edges_that_work() -> None:
    edges: dict[str, Any] = {
        "max_turns": None,
        "lora_top_layers": None,
        "lora_rank": 0,
        "warmup_steps": 0,
        "save_steps": 0,
        "beta": 0,
    }
    assert InteractiveConfig(**edges, max_grad_norm=0, seed=0, group_size=2, steps=1, learning_rate=1).seed == 0


@pytest.mark.parametrize("make", [InteractiveConfig, CloningConfig])
def test_every_field_says_what_it_is(make: Any) -> None:
    helps = [f.metadata.get("help", "") for f in fields(make)]
    assert all(text.endswith((".", "…")) and len(text) > 10 for text in helps)
    assert len(set(helps)) == len(helps)


def test_close_names_are_suggested() -> None:
    with pytest.raises(DuologueError, match=r"Did you mean 'dapo'\?"):
        InteractiveConfig(loss_type="dappo")


def test_loss_types_are_those_of_trl() -> None:
    source = inspect.getsource(GRPOTrainer._compute_loss)
    compared = re.findall(r"self\.loss_type (?:==|in|!=) (\[[^\]]*\]|\"\w+\")", source)
    assert set(re.findall(r"\"(\w+)\"", " ".join(compared))) == set(LOSS_TYPES)


def test_episodes_per_step() -> None:
    assert InteractiveConfig(groups_per_step=3, group_size=4, micro_batch_size=6).episodes_per_step == 12
