"""The naive arm of a finished `duologue compare`, seed 0, with a prompted language model as its user. It resumes.

python train.py runs/small Qwen/Qwen2.5-Coder-0.5B-Instruct runs/small-prompted
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym

import duologue.envs  # noqa: F401  (registers the environments)
from duologue.engines import make_chat_model
from duologue.simulators import PromptedUser
from duologue.trainers import InteractiveConfig, InteractiveTrainer


def main(comparison: str, model: str, output: str) -> None:
    """Train as that arm did, but for the user: without a guard, sampled as when its rates were measured."""
    given = json.loads((Path(comparison) / "seed-0/naive/config.json").read_text(encoding="utf-8"))
    config = replace(InteractiveConfig(**given), simulator=f"prompted:{model}", output=output, save_steps=1)
    user = PromptedUser(make_chat_model(model), config.env, temperature=0.7, max_new_tokens=72)

    def make(slots: int) -> Any:
        return gym.make_vec(
            config.env,
            num_envs=slots,
            vectorization_mode="vector_entry_point",
            simulator=user,
            tasks=config.tasks,
            max_turns=config.max_turns,
            call_timeout=6000,
        )

    InteractiveTrainer(config, make_env=make).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
