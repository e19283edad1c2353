"""PPO of stable-baselines3 learns MathChat in dialogue acts, and joins an evaluation as a text agent.

    python examples/sb3_ppo.py --output runs/sb3_ppo

The policy sees five numbers and has five acts: ask, add up and answer, answer with the last number, guess, remark.
From the folder of this file the saved policy is also an agent by name, in runs/sb3_ppo or where SB3_POLICY points:

    duologue evaluate MathChat-v0 --agent sb3_ppo:reply
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import gymnasium as gym
import numpy as np

from duologue.analysis import EvaluateConfig, evaluate
from duologue.envs import AssistantAct, DialogueActs
from duologue.trainers import FunctionAgent, act_agent, load_sb3_agent
from duologue.types import Message

POLICY = Path("runs/sb3_ppo/policy.zip")
MAX_TURNS = 4


def make() -> DialogueActs:
    """Return one training environment: sums of two facts that are told when asked."""
    env = gym.make("duologue.envs:MathChat-v0", tasks="math:level=1,split=train", max_turns=MAX_TURNS)
    return DialogueActs(env)


def train(steps: int, seed: int, path: Path) -> FunctionAgent:
    """Train PPO for some turns, save it, and return it as a text agent that was read back from the file."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)  # the network is tiny
    model = PPO(
        "MlpPolicy",
        make_vec_env(make, n_envs=8, seed=seed),
        n_steps=64,
        batch_size=128,
        learning_rate=2e-3,
        gamma=1.0,
        ent_coef=0.01,
        seed=seed,
        device="cpu",
    )
    model.learn(steps)
    model.save(path)
    return load_sb3_agent(path)


@lru_cache(maxsize=1)
def _saved() -> FunctionAgent:
    return load_sb3_agent(os.environ.get("SB3_POLICY", str(POLICY)))


def reply(messages: Sequence[Message]) -> str:
    """Reply as the saved policy: what ``--agent sb3_ppo:reply`` names."""
    return str(_saved().function(list(messages)))


def main() -> None:
    """Train, then compare with chance, on test problems and held-out users."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=POLICY.parent, help="folder for everything (runs/sb3_ppo)")
    parser.add_argument("--steps", type=int, default=6_000, help="assistant turns to train on (6000)")
    parser.add_argument("--dialogues", type=int, default=100, help="dialogues per evaluation (100)")
    parser.add_argument("--seed", type=int, default=0, help="seeds training (0)")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(args.seed)
    agents = {
        "random acts": act_agent(lambda _: int(rng.integers(len(AssistantAct))), "random-acts"),
        "PPO": train(args.steps, args.seed, args.output / POLICY.name),
    }
    print(f"{'agent':12} accuracy  95 % interval   turns")
    for name, agent in agents.items():
        folder = str(args.output / name.replace(" ", "-"))
        config = EvaluateConfig(episodes=args.dialogues, max_turns=MAX_TURNS, output=folder, overwrite=True)
        report = evaluate(config, agent)
        score = report.score
        print(f"{name:12} {score.value:8.2f}  [{score.low:.2f}, {score.high:.2f}]  {report.turns.value:6.2f}")


if __name__ == "__main__":
    main()
