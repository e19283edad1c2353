"""From a configuration to episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from duologue.analysis.config import RolloutConfig
from duologue.envs import ENV_IDS
from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Agent, Limits, hash_seed
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Episode

VectorEnv = gym.vector.VectorEnv[Any, Any, Any]


def agent_of(config: RolloutConfig) -> Agent:
    """Make the agent that a configuration names."""
    limits = Limits(config.max_tokens_per_turn, config.max_total_tokens)
    return make_agent(config.agent, limits, config.temperature, config.system_prompt)


def env_of(config: RolloutConfig, episodes: int) -> VectorEnv:
    """Make the native vector environment that a configuration names, with no more slots than there are episodes.

    Raises:
        DuologueError: if there is no such environment, or it does not take these arguments.
    """
    arguments: dict[str, Any] = {"simulator": config.simulator, "tasks": config.tasks, "max_turns": config.max_turns}
    given = {name: value for name, value in arguments.items() if value is not None}
    slots = max(1, min(config.num_envs, episodes))
    try:
        return gym.make_vec(config.env, num_envs=slots, vectorization_mode="vector_entry_point", **given)
    except gym.error.UnregisteredEnv as error:
        raise DuologueError(f"There is no environment {config.env!r}. {did_you_mean(config.env, ENV_IDS)}") from error
    except gym.error.Error as error:
        raise DuologueError(f"{config.env} cannot be made: {error} Choose one of {', '.join(ENV_IDS)}.") from error


def starts_of(seed: int, episodes: int) -> list[Start]:
    """Return what each episode begins with. Episode i is the same however many follow it."""
    return [Start(hash_seed(seed, 0, i), hash_seed(seed, 1, i)) for i in range(episodes)]


def play(env: VectorEnv, agent: Agent, starts: Sequence[Start], on_episode: Callable[[Episode], None]) -> None:
    """Play the starts, report each episode as it ends, and close the environment whatever happens."""
    try:
        Rollout(env, agent).play(starts, lambda _, episode: on_episode(episode))
    finally:
        env.close()
