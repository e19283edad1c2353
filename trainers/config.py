"""Configuration of training. Every field carries its help text; the command line's flags are these fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.errors import DuologueError


def _help(text: str, default: Any) -> Any:
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class InteractiveConfig:
    """Interactive GRPO: whole on-policy dialogues with a simulated user, one reward at the end."""

    env: str = _help("Environment id, for instance MathChat-v0.", "MathChat-v0")
    simulator: str = _help("The user: scripted, scripted:MIX, prompted:MODEL, …", "scripted")
    tasks: str | None = _help("Task source, for instance math:level=1,split=train; the default is the environment's.", None)
    max_turns: int | None = _help("Most assistant turns per dialogue; the default is the environment's.", None)
    model: str = _help("The policy: 'default', a folder (with or without adapter), or a Hugging Face id.", "default")
    system_prompt: str | None = _help("System message of the policy; none by default.", None)
    output: str = _help("Folder for checkpoints, episodes.jsonl and logs.", "runs/interactive")
    steps: int = _help("Optimiser steps.", 100)
    groups_per_step: int = _help("Groups per optimiser step; a group shares task and user seed.", 8)
    group_size: int = _help("Dialogues per group.", 8)
    micro_batch_size: int = _help("Dialogues per forward and backward pass; divides groups_per_step * group_size.", 8)
    learning_rate: float = _help("Learning rate of AdamW.", 1e-5)
    warmup_steps: int = _help("Steps of linear warm-up; the rate is constant afterwards.", 0)
    beta: float = _help("Weight of the KL penalty to the starting policy; 0 = none, and no reference model.", 0.0)
    loss_type: str = _help("TRL's GRPO loss: dapo, grpo, bnpo, dr_grpo, …", "dapo")
    scale_rewards: bool = _help("Divide advantages by the standard deviation of their group.", True)
    drop_flat_groups: bool = _help("Leave groups with equal rewards out of the loss and of its normaliser.", False)
    temperature: float = _help("Sampling temperature, the same in every log-probability.", 1.0)
    max_tokens_per_turn: int = _help("Most tokens the policy may sample in a turn.", 256)
    max_total_tokens: int = _help("Most tokens of a dialogue, of both speakers and the prompt.", 2048)
    lora_rank: int = _help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = _help("Put adapters on the last so many layers only; saves the backward pass below.", None)
    dtype: str = _help("Weights: float32, bfloat16, or auto (bfloat16 where the hardware computes in it).", "auto")
    max_grad_norm: float = _help("Gradient clipping norm.", 1.0)
    seed: int = _help("Seeds tasks, users, sampling and initialisation.", 0)
    save_steps: int = _help("Steps between checkpoints; 0 = only at the end.", 0)
    resume: bool = _help("Continue from the last checkpoint in the output folder, if there is one.", True)
    max_empty_steps: int = _help("Stop with an error after so many steps in a row without any trainable token.", 5)
    report_to: str = _help("TRL's report_to: none, tensorboard, wandb, trackio, …", "none")
    trl: dict[str, Any] = _help("Any other field of trl.GRPOConfig.", {})

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        for name in ("steps", "groups_per_step", "micro_batch_size", "max_tokens_per_turn", "max_total_tokens"):
            if getattr(self, name) < 1:
                raise DuologueError(f"{name} is {getattr(self, name)}. Set it to 1 or more.")
        if self.group_size < 2:
            raise DuologueError(f"group_size is {self.group_size}. GRPO compares within a group: set it to 2 or more.")
        if self.episodes_per_step % self.micro_batch_size:
            raise DuologueError(
                f"micro_batch_size {self.micro_batch_size} does not divide the {self.episodes_per_step} dialogues of a "
                "step. Choose a divisor."
            )
        if self.temperature <= 0:
            raise DuologueError("temperature must be above 0 in training: a greedy group has no differences.")
        if self.dtype not in ("auto", "float32", "bfloat16"):
            raise DuologueError(f"Unknown dtype {self.dtype!r}. Choose auto, float32 or bfloat16.")

    @property
    def episodes_per_step(self) -> int:
        """Return the number of dialogues per optimiser step."""
        return self.groups_per_step * self.group_size
