"""Logged dialogues small enough to predict by hand, and a user and a reward that count their calls: ``logs``."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from duologue.simulators.logs import LoggedDialogue
from duologue.types import Dialogue, Message, StopReason, Task, UserTurn


def dialogue(dialogue_id: str, task_id: str, *texts: str) -> LoggedDialogue:
    messages = tuple(Message(role=("user", "assistant")[i % 2], content=text) for i, text in enumerate(texts))
    return LoggedDialogue(dialogue_id, Task(task_id, f"about {task_id}", reference=f"{task_id}!"), messages)


LOGGED = [
    dialogue("a", "red", "hi", "what?", "the colour", "red!", "thanks"),
    dialogue("b", "blue", "hello", "blue!"),
    dialogue("c", "red", "hey", "hm", "come on", "green", "no", "red!"),
]


class Parrot:
    """Repeats what it hears; ends at "bye". Notes what it was asked about."""

    signature = "parrot"

    def __init__(self) -> None:
        self.asked: list[Dialogue] = []

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.asked += dialogues
        return [self.answer(d) for d in dialogues]

    def answer(self, dialogue: Dialogue) -> UserTurn:
        last = dialogue.messages[-1]["content"] if dialogue.messages else dialogue.task.instruction
        return UserTurn(f"you say {last}", stop=StopReason.USER_SATISFIED if last == "bye" else None)


class SaysReference:
    """1.0 if the assistant ever said the task's reference. Notes what it was given to score."""

    signature = "says reference"

    def __init__(self) -> None:
        self.scored: list[Dialogue] = []

    def __call__(self, dialogues: Sequence[Dialogue]) -> list[float | None]:
        self.scored += dialogues
        return [float(d.task.reference in d.said_by("assistant")) for d in dialogues]


@pytest.fixture
def logs() -> SimpleNamespace:
    return SimpleNamespace(dialogue=dialogue, logged=LOGGED, Parrot=Parrot, SaysReference=SaysReference)
