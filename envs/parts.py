"""What single and vector environments have in common: their parts, how a dialogue starts, and what ``info`` tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from duologue import __version__
from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.envs.tasks.base import TaskSource
from duologue.errors import DuologueError, did_you_mean
from duologue.rewards.base import signature_of
from duologue.types import Task

MAX_CHARS = 16_000
"""Default limit of a message, in characters: four times what a small model writes in 1,000 tokens."""
CALL_TIMEOUT = 600.0
"""Default limit of one call of the simulator or the reward, in seconds: what a small model on two cores may need."""


@dataclass(frozen=True, slots=True)
class DialogueParts:
    """Where tasks come from and how dialogues move on."""

    tasks: TaskSource
    dynamics: DialogueDynamics

    def __post_init__(self) -> None:
        """Check the task source.

        Raises:
            DuologueError: if it cannot draw or find tasks.
        """
        if not (hasattr(self.tasks, "draw") and hasattr(self.tasks, "find")):
            raise DuologueError(f"{self.tasks!r} is no task source. Build one with duologue.envs.tasks.make_tasks.")

    def start(self, rng: np.random.Generator, task_id: str | None = None) -> tuple[Task, int]:
        """Return a task (drawn with ``rng``, or the one asked for) and a dialogue seed drawn with ``rng``."""
        if not isinstance(task_id, str | None):
            raise DuologueError(f"task_id is {type(task_id).__name__}. Pass the id as a str.")
        task = self.tasks.draw(rng) if task_id is None else self.tasks.find(task_id)
        return task, int(rng.integers(2**31))

    def signature(self, env_id: str) -> str:
        """Return the string that every number measured in this environment carries."""
        dynamics = self.dynamics
        fields = {
            "env": env_id,
            "tasks": signature_of(self.tasks),
            "user": signature_of(dynamics.simulator),
            "reward": signature_of(dynamics.reward),
            "max_turns": dynamics.max_turns,
            "max_chars": dynamics.max_chars,
            "duologue": __version__,
        }
        return "|".join(f"{name}:{value}" for name, value in fields.items())


def check_options(options: Mapping[str, Any] | None, known: Iterable[str]) -> Mapping[str, Any]:
    """Return the options of a reset, {} for None.

    Raises:
        DuologueError: if one of them is not known.
    """
    for name in options or {}:
        if name not in known:
            raise DuologueError(f"reset() knows no option {name!r}. {did_you_mean(str(name), known)}")
    return options or {}


def info_of(transition: Transition) -> dict[str, Any]:
    """Return the ``info`` of a step: all of it public, all of it fresh, so that callers may keep and change it.

    Numbers are floats throughout, because Gymnasium gives a whole vector the type of the first value that it meets.
    """
    turn, stop = transition.user_turn, transition.dialogue.stop
    info: dict[str, Any] = {
        "task_id": transition.dialogue.task.task_id,
        "messages": tuple(dict(message) for message in transition.dialogue.messages),
        "acts": tuple(str(act) for act in turn.acts) if turn else (),
        "user_notes": {name: float(count) for name, count in turn.notes.items()} if turn else {},
    }
    if stop is not None:
        info |= {"stop_reason": stop.value, "scored": transition.scored, "reward_parts": _parts(transition)}
    return info if transition.error is None else {**info, "error": transition.error}


def _parts(transition: Transition) -> dict[str, float | None]:
    parts = transition.score.parts if transition.score else {}
    return {name: None if value is None else float(value) for name, value in parts.items()}
