"""Configuration of training. Every field carries its help text; the command line's flags are these fields."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from duologue.engines.spec import check_engine
from duologue.errors import DuologueError, did_you_mean

LOSS_TYPES = ("dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo", "vespo", "luspo")
"""What TRL 1.16 knows."""
WEIGHT_SYNCS = ("disk", "distributed")
_DTYPES = ("auto", "float32", "bfloat16")
_WHOLE_FROM = {
    "steps": 1,
    "groups_per_step": 1,
    "group_size": 1,
    "batch_size": 1,
    "micro_batch_size": 1,
    "max_turns": 1,
    "max_tokens_per_turn": 1,
    "max_total_tokens": 1,
    "max_empty_steps": 1,
    "lora_top_layers": 1,
    "lora_rank": 0,
    "warmup_steps": 0,
    "save_steps": 0,
    "seed": 0,
}
_ABOVE_0 = ("epochs", "learning_rate", "temperature")
_FROM_0 = ("beta", "max_grad_norm")


def with_help(text: str, default: Any) -> Any:
    """Return a dataclass field with its help text."""
    return field(default=default, metadata={"help": text})


def check_numbers(config: Any) -> None:
    """Check the fields that training configurations share; a field that may be None passes as such.

    Raises:
        DuologueError: for a value out of range or of a wrong type; the message names the field.
    """
    for name, value in ((name, getattr(config, name)) for name in config.__dataclass_fields__):
        if name in _WHOLE_FROM and value is not None and not (isinstance(value, int) and value >= _WHOLE_FROM[name]):
            raise DuologueError(f"{name} is {value!r}. Set it to a whole number from {_WHOLE_FROM[name]}.")
        if name in _ABOVE_0 and not (_finite(value) and value > 0):
            raise DuologueError(f"{name} is {value!r}. Set it to a number above 0.")
        if name in _FROM_0 and not (_finite(value) and value >= 0):
            raise DuologueError(f"{name} is {value!r}. Set it to 0 or a number above.")
    if config.dtype not in _DTYPES:
        raise DuologueError(f"Unknown dtype {config.dtype!r}. {did_you_mean(str(config.dtype), _DTYPES)}")
    if config.lora_top_layers is not None and not config.lora_rank:
        raise DuologueError("lora_top_layers needs adapters. Set lora_rank above 0, or leave lora_top_layers out.")


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class InteractiveConfig:
    """Interactive GRPO: whole on-policy dialogues with a simulated user, one reward at the end."""

    env: str = with_help("Environment id, for instance MathChat-v0.", "MathChat-v0")
    simulator: str = with_help(
        "The user: scripted, scripted:MIX, prompted:MODEL, calibrated:FOLDER, calibrated:sglang:URL#FOLDER, …",
        "scripted",
    )
    tasks: str | None = with_help(
        "Task source, for instance math:level=1,split=train; the default is the environment's.", None
    )
    max_turns: int | None = with_help("Most assistant turns per dialogue; the default is the environment's.", None)
    model: str = with_help(
        "The policy: 'default', a folder (with or without adapter), or a Hugging Face id.", "default"
    )
    engine: str | None = with_help(
        "Who samples: sglang:http://127.0.0.1:30000, a server of the same base; the default is this process.", None
    )
    weight_sync: str = with_help(
        "How a server gets new weights: disk (adapters; a folder that it can read too), or distributed (all weights, "
        "over NCCL or gloo; with --lora-rank 0).",
        "disk",
    )
    system_prompt: str | None = with_help("System message of the policy; none by default.", None)
    output: str = with_help("Folder for checkpoints, episodes.jsonl and logs.", "runs/interactive")
    steps: int = with_help("Optimiser steps.", 100)
    groups_per_step: int = with_help("Groups per optimiser step; a group shares task and user seed.", 8)
    group_size: int = with_help("Dialogues per group.", 8)
    micro_batch_size: int = with_help(
        "Dialogues per forward and backward pass; divides groups_per_step * group_size.", 8
    )
    learning_rate: float = with_help("Learning rate of AdamW.", 1e-5)
    warmup_steps: int = with_help("Steps of linear warm-up; the rate is constant afterwards.", 0)
    beta: float = with_help("Weight of the KL penalty to the starting policy; 0 = none, and no reference model.", 0.0)
    loss_type: str = with_help("TRL's GRPO loss: dapo, grpo, bnpo, dr_grpo, …", "dapo")
    scale_rewards: bool = with_help("Divide advantages by the standard deviation of their group.", True)
    drop_flat_groups: bool = with_help("Leave groups with equal rewards out of the loss and of its normaliser.", False)
    temperature: float = with_help(
        "Sampling temperature, above 0: a greedy group has no differences. The same in every log-probability.", 1.0
    )
    max_tokens_per_turn: int = with_help("Most tokens the policy may sample in a turn.", 256)
    max_total_tokens: int = with_help("Most tokens of a dialogue, of both speakers and the prompt.", 2048)
    lora_rank: int = with_help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = with_help(
        "Put adapters on the last so many layers only; saves the backward pass below.", None
    )
    dtype: str = with_help("Weights: float32, bfloat16, or auto (bfloat16 where the hardware computes in it).", "auto")
    max_grad_norm: float = with_help("Gradient clipping norm; 0 = none.", 1.0)
    seed: int = with_help("Seeds tasks, users, sampling and initialisation.", 0)
    save_steps: int = with_help("Steps between checkpoints; 0 = only at the end.", 0)
    resume: bool = with_help("Continue from the last checkpoint in the output folder, if there is one.", True)
    max_empty_steps: int = with_help("Stop with an error after so many steps in a row without any trainable token.", 5)
    report_to: str = with_help("TRL's report_to: none, tensorboard, wandb, trackio, …", "none")
    trl: dict[str, Any] = field(default_factory=dict, metadata={"help": "Any other field of trl.GRPOConfig."})

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        check_numbers(self)
        if self.group_size < 2:
            raise DuologueError(f"group_size is {self.group_size}. GRPO compares within a group: set it to 2 or more.")
        if self.episodes_per_step % self.micro_batch_size:
            raise DuologueError(
                f"micro_batch_size {self.micro_batch_size} does not divide the {self.episodes_per_step} dialogues of a "
                "step. Choose a divisor."
            )
        self._check_engine()
        if self.max_tokens_per_turn > self.max_total_tokens:
            raise DuologueError(
                f"max_tokens_per_turn {self.max_tokens_per_turn} is over max_total_tokens {self.max_total_tokens}, so "
                "that no dialogue would have room for a turn. Lower the one or raise the other."
            )
        if self.loss_type not in LOSS_TYPES:
            raise DuologueError(f"Unknown loss_type {self.loss_type!r}. {did_you_mean(self.loss_type, LOSS_TYPES)}")

    def _check_engine(self) -> None:
        if self.engine is not None:
            check_engine(self.engine)
        if self.weight_sync not in WEIGHT_SYNCS:
            raise DuologueError(
                f"Unknown weight_sync {self.weight_sync!r}. {did_you_mean(self.weight_sync, WEIGHT_SYNCS)}"
            )
        if self.weight_sync != "disk" and self.engine is None:
            raise DuologueError(
                f"weight_sync {self.weight_sync} is for a server, and this process samples. Name one with engine, or "
                "leave weight_sync out."
            )

    @property
    def episodes_per_step(self) -> int:
        """Return the number of dialogues per optimiser step."""
        return self.groups_per_step * self.group_size
