"""Small finite dialogues and, in fractions, what happens in them: an implementation of its own."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from duologue.analysis.theory import Pairing
from duologue.envs import TabularDialogue

History = tuple[int, ...]
"""s_0 a_0 s_1 … s_t."""


def random_pairing(rng: np.random.Generator, states: int = 2, replies: int = 2, horizon: int = 4) -> Pairing:
    """Return a pairing whose numbers are eighths, so that fractions hold them exactly."""

    def eighths(*shape: int) -> Any:
        return rng.multinomial(8, np.full(shape[-1], 1 / shape[-1]), size=shape[:-1]) / 8

    rewards = rng.integers(-4, 5, size=(horizon, states, replies)) / 4
    dialogue = TabularDialogue(eighths(states), eighths(states, replies, states), rewards)
    return Pairing(dialogue, eighths(horizon, states, replies))


def probability(pairing: Pairing, history: History) -> Fraction:
    """Return how likely a history is, by multiplying along it."""
    messages, replies = history[::2], history[1::2]
    result = Fraction(float(pairing.dialogue.opening[messages[0]]))
    for t, reply in enumerate(replies):
        said = pairing.policy[t, messages[t], reply]
        result *= Fraction(float(said)) * Fraction(float(pairing.dialogue.user[messages[t], reply, messages[t + 1]]))
    return result


def histories(pairing: Pairing, turn: int) -> Iterator[History]:
    """Yield the histories that wait for a reply at a turn, in lexical order."""
    dialogue = pairing.dialogue
    choices = [range(dialogue.states if i % 2 == 0 else dialogue.replies) for i in range(2 * turn + 1)]
    return product(*choices)


def brute_return(pairing: Pairing) -> Fraction:
    """Return J by summing over all histories."""
    total = Fraction(0)
    for t in range(pairing.dialogue.horizon):
        for history in histories(pairing, t):
            for reply in range(pairing.dialogue.replies):
                paid = Fraction(float(pairing.dialogue.rewards[t, history[-1], reply]))
                said = Fraction(float(pairing.policy[t, history[-1], reply]))
                total += probability(pairing, history) * said * paid
    return total


def apart(p: Any, q: Any) -> Fraction:
    """Return the total variation between two rows of floats."""
    return sum((abs(Fraction(float(a)) - Fraction(float(b))) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
