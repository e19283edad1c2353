"""A scripted assistant for MathChat, mediocre on purpose: the behaviour policy of logs that we make ourselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from duologue.types import Message

_FIRST_GUESS = 10
_MINUS = ("minus", "left", "more", "fewer", "difference")


class HastyMathAgent:
    """Asks for facts and adds or subtracts them, but often answers before it has them all.

    Made for tasks with two facts and one sum or difference (level 1 of ``MathTasks``). Its randomness comes from the
    history alone, so the same dialogue gets the same reply.
    """

    def __init__(self, haste: float = 0.5, slips: float = 0.05, seed: int = 0) -> None:
        """Make an agent.

        Args:
            haste: probability, in each turn, of guessing although a fact is missing.
            slips: probability of a wrong result although both facts are known.
            seed: makes another agent with the same habits.
        """
        self.haste, self.slips, self.seed = haste, slips, seed
        self.__qualname__ = f"hasty-math(haste={haste:g},slips={slips:g},seed={seed})"

    def __call__(self, messages: Sequence[Message]) -> str:
        """Return the next reply."""
        rng = history_rng(self.seed, messages)
        said = [m["content"] for m in messages if m["role"] == "user"]
        numbers = [int(number) for text in said[1:] for number in re.findall(r"\d+", text)]
        if len(numbers) < 2 and rng.random() >= self.haste:
            return "What else do you know?" if numbers else "What do you know?"
        if len(numbers) < 2:
            return f"Answer: {numbers[0] if numbers else _FIRST_GUESS}"
        return self._worked(said[0], numbers[-2:], rng)

    def _worked(self, question: str, numbers: Sequence[int], rng: np.random.Generator) -> str:
        minus = any(word in question.lower() for word in _MINUS)
        left, right = (max(numbers), min(numbers)) if minus else numbers
        result = (left - right if minus else left + right) + int(rng.random() < self.slips)
        return f"{left} {'-' if minus else '+'} {right} = {result}. Answer: {result}"


def history_rng(seed: int, messages: Sequence[Message]) -> np.random.Generator:
    """Return a generator that depends on a history alone, so that the same dialogue gets the same reply."""
    history = repr([(m["role"], m["content"]) for m in messages])
    digest = sha256(f"{seed}|{history}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))
