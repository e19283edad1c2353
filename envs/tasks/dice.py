"""Choices that depend on a string alone, the same on every platform and version of NumPy."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Picks by SHA-256 of a seed. One object holds 256 bits: enough for some fifty choices from a dozen options.

    Args:
        seed: any text; the same text makes the same choices.
    """

    def __init__(self, seed: str) -> None:
        self._left = int.from_bytes(sha256(seed.encode()).digest(), "big")

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options, each with (nearly) the same probability."""
        self._left, i = divmod(self._left, len(options))
        return options[i]
