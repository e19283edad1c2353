"""Configuration of training. Every field carries its help text; the command line's flags are these fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.errors import DuologueError


def with_help(text: str, default: Any) -> Any:
    """Return a dataclass field with its help text."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class InteractiveConfig:
    """Interactive GRPO: whole on-policy dialogues with a simulated user, one reward at the end."""

    env: str = with_help("Environment id, for instance MathChat-v0.", "MathChat-v0")
    simulator: str = with_help("The user: scripted, scripted:MIX, prompted:MODEL, …", "scripted")
    tasks: str | None = with_help(
        "Task source, for instance math:level=1,split=train; the default is the environment's.", None
    )
    max_turns: int | None = with_help("Most assistant turns per dialogue; the default is the environment's.", None)
    model: str = with_help(
        "The policy: 'default', a folder (with or without adapter), or a Hugging Face id.", "default"
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
    temperature: float = with_help("Sampling temperature, the same in every log-probability.", 1.0)
    max_tokens_per_turn: int = with_help("Most tokens the policy may sample in a turn.", 256)
    max_total_tokens: int = with_help("Most tokens of a dialogue, of both speakers and the prompt.", 2048)
    lora_rank: int = with_help("Rank of LoRA adapters on all linear layers; 0 trains every weight.", 16)
    lora_top_layers: int | None = with_help(
        "Put adapters on the last so many layers only; saves the backward pass below.", None
    )
    dtype: str = with_help("Weights: float32, bfloat16, or auto (bfloat16 where the hardware computes in it).", "auto")
    max_grad_norm: float = with_help("Gradient clipping norm.", 1.0)
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
