"""From a configuration to episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from duologue.analysis.config import RolloutConfig
from duologue.analysis.store import EpisodeFile
from duologue.disk import explains_full_disk
from duologue.envs.making import named_errors
from duologue.errors import DuologueError
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Agent, Limits, hash_seed
from duologue.trainers.rollout import Rollout, Start
from duologue.types import Episode

VectorEnv = gym.vector.VectorEnv[Any, Any, Any]
MakeEnv = Callable[[int], VectorEnv]
"""Makes a vector environment with so many slots."""
OnProgress = Callable[[int, int, float | None], None]
"""Called with episodes done, episodes in all, and the mean score so far (None before the first)."""


def agent_of(config: RolloutConfig) -> Agent:
    """Make the agent that a configuration names."""
    limits = Limits(config.max_tokens_per_turn, config.max_total_tokens)
    return make_agent(config.agent, limits, config.temperature, config.system_prompt)


def env_of(config: RolloutConfig, episodes: int, make_env: MakeEnv | None = None) -> VectorEnv:
    """Make a vector environment with no more slots than there are episodes: the native one that a configuration names.

    Args:
        config: names environment, user and tasks.
        episodes: to be played.
        make_env: makes another one from a number of slots.

    Raises:
        DuologueError: if there is no such environment, or it cannot be made.
    """
    slots = max(1, min(config.num_envs, episodes))
    if make_env is not None:
        return make_env(slots)
    given = _given(simulator=config.simulator, tasks=config.tasks, max_turns=config.max_turns)
    with named_errors(config.env):
        return gym.make_vec(config.env, num_envs=slots, vectorization_mode="vector_entry_point", **given)


def single_env(env: str, simulator: str, tasks: str | None, max_turns: int | None) -> gym.Env[Any, Any]:
    """Make one environment.

    Raises:
        DuologueError: if there is no such environment, or it cannot be made.
    """
    with named_errors(env):
        return gym.make(env, **_given(simulator=simulator, tasks=tasks, max_turns=max_turns))


def _given(*, simulator: str, tasks: str | None, max_turns: int | None) -> dict[str, Any]:
    arguments = {"simulator": simulator, "tasks": tasks, "max_turns": max_turns}
    return {name: value for name, value in arguments.items() if value is not None}


def starts_of(seed: int, episodes: int) -> list[Start]:
    """Return what each episode begins with. Episode i is the same however many follow it."""
    return [Start(hash_seed("env", seed, i), hash_seed("agent", seed, i)) for i in range(episodes)]


@explains_full_disk("remove the file and run the same command: a rollout begins again.")
def rollout(config: RolloutConfig, agent: Agent | None = None, on_progress: OnProgress | None = None) -> list[Episode]:
    """Play episodes, write each to ``config.output`` as it ends, and return them in the order of their starts.

    Raises:
        DuologueError: if a part cannot be made, or the file exists.
    """
    path = Path(config.output)
    if path.exists():
        raise DuologueError(f"{config.output!r} exists already. Give another output, or remove it.")
    agent = agent or agent_of(config)
    env = env_of(config, config.episodes)
    path.parent.mkdir(parents=True, exist_ok=True)
    starts = starts_of(config.seed, config.episodes)
    return play(env, agent, starts, {}, EpisodeFile(path), on_progress)


def play(
    env: VectorEnv,
    agent: Agent,
    starts: Sequence[Start],
    done: Mapping[int, Episode],
    file: EpisodeFile,
    on_progress: OnProgress | None = None,
) -> list[Episode]:
    """Play the starts that are not done, append each episode to a file as it ends, and close the environment.

    Args:
        env: with no more slots than there are starts to play.
        agent: plays the assistant.
        starts: of all episodes.
        done: episodes that need not be played, by seed.
        file: gets the new ones.
        on_progress: follows the episodes, old and new.

    Returns:
        All episodes, in the order of their starts.
    """
    known = dict(done)

    def keep(_: int, episode: Episode) -> None:
        file.append(episode)
        known[episode.seed] = episode
        if on_progress:
            on_progress(*_progress([known[s.seed] for s in starts if s.seed in known], len(starts)))

    missing = [start for start in starts if start.seed not in done]
    try:
        if missing:
            Rollout(env, agent).play(missing, keep)
    finally:
        env.close()
    return [known[start.seed] for start in starts]


def _progress(episodes: Sequence[Episode], total: int) -> tuple[int, int, float | None]:
    scores = [e.reward for e in episodes if e.reward is not None]
    return len(episodes), total, sum(scores) / len(scores) if scores else None
