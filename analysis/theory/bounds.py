"""Bounds on what a shift can cost: Theorems 3.1 and 3.2, and what is left of them with a final reward only.

``docs/theory.md`` derives them. All of them bound |J(first) - J(second)|.
"""

from __future__ import annotations

import numpy as np

from duologue.analysis.theory.exact import Pairing, Shift, expected_return
from duologue.envs.tabular import Array, TabularDialogue


def gap(first: Pairing, second: Pairing) -> Array:
    """Return |J(first) - J(second)| (…)."""
    return abs(expected_return(first) - expected_return(second))


def quadratic_bound(shift: Shift, reward_range: float = 1.0) -> Array:
    """Return R Σ_i (H - i)(ε_i + δ_i), i = 0, …, H - 1, for a reward on every turn.

    With equal users it is Theorem 3.1, with equal policies Theorem 3.2.

    Args:
        shift: between the two pairings.
        reward_range: R, the largest reward of a turn less the smallest: R_max for rewards in [0, R_max], and 2 R_max
            for rewards in [-R_max, R_max].
    """
    steps = shift.policies + shift.users
    horizon = steps.shape[-1]
    result: Array = reward_range * (steps * (horizon - np.arange(horizon))).sum(axis=-1)
    return result


def linear_bound(shift: Shift, reward_range: float = 1.0) -> Array:
    """Return R Σ_i (ε_i + δ_i), for a reward on the last turn only (arguments: see ``quadratic_bound``)."""
    result: Array = reward_range * (shift.policies + shift.users).sum(axis=-1)
    return result


def bound(shift: Shift, reward_ranges: Array) -> Array:
    """Return Σ_t R_t Σ_{i ≤ t} (ε_i + δ_i), of which the quadratic and the linear bound are special cases.

    Args:
        shift: between the two pairings.
        reward_ranges: (…, H), R_t of each turn (``reward_ranges``).
    """
    result: Array = (reward_ranges * np.cumsum(shift.policies + shift.users, axis=-1)).sum(axis=-1)
    return result


def reward_ranges(dialogue: TabularDialogue) -> Array:
    """Return (…, H): the largest reward of each turn less the smallest."""
    rewards = dialogue.rewards
    result: Array = rewards.max(axis=(-2, -1)) - rewards.min(axis=(-2, -1))
    return result


def coupling_bound(shift: Shift) -> Array:
    """Return (…, H): Σ_{i < t} ε_i + Σ_{i ≤ t} δ_i, which is at least Δ_t, over histories as over states."""
    result: Array = np.cumsum(shift.policies + shift.users, axis=-1) - shift.policies
    return result
