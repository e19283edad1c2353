"""Text environments that others wrote, in the form that rollouts and trainers take: the plain Gymnasium API is enough.

One environment a slot, no simulator: whatever answers the agent is inside. What breaks in there is data, as ever: the
episode ends as ``simulator_error`` with what was raised, unscored, and the slot gets a new environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from duologue.envs.parts import MAX_CHARS, check_options
from duologue.envs.spaces import UnicodeText, without_surrogates
from duologue.envs.vector_env import Flags, Step, Texts
from duologue.errors import DuologueError
from duologue.types import StopReason

_SEEDS = 2**31
"""Ours have 63 bits. NumPy's old generators, which many environments use, take fewer than 32."""


class TextEnv(Protocol):
    """What is asked of an environment: texts in and out. Every ``gym.Env[str, str]`` fits; no spaces are needed."""

    def reset(self, *, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; the text must not be empty."""
        ...

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated and info."""
        ...


MakeTextEnv = Callable[[], Any]
"""Makes one ``TextEnv``. (``Any``, because ``gym.Env`` types its actions in a way that no protocol can name.)"""


@dataclass(slots=True)
class _Moved:
    """What one slot shows after a call."""

    text: str = ""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    stop: StopReason | None = None
    error: str | None = None

    @property
    def info(self) -> dict[str, Any]:
        """Nothing of the foreign info, whose names may mean other things there."""
        if self.stop is None:
            return {}
        info: dict[str, Any] = {"stop_reason": self.stop.value, "scored": not self.stop.is_error}
        return info if self.error is None else {**info, "error": self.error}


class ForeignVectorEnv(gym.vector.VectorEnv[Texts, Sequence[str], Any]):
    """N environments of one kind; nothing is reset by itself, and slots that are over ignore their action."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.DISABLED}  # type: ignore[misc]

    def __init__(self, make_env: MakeTextEnv, num_envs: int, env_id: str | None = None) -> None:
        if num_envs < 1:
            raise DuologueError(f"num_envs is {num_envs}. Pass at least 1.")
        self._make = make_env
        self._envs: list[Any] = [make_env() for _ in range(num_envs)]
        if not all(hasattr(self._envs[0], name) for name in ("reset", "step")):
            raise DuologueError(f"{self._envs[0]!r} has no reset and step. Pass a function that makes an environment.")
        self.num_envs = num_envs
        self.env_id = env_id or _name_of(self._envs[0])
        self.single_observation_space = self.single_action_space = UnicodeText(MAX_CHARS)
        self.observation_space = self.action_space = batch_space(UnicodeText(MAX_CHARS), num_envs)
        self._texts = [""] * num_envs
        self._over = np.ones((2, num_envs), dtype=np.bool_)

    @property
    def signature(self) -> str:
        """Return what numbers measured here carry."""
        return f"env:{self.env_id}"

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Texts, dict[str, Any]]:
        """Start episodes in all slots, or in those of ``options["reset_mask"]``.

        Args:
            seed: one seed per slot, or an int s for s, s+1, …; None leaves it to each environment. Environments get it
                modulo 2**31.
            options: ``reset_mask``, a bool array of shape (N,). ``task_id`` may only hold None: there are no tasks.

        Returns:
            The latest observation of every slot, and infos of the slots that were reset. A slot whose environment
            raised is over at once; its info says so.

        Raises:
            DuologueError: for an unknown option, a task id, or a wrong length.
        """
        options = dict(check_options(options, ("reset_mask", "task_id")))
        if any(task is not None for task in _listed(options.get("task_id"))):
            raise DuologueError(f"{self.env_id} has no tasks to choose by id. Leave task_id out.")
        mask = self._checked(options.get("reset_mask", np.ones(self.num_envs, dtype=np.bool_)))
        seeds = self._seeds(seed)
        return self._arrive({int(i): self._open(int(i), seeds[i]) for i in np.flatnonzero(mask)})

    def step(self, actions: Sequence[str]) -> Step:
        """Send ``actions[i]`` to environment i, unless it is over.

        Raises:
            DuologueError: for a wrong number of actions.
        """
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise DuologueError(f"Pass a list of {self.num_envs} strings, one for each slot.")
        return self._advance({i: self._play(i, actions[i]) for i in self._active()})

    def cut(self, mask: Flags, reason: StopReason) -> Step:
        """End the episodes of some slots because a limit outside the environment bit, or the policy failed.

        What was rewarded so far stays; with ``policy_error`` the episode is not scored.
        """
        chosen = self._checked(mask)
        cut = {i: _Moved(truncated=True, stop=StopReason(reason)) for i in self._active() if chosen[i]}
        return self._advance(cut, {i: self._texts[i] for i in self._active() if not chosen[i]})

    def close_extras(self) -> None:
        """Close the environments, those that can be."""
        for env in self._envs:
            if hasattr(env, "close"):
                env.close()

    def _open(self, slot: int, seed: int | None) -> _Moved:
        try:
            text, _ = self._envs[slot].reset(seed=None if seed is None else seed % _SEEDS)
            if not isinstance(text, str) or not text:
                raise TypeError(f"reset returned {text!r:.80}, not a text")
        except Exception as error:  # foreign code raises what it likes
            return self._broken(slot, error)
        return _Moved(without_surrogates(text))

    def _play(self, slot: int, action: str) -> _Moved:
        try:
            text, reward, terminated, truncated, _ = self._envs[slot].step(action)
            moved = _Moved(without_surrogates(text), float(reward), bool(terminated), bool(truncated))
            if not math.isfinite(moved.reward):
                raise ValueError(f"the reward is {moved.reward}")
        except Exception as error:
            return self._broken(slot, error)
        if terminated or truncated:
            moved.truncated = not moved.terminated
            moved.stop = StopReason.ENV_TERMINATED if terminated else StopReason.ENV_TRUNCATED
        return moved

    def _broken(self, slot: int, error: Exception) -> _Moved:
        self._envs[slot] = self._make()
        text = f"{self.env_id} raised {error!r}. Fix the environment, or wrap it so that texts go in and out."
        return _Moved(truncated=True, stop=StopReason.SIMULATOR_ERROR, error=text)

    def _advance(self, moved: dict[int, _Moved], texts: dict[int, str] | None = None) -> Step:
        self._texts = [(texts or {}).get(i, "") for i in range(self.num_envs)]
        observations, infos = self._arrive(moved)
        rewards = np.array([moved[i].reward if i in moved else 0.0 for i in range(self.num_envs)])
        return observations, rewards, self._over[0].copy(), self._over[1].copy(), infos

    def _arrive(self, moved: dict[int, _Moved]) -> tuple[Texts, dict[str, Any]]:
        infos: dict[str, Any] = {}
        for i, row in moved.items():
            self._texts[i] = row.text
            self._over[:, i] = row.terminated, row.truncated
            infos = self._add_info(infos, row.info, i)
        return tuple(self._texts), infos

    def _active(self) -> list[int]:
        return [int(i) for i in np.flatnonzero(~self._over.any(axis=0))]

    def _checked(self, mask: Any) -> Flags:
        flags: Flags = np.asarray(mask)
        if flags.shape != (self.num_envs,) or flags.dtype != np.bool_:
            raise DuologueError(f"A mask has shape {flags.shape}, type {flags.dtype}. Pass {self.num_envs} bools.")
        return flags

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        seeds: list[int | None] = [None] * self.num_envs if seed is None else list(seed)
        if len(seeds) != self.num_envs:
            raise DuologueError(f"{len(seeds)} seeds for {self.num_envs} slots. Pass one for each.")
        return seeds


def foreign_vector_env(make_env: MakeTextEnv, num_envs: int, env_id: str | None = None) -> ForeignVectorEnv:
    """Return N environments that we did not write as one vector environment for ``Rollout`` and the trainers.

    Args:
        make_env: makes one environment with the plain Gymnasium API: ``reset(seed=…)`` returns (text, info), and
            ``step(text)`` returns (text, reward, terminated, truncated, info). Rewards of all steps are added up.
        num_envs: number of slots. They run one after the other, in this process, without deadline.
        env_id: name that episodes carry; the default is the environment's id or class.

    Raises:
        DuologueError: if ``num_envs`` is below 1, or what ``make_env`` makes has no ``reset`` and ``step``.
    """
    return ForeignVectorEnv(make_env, num_envs, env_id)


def _name_of(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(getattr(env, "unwrapped", env)).__name__)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
