"""Static contexts: histories from logged dialogues that an episode begins with, in the place of the user's opening."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from duologue.envs.spaces import without_surrogates
from duologue.envs.tasks.lists import TaskList, content_hash
from duologue.errors import DuologueError, did_you_mean
from duologue.simulators.logs import LoggedDialogue, read_logs
from duologue.types import Message, Task, alternates

TURNS = ("all", "final")
"""Which assistant turns of a logged dialogue are contexts to reply to."""


@dataclass(frozen=True, slots=True)
class Context:
    """What was said before one assistant turn of a logged dialogue."""

    context_id: str
    """``DIALOGUE#K``: before the K-th assistant turn, counted from 1."""
    task: Task
    messages: tuple[Message, ...]
    """2K - 1 messages; the user has the last word."""


class LoggedContexts:
    """The histories of logged dialogues, each up to an assistant turn, which the policy then writes anew.

    The source of the method does not say which turns are trained on. ``"all"`` takes every assistant turn, and draws
    uniformly over these rows, so that a long dialogue weighs more than a short one. ``"final"`` takes only the last
    assistant turn of each dialogue, where its outcome was decided.

    Args:
        dialogues: with distinct ids and at least one assistant turn among them; one without any has no context.
        turns: ``"all"`` or ``"final"``.

    Raises:
        DuologueError: if there is nothing to draw, or a dialogue cannot be used; the message names it.
    """

    def __init__(self, dialogues: Iterable[LoggedDialogue], turns: str = "all") -> None:
        if turns not in TURNS:
            raise DuologueError(f"There are no contexts of turns {turns!r}. {did_you_mean(str(turns), TURNS)}")
        self.turns = turns
        self.dialogues = tuple(dialogues)
        self._contexts = tuple(context for dialogue in self.dialogues for context in _contexts(dialogue, turns))
        if not self._contexts:
            raise DuologueError("The logs hold no assistant turn to lead up to. Pass dialogues in which both spoke.")
        self._by_id = {context.context_id: context for context in self._contexts}
        if len(self._by_id) < len(self._contexts):
            raise DuologueError("Two logged dialogues have one dialogue_id. Give each its own.")
        self._by_task: dict[str, list[Context]] = {}
        for context in self._contexts:
            self._by_task.setdefault(context.task.task_id, []).append(context)
        self.tasks = _tasks(d for d in self.dialogues if len(d.messages) > 1)
        """The tasks that the contexts are about, each once."""

    @cached_property
    def signature(self) -> str:
        """Number of contexts, which turns, and a hash of the dialogues with their order, on which draws depend."""
        rows = "\n".join(json.dumps(dialogue.to_json(), sort_keys=True) for dialogue in self.dialogues)
        return f"logged(n={len(self)},turns={self.turns},sha256={sha256(rows.encode()).hexdigest()[:12]})"

    def draw(self, rng: np.random.Generator, task_id: str | None = None) -> Context:
        """Return a context (of one task, if its id is given), each with the same probability.

        Raises:
            DuologueError: if no dialogue is about this task; the message names the nearest id.
        """
        rows = self._contexts if task_id is None else self._by_task[self.tasks.find(task_id).task_id]
        return rows[int(rng.integers(len(rows)))]

    def find(self, context_id: str) -> Context:
        """Return the context with this id.

        Raises:
            DuologueError: if there is none.
        """
        if context_id not in self._by_id:
            example = self._contexts[0].context_id
            raise DuologueError(f"No context {context_id!r}. Write DIALOGUE#TURN, for instance {example!r}.")
        return self._by_id[context_id]

    def __iter__(self) -> Iterator[Context]:
        """Iterate over the contexts, once, in order."""
        return iter(self._contexts)

    def __len__(self) -> int:
        """Return how many contexts there are."""
        return len(self._contexts)


def make_contexts(contexts: LoggedContexts | str | Path | None) -> LoggedContexts | None:
    """Return contexts: as they are, or all turns of the logged dialogues in a JSONL file; None for None.

    Raises:
        DuologueError: if the file or one of its dialogues cannot be used, or ``contexts`` is something else.
    """
    if isinstance(contexts, str | Path):
        return LoggedContexts(read_logs(contexts))
    if contexts is not None and not isinstance(contexts, LoggedContexts):
        raise DuologueError(f"contexts is {type(contexts).__name__}. Pass LoggedContexts or the path of a JSONL file.")
    return contexts


def _contexts(dialogue: LoggedDialogue, turns: str) -> list[Context]:
    messages = _checked(dialogue)
    last = len(messages) // 2
    numbers = range(1 if turns == "all" else max(1, last), last + 1)
    return [Context(f"{dialogue.dialogue_id}#{k}", dialogue.task, messages[: 2 * k - 1]) for k in numbers]


def _checked(dialogue: LoggedDialogue) -> tuple[Message, ...]:
    name, messages = f"The logged dialogue {dialogue.dialogue_id!r}", dialogue.messages
    if not alternates(messages):
        raise DuologueError(f"{name} must start with the user and take turns. Merge or drop its other messages.")
    if not all(m["content"].strip() for m in messages[: len(messages) // 2 * 2 : 2]):
        raise DuologueError(f"{name} has a blank user message, to which there is nothing to reply. Leave it out.")
    return tuple(Message(role=m["role"], content=without_surrogates(m["content"])) for m in messages)


def _tasks(dialogues: Iterable[LoggedDialogue]) -> TaskList:
    tasks: dict[str, Task] = {}
    for dialogue in dialogues:
        task = tasks.setdefault(dialogue.task.task_id, dialogue.task)
        if content_hash(task) != content_hash(dialogue.task):
            raise DuologueError(f"The logs hold two tasks with the id {task.task_id!r}. Give each its own id.")
    return TaskList(tasks.values(), "logged")
