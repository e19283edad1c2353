"""Whole histories, enumerated: what the theorems are about, and what the state at turn t only summarises."""

from __future__ import annotations

import numpy as np

from duologue.analysis.theory.exact import Pairing, total_variation
from duologue.envs.tabular import Array
from duologue.errors import DuologueError

MOST_HISTORIES = 2_000_000


def history_distribution(pairing: Pairing, turn: int) -> Array:
    """Return the probability of each history that waits for a reply at a turn.

    Args:
        pairing: one dialogue, not a batch.
        turn: t, 0 ≤ t < H.

    Returns:
        (S (A S)^t,): histories s_0 a_0 s_1 … s_t in lexical order; with the shape (-1, S) its last axis is s_t.

    Raises:
        DuologueError: for a batch, a turn that is none, or more than ``MOST_HISTORIES`` histories.
    """
    _check(pairing, turn)
    dialogue = pairing.dialogue
    histories = dialogue.opening[None, :]
    for t in range(turn):
        said = histories[:, :, None] * pairing.policy[t]
        histories = (said[..., None] * dialogue.user).reshape(-1, dialogue.states)
    return histories.ravel()


def history_shift(first: Pairing, second: Pairing) -> Array:
    """Return Δ (H,) over histories: total variation between the histories that wait for a reply at turn t.

    It is at least that between states (``Shift.contexts``), since the state is a function of the history.

    Raises:
        DuologueError: as for ``history_distribution``, and if the two differ in their numbers of histories.
    """
    if first.policy.shape != second.policy.shape:
        raise DuologueError("The two have different turns, messages or replies. Compare pairings of one shape.")
    turns = range(first.dialogue.horizon)
    return np.array([total_variation(history_distribution(first, t), history_distribution(second, t)) for t in turns])


def _check(pairing: Pairing, turn: int) -> None:
    dialogue = pairing.dialogue
    if dialogue.batch:
        raise DuologueError(f"This is a batch of shape {dialogue.batch}. Give one dialogue.")
    if not 0 <= turn < dialogue.horizon:
        raise DuologueError(f"There is no turn {turn}. Give one from 0 to {dialogue.horizon - 1}.")
    count = dialogue.states * (dialogue.states * dialogue.replies) ** turn
    if count > MOST_HISTORIES:
        raise DuologueError(f"Turn {turn} has {count} histories, the most are {MOST_HISTORIES}. Take an earlier turn.")
