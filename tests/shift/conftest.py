"""Dialogues of a policy and a user whose every probability is known."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from duologue.analysis.user_rates import Seen
from duologue.types import Episode, Message, StopReason, Task

TASK = Task("apples", "How many apples does Mia have?", "17", facts=("Mia starts with 12 apples.", "Mia buys 5 more."))
WRONG, ASK, NO, UNSURE = "The answer is 3.", "What do you know?", "No, that is wrong.", "Hmm, no idea."
TURNS = 3
Make = Callable[..., list[Episode]]
Rates = tuple[float, float]


def episode(seed: int, replies: list[str], users: list[str], reward: float = 0.0) -> Episode:
    texts = [("user", TASK.instruction)]
    for reply, user in zip(replies, users, strict=False):
        texts += [("assistant", reply), ("user", user)]
    messages = tuple(Message(role=r, content=t) for r, t in texts)[: 2 * len(replies)]  # type: ignore[typeddict-item]
    return Episode("MathChat-v0", TASK.task_id, seed, messages, StopReason.TURN_LIMIT, reward)


@pytest.fixture(scope="session")
def known() -> Make:
    """Return n dialogues of three turns: the policy guesses wrong with probability ``haste``, else it asks.

    A question gets the next fact with probability ``tells``; a guess is refused.
    """

    def make(n: int, haste: float, tells: float = 1.0, seed: int = 0, first: int = 0) -> list[Episode]:
        rng, made = np.random.default_rng(seed), []
        for i in range(n):
            replies, users, told = [], [], 0
            for _ in range(TURNS):
                guesses, speaks = rng.random() < haste, rng.random() < tells
                replies.append(WRONG if guesses else ASK)
                users.append(NO if guesses else TASK.facts[told] if speaks and told < 2 else UNSURE)
                told += users[-1] in TASK.facts
            made.append(episode(first + i, replies, users, float(told)))
        return made

    return make


@pytest.fixture
def seen() -> Callable[[Episode], Seen]:
    return lambda one: Seen(one, TASK)


def histories(turn: int, haste: float, tells: float = 1.0) -> dict[tuple[str, ...], float]:
    """Return the probability of each history: what came of each turn so far."""
    chance = {"guess": haste, "tell": (1 - haste) * tells, "silent": (1 - haste) * (1 - tells)}
    paths = product(chance, repeat=turn)
    return {path: float(np.prod([chance[step] for step in path])) for path in paths}


def states(turn: int, haste: float, tells: float = 1.0) -> dict[tuple[str, ...], float]:
    """Return the probability of each state: how many facts were told, and whether a guess was made."""
    found: dict[tuple[str, ...], float] = {}
    for path, chance in histories(turn, haste, tells).items():
        state = str(min(2, path.count("tell"))), str("guess" in path)
        found[state] = found.get(state, 0.0) + chance
    return found


def exact_variation(of: Callable[..., dict[tuple[str, ...], float]], turn: int, a: Rates, b: Rates) -> float:
    """Return the total variation of ``histories`` or ``states`` of two systems."""
    p, q = of(turn, *a), of(turn, *b)
    return sum(abs(p[key] - q[key]) for key in p) / 2
