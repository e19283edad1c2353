from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from duologue.engines.base import Sampling
from duologue.types import Dialogue, Message, Task, UserTurn

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@dataclass
class FakeChat:
    """A chat model that replies from a script (a text, or a function of prompt and seed) and logs its calls."""

    reply: str | Callable[[str, int], str]
    calls: list[tuple[list[list[Message]], Sampling, list[int]]] = field(default_factory=list)
    signature: str = "fake-chat"

    def chat(self, conversations: Sequence[Sequence[Message]], sampling: Sampling, seeds: Sequence[int]) -> list[str]:
        self.calls.append(([list(c) for c in conversations], sampling, list(seeds)))
        if isinstance(self.reply, str):
            return [self.reply for _ in conversations]
        return [self.reply(c[-1]["content"], seed) for c, seed in zip(conversations, seeds, strict=True)]


@dataclass
class FakeUser:
    """A user whose turn is a function of the dialogue; logs the batches it got."""

    turn: Callable[[Dialogue], UserTurn]
    batches: list[list[Dialogue]] = field(default_factory=list)

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.batches.append(list(dialogues))
        return [self.turn(dialogue) for dialogue in dialogues]


@pytest.fixture
def fake_chat() -> type[FakeChat]:
    return FakeChat


@pytest.fixture
def fake_user() -> type[FakeUser]:
    return FakeUser


@pytest.fixture
def math_task() -> Task:
    return Task(
        "apples-1",
        "How many apples does Mia have in the end?",
        "17",
        solution="12 + 9 - 4 = 17",
        facts=("Mia starts with 12 apples.", "Mia buys 9 more apples at the shop.", "Mia gives 4 pears to Tom."),
    )


@pytest.fixture
def document_task() -> Task:
    return Task(
        "bike-1",
        "I want a short post about cycling to work.",
        "Last May I sold my car for 3,200 euros and bought a red bicycle. The ride along the river takes 25 minutes. "
        "My neighbour Ivo laughed at first, then he asked to come along. We have breakfast at the bakery by the bridge "
        "every Friday, and neither of us wants the parking space back.",
        facts=(
            "I sold the car for 3,200 euros.",
            "It takes 25 minutes along the river.",
            "My neighbour Ivo joined me later.",
            "On Fridays we have breakfast at the bakery by the bridge.",
        ),
        outline=("selling the car", "the ride", "company on the road"),
    )


@pytest.fixture
def shared_data() -> Path:
    if not SHARED.is_dir():
        print(f"skipped: no folder {SHARED}")
        pytest.skip(f"needs the real data in {SHARED}")
    return SHARED
