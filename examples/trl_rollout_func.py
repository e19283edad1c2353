"""An unmodified ``trl.GRPOTrainer`` learns from dialogues, through its ``rollout_func``.

    python examples/trl_rollout_func.py --output runs/trl

Without ``--model`` it starts from a model of half a million parameters that it makes itself in seconds, on dialogues of
a hasty scripted assistant: small enough for a first look, and able to reach a reward.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func is experimental in TRL, as it would remind us

import gymnasium as gym
from trl import GRPOConfig, GRPOTrainer

import duologue.envs  # noqa: F401  (registers the environments)
from duologue.engines.chat import ChatFormat
from duologue.engines.models import load_model
from duologue.trainers import FunctionAgent, Limits, Rollout, Start, dialogue_rollout_func, seed_prompts
from duologue.trainers.scratch import ScratchConfig, pretrain
from duologue.trainers.scripted_agent import HastyMathAgent
from duologue.trainers.trl_rollout import episode_reward

GROUPS, GROUP_SIZE = 4, 8
LIMITS = Limits(max_tokens_per_turn=24, max_total_tokens=320)


def make_env(slots: int) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Return dialogues side by side: sums of two facts that are told when asked."""
    return gym.make_vec("MathChat-v0", num_envs=slots, vectorization_mode="vector_entry_point", max_turns=5)


def small_model(folder: Path, dialogues: int) -> str:
    """Train a model from scratch on the dialogues of a hasty assistant."""
    if not folder.is_dir():
        starts = [Start(seed) for seed in range(dialogues)]
        episodes = Rollout(make_env(32), FunctionAgent(HastyMathAgent())).play(starts)
        config = ScratchConfig(output=str(folder), layers=2, hidden=128)
        pretrain(config, [e.messages for e in episodes if e.reward is not None])
    return str(folder)


def main() -> None:
    """Train a small model for some steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="the policy: a folder, an id or 'default'; none = a small one, made here")
    parser.add_argument("--dialogues", type=int, default=400, help="dialogues that make the small model (400)")
    parser.add_argument("--steps", type=int, default=8, help="optimiser steps (8)")
    parser.add_argument("--output", type=Path, default=Path("runs/trl"), help="folder for everything (runs/trl)")
    args = parser.parse_args()
    loaded = load_model(args.model or small_model(args.output / "start", args.dialogues), dtype="float32")
    trainer = GRPOTrainer(
        model=loaded.model,
        processing_class=loaded.tokenizer,
        train_dataset=seed_prompts(args.steps * GROUPS),
        rollout_func=dialogue_rollout_func(make_env(GROUPS * GROUP_SIZE), ChatFormat(loaded.tokenizer), LIMITS),
        reward_funcs=episode_reward,
        args=GRPOConfig(
            output_dir=str(args.output),
            max_steps=args.steps,
            per_device_train_batch_size=GROUP_SIZE,
            gradient_accumulation_steps=GROUPS,
            num_generations=GROUP_SIZE,
            max_completion_length=LIMITS.max_total_tokens,
            learning_rate=3e-4,
            bf16=False,
            logging_steps=1,
            activation_checkpointing=False,
            save_strategy="no",
            report_to="none",
        ),
    )
    trainer.train()
    trainer.save_model(str(args.output / "final"))
    for row in trainer.state.log_history:
        if "reward" in row:
            print(f"step {row['step']}: reward {row['reward']:.3f}, tokens {row['completions/mean_length']:.0f}")


if __name__ == "__main__":
    main()
