"""A policy that was trained in dialogue acts, back in text: it joins evaluations like any other agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from duologue.envs.acts import Features, features, speak
from duologue.errors import DuologueError, MissingExtraError
from duologue.trainers.agents import FunctionAgent
from duologue.types import Message

Choose = Callable[[Features], int]
"""Maps the features of a history to an act."""


def act_agent(choose: Choose, name: str) -> FunctionAgent:
    """Return the agent that does what ``choose`` chooses.

    Args:
        choose: the policy, for instance a trained one's greedy action.
        name: who it is, for signatures.
    """

    def reply(messages: Sequence[Message]) -> str:
        return speak(choose(features(messages)), messages)

    return FunctionAgent(reply, name)


def load_sb3_agent(path: str | Path) -> FunctionAgent:
    """Return the greedy agent of a PPO policy that stable-baselines3 trained on ``DialogueActs`` and saved.

    Args:
        path: the ``.zip`` that ``PPO.save`` wrote. Its signature carries a hash of the file.

    Raises:
        DuologueError: if there is no such file.
        MissingExtraError: if stable-baselines3 is not installed.
    """
    file = Path(path)
    if not file.is_file():
        raise DuologueError(f"There is no policy {path}. Give the .zip that PPO.save wrote.")
    try:
        from stable_baselines3 import PPO
    except ImportError as error:
        raise MissingExtraError("A policy of stable-baselines3", "sb3") from error
    model = PPO.load(file, device="cpu")

    def choose(observation: Features) -> int:
        action, _ = model.predict(observation, deterministic=True)
        return int(action)

    return act_agent(choose, f"sb3-ppo@{sha256(file.read_bytes()).hexdigest()[:8]}")
