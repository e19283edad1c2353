"""Tasks made by hand, and dialogues of scripted users with agents that are functions of the dialogue."""

from collections.abc import Callable, Sequence

import pytest

from duologue.simulators import Simulator
from duologue.types import Dialogue, Episode, StopReason, Task, UserTurn

Agent = Callable[[Dialogue], str]
Play = Callable[..., list[Episode]]

MATH = (
    Task("apples", "How many apples does Mia have?", "17", facts=("Mia starts with 12 apples.", "Mia buys 5 more.")),
    Task("marbles", "How many marbles are left?", "31", facts=("The jar holds 40 marbles.", "Leo takes 9 marbles.")),
)
DOCUMENT = Task(
    "bike",
    "I want a short post about cycling to work.",
    "Last May I sold my car for 3,200 euros and bought a red bicycle. The ride along the river takes 25 minutes. "
    "My neighbour Ivo laughed at first, then he asked to come along. We have breakfast at the bakery by the bridge "
    "every Friday, and neither of us wants the parking space back.",
    facts=(
        "I sold the car for 3,200 euros.",
        "It takes 25 minutes along the river.",
        "On Fridays we have breakfast at the bakery by the bridge.",
    ),
    outline=("selling the car", "the ride", "company on the road"),
)


def episode_of(user: Simulator, task: Task, seed: int, agent: Agent, max_turns: int) -> Episode:
    dialogue, turn, notes = Dialogue(task, seed), UserTurn(""), dict[str, float]()
    for _ in range(max_turns):
        turn = user.respond([dialogue])[0]
        notes = {name: notes.get(name, 0.0) + turn.notes.get(name, 0.0) for name in {*notes, *turn.notes}}
        dialogue = dialogue.then("user", turn.text)
        if turn.stop:
            break
        dialogue = dialogue.then("assistant", agent(dialogue))
    env = "MediumDocEditChat-v0" if task.outline else "MathChat-v0"
    stop = turn.stop or StopReason.TURN_LIMIT
    return Episode(env, task.task_id, seed, dialogue.messages, stop, 0.0, user_notes=notes)


@pytest.fixture
def play() -> Play:
    """Return episodes with seeds 0, 1, …, tasks in turn."""

    def played(user: Simulator, tasks: Sequence[Task], agent: Agent, n: int, max_turns: int = 6) -> list[Episode]:
        return [episode_of(user, tasks[seed % len(tasks)], seed, agent, max_turns) for seed in range(n)]

    return played


@pytest.fixture
def math_tasks() -> tuple[Task, ...]:
    return MATH


@pytest.fixture
def document() -> Task:
    return DOCUMENT
