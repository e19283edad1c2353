"""What single and vector environments have in common: their parts, how a dialogue starts, and what ``info`` tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from duologue import __version__
from duologue.envs.contexts import LoggedContexts, make_contexts
from duologue.envs.dynamics import DialogueDynamics, Transition
from duologue.envs.tasks.base import TaskSource
from duologue.errors import DuologueError, did_you_mean
from duologue.rewards.base import signature_of
from duologue.simulators._random import draw_seed
from duologue.types import Dialogue, Task

MAX_CHARS = 16_000
"""Default limit of a message, in characters: four times what a small model writes in 1,000 tokens."""
CALL_TIMEOUT = 600.0
"""Default limit of one call of the simulator or the reward, in seconds: what a small model on two cores may need."""


@dataclass(frozen=True, slots=True)
class DialogueParts:
    """Where tasks and histories come from, and how dialogues move on."""

    tasks: TaskSource
    dynamics: DialogueDynamics
    contexts: LoggedContexts | None = None
    """Logged histories to begin with, each with a task of its own; None = the user opens."""

    def __post_init__(self) -> None:
        """Check the task source.

        Raises:
            DuologueError: if it cannot draw or find tasks, or a logged message is longer than a message may be.
        """
        if not (hasattr(self.tasks, "draw") and hasattr(self.tasks, "find")):
            raise DuologueError(f"{self.tasks!r} is no task source. Build one with duologue.envs.tasks.make_tasks.")
        longest = max((len(m["content"]) for c in self.contexts or () for m in c.messages), default=0)
        if longest > self.dynamics.max_chars:
            raise DuologueError(
                f"A logged message has {longest} characters, over max_chars {self.dynamics.max_chars}. Raise max_chars."
            )

    @property
    def max_messages(self) -> int:
        """Return the most messages that a dialogue can have."""
        return max((len(c.messages) for c in self.contexts or ()), default=1) + 2 * self.dynamics.max_turns

    def open(
        self,
        rngs: Sequence[np.random.Generator],
        task_ids: Sequence[str | None],
        context_ids: Sequence[str | None] | None = None,
    ) -> list[Transition]:
        """Start one dialogue per generator: from a logged context, or opened by the users in one call.

        Args:
            rngs: one per dialogue.
            task_ids: one per dialogue; None = drawn.
            context_ids: the same for logged contexts; None = all drawn.

        Raises:
            DuologueError: for an unknown task or context id, or both for one dialogue, or a context id without logs.
        """
        wanted = context_ids or [None] * len(rngs)
        if self.contexts is not None:
            return [_resumed(self.contexts, *ids) for ids in zip(rngs, task_ids, wanted, strict=True)]
        if any(context_id is not None for context_id in wanted):
            raise DuologueError("There are no contexts to choose by id. Make the environment with contexts.")
        starts = [self.start(rng, task_id) for rng, task_id in zip(rngs, task_ids, strict=True)]
        return self.dynamics.open([task for task, _ in starts], [seed for _, seed in starts])

    def start(self, rng: np.random.Generator, task_id: str | None = None) -> tuple[Task, int]:
        """Return a task (drawn with ``rng``, or the one asked for) and a dialogue seed, drawn with ``rng`` first."""
        seed = draw_seed(rng)
        task = self.tasks.draw(rng) if _checked_id(task_id) is None else self.tasks.find(str(task_id))
        return task, seed

    def signature(self, env_id: str) -> str:
        """Return the string that every number measured in this environment carries."""
        dynamics = self.dynamics
        fields = {
            "env": env_id,
            **({"tasks": signature_of(self.tasks)} if self.contexts is None else {"contexts": self.contexts.signature}),
            "user": signature_of(dynamics.simulator),
            "reward": signature_of(dynamics.reward),
            "max_turns": dynamics.max_turns,
            "max_chars": dynamics.max_chars,
            "duologue": __version__,
        }
        return "|".join(f"{name}:{value}" for name, value in fields.items())


def make_parts(
    tasks: TaskSource | None, dynamics: DialogueDynamics, contexts: LoggedContexts | str | Path | None = None
) -> DialogueParts:
    """Return the parts of an environment whose dialogues begin with tasks or with logged contexts, but not both.

    Raises:
        DuologueError: if both or neither are given, or one of them cannot work.
    """
    logged = make_contexts(contexts)
    if logged is None:
        if tasks is None:
            raise DuologueError("There are neither tasks nor contexts. Pass one of them.")
        return DialogueParts(tasks, dynamics)
    if tasks is not None:
        raise DuologueError("Logged contexts bring their own tasks. Leave out tasks, or contexts.")
    return DialogueParts(logged.tasks, dynamics, logged)


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
    if transition.context_id is not None:
        info["context_id"] = transition.context_id
    if stop is not None:
        info |= {"stop_reason": stop.value, "scored": transition.scored, "reward_parts": _parts(transition)}
    return info if transition.error is None else {**info, "error": transition.error}


def _resumed(
    contexts: LoggedContexts, rng: np.random.Generator, task_id: str | None, context_id: str | None
) -> Transition:
    seed = draw_seed(rng)
    if task_id is not None and context_id is not None:
        raise DuologueError(f"Both task_id and context_id {context_id!r} are given. Leave one out.")
    context = contexts.draw(rng, _checked_id(task_id)) if context_id is None else contexts.find(context_id)
    dialogue = Dialogue(context.task, seed, context.messages, given=len(context.messages))
    return Transition(dialogue, context.messages[-1]["content"], context_id=context.context_id)


def _checked_id(task_id: object) -> str | None:
    if not isinstance(task_id, str | None):
        raise DuologueError(f"task_id is {type(task_id).__name__}. Pass the id as a str.")
    return task_id


def _parts(transition: Transition) -> dict[str, float | None]:
    parts = transition.score.parts if transition.score else {}
    return {name: None if value is None else float(value) for name, value in parts.items()}
