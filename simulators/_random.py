"""Randomness as a pure function of names and numbers, the same in every process."""

import hashlib

import numpy as np

from duologue.types import Dialogue


def derive_seed(*parts: int | str) -> int:
    """Return a 128-bit integer that depends on every part, by SHA-256 (``hash()`` differs between processes)."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:16], "big")


def draw_seed(rng: np.random.Generator) -> int:
    """Return the seed of a dialogue that starts with this generator.

    It is the generator's first draw, so it depends on the reset's seed alone, not on how the task is found.
    """
    return int(rng.integers(2**31))


def seed_after_reset(seed: int) -> int:
    """Return the seed of the dialogue that ``env.reset(seed=seed)`` starts, by Gymnasium's ``np_random``."""
    return draw_seed(np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))))


def turn_seed(dialogue: Dialogue, bits: int = 31) -> int:
    """Return the seed of a dialogue's next user turn: its seed, its task and how long its history is."""
    return derive_seed("turn", int(dialogue.seed), dialogue.task.task_id, len(dialogue.messages)) >> (128 - bits)


def turn_rng(dialogue: Dialogue) -> np.random.Generator:
    """Return the generator of a dialogue's next user turn."""
    return np.random.default_rng(turn_seed(dialogue, bits=128))


def short_hash(text: str) -> str:
    """Return 8 hex digits for a signature."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
