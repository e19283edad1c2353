"""A task source, a user and a reward small enough to predict by hand, as one fixture: ``fakes``."""

import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from duologue.errors import DuologueError
from duologue.types import Act, Dialogue, StopReason, Task, UserTurn

SECRET = "forty-two"
TASKS = [
    Task("add", "What is it?", reference=SECRET, solution=f"It is {SECRET}.", facts=(f"fact {SECRET}",)),
    Task("mul", "Und jetzt? \U0001f680 ∑", reference=SECRET, outline=(f"outline {SECRET}",)),
]


class TwoTasks:
    signature = "two"

    def draw(self, rng: np.random.Generator) -> Task:
        return TASKS[int(rng.integers(2))]

    def find(self, task_id: str) -> Task:
        for task in TASKS:
            if task.task_id == task_id:
                return task
        raise DuologueError(f"There is no task {task_id!r}. Did you mean 'add'?")

    def __iter__(self) -> Iterator[Task]:
        return iter(TASKS)


class Echo:
    """Opens with the instruction and its seed, then repeats; ends happily at "bye", unhappily at "leave"."""

    signature = "echo"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.calls.append(len(dialogues))
        return [self.answer(dialogue) for dialogue in dialogues]

    def answer(self, dialogue: Dialogue) -> UserTurn:
        if not dialogue.messages:
            return UserTurn(f"{dialogue.task.instruction} #{dialogue.seed}", acts=(Act.OPEN,), notes={"open": 1})
        last = dialogue.messages[-1]["content"]
        stops = {"bye": StopReason.USER_SATISFIED, "leave": StopReason.USER_GAVE_UP}
        return UserTurn(f"You said: {last}", stop=stops.get(last), acts=(Act.ASK,), notes={"turn": 1.0})


class Odd(Echo):
    """An echo that does ``trick`` instead where the last message is "odd", or at the opening of ``task_id``."""

    def __init__(self, trick: Callable[[Dialogue], Any], task_id: str | None = None) -> None:
        super().__init__()
        self.trick, self.task_id = trick, task_id

    def answer(self, dialogue: Dialogue) -> UserTurn:
        opening = not dialogue.messages and dialogue.task.task_id == self.task_id
        odd = bool(dialogue.messages) and dialogue.messages[-1]["content"] == "odd"
        return self.trick(dialogue) if opening or odd else super().answer(dialogue)


class SpeaksSecret:
    """1.0 if the assistant said the hidden reference; counts its calls and reports a part."""

    signature = "secret"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, dialogues: Sequence[Dialogue]) -> list[float | None]:
        self.calls.append(len(dialogues))
        return [float(any(SECRET in text for text in d.said_by("assistant"))) for d in dialogues]


def broken(dialogue: Dialogue) -> UserTurn:
    raise RuntimeError("the line is dead")


def hanging(dialogue: Dialogue) -> UserTurn:
    time.sleep(2)
    return UserTurn("too late")


@pytest.fixture
def fakes() -> SimpleNamespace:
    return SimpleNamespace(
        secret=SECRET,
        tasks=TASKS,
        TwoTasks=TwoTasks,
        Echo=Echo,
        Odd=Odd,
        SpeaksSecret=SpeaksSecret,
        broken=broken,
        hanging=hanging,
    )
