"""Dialogues to hold the bounds against: the family that attains them, and random ones that must not break them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duologue.analysis.theory.bounds import bound, gap, reward_ranges
from duologue.analysis.theory.exact import Pairing, shift
from duologue.envs.tabular import Array, TabularDialogue, losing_track

SHIFTS = ("policy", "user", "both")
"""What differs between the two pairings of a family."""
ROUNDING = 1e-12
"""What sums of floating-point numbers may add to a gap."""


def family(horizon: int, rate: float, shifted: str, *, final_only: bool = False) -> tuple[Pairing, Pairing]:
    """Return two pairings on ``losing_track`` whose gap comes near to its bound where ``rate * horizon`` is small.

    The first never loses track. In the second the assistant's reply, the user's message, or both lose it with
    probability ``rate`` each, at every turn.

    Args:
        horizon: H.
        rate: ε, and δ, of every turn.
        shifted: one of ``SHIFTS``.
        final_only: pay the last reply only.
    """
    dialogue = losing_track(horizon)
    dialogue = dialogue.final_only() if final_only else dialogue
    right = np.array([[1.0, 0.0], [1.0, 0.0]])
    slipping = np.array([[1.0 - rate, rate], [1.0, 0.0]])
    policy = right if shifted == "user" else slipping
    other = dialogue if shifted == "policy" else _losing_user(dialogue, rate)
    return Pairing(dialogue, right), Pairing(other, policy)


def _losing_user(dialogue: TabularDialogue, rate: float) -> TabularDialogue:
    user = np.array(dialogue.user)
    user[0, 0] = [1.0 - rate, rate]
    return dialogue.with_user(user, [1.0 - rate, rate])


@dataclass(frozen=True, slots=True)
class Size:
    """The size of random dialogues."""

    states: int
    replies: int
    horizon: int


SIZES = (Size(2, 2, 1), Size(2, 2, 8), Size(3, 2, 5), Size(2, 4, 3), Size(5, 3, 6), Size(4, 4, 12))
_CONCENTRATIONS = (0.05, 0.3, 1.0, 5.0)
_REWARDS: Mapping[str, tuple[float, float]] = {"[0, 1]": (0.0, 1.0), "[-1, 1]": (-1.0, 1.0)}


def random_pairings(size: Size, cases: int, rng: np.random.Generator) -> tuple[Pairing, Pairing]:
    """Return two pairings of so many random dialogues, as batches (``cases``, …).

    Distributions are Dirichlet's, from nearly deterministic to nearly uniform. Half of the cases pay in [0, 1], half in
    [-1, 1]; a third shift the policy only, a third the user only; the second of a pairing is the first, moved some of
    the way to another. Half of all rewards stand at an end of their range.
    """
    s, a, h = size.states, size.replies, size.horizon
    rewards = _random_rewards((cases, h, s, a), rng)
    apart = rng.random(cases) ** 2
    kind = np.arange(cases) % 3
    by_policy, by_user = np.where(kind == 1, 0.0, apart), np.where(kind == 0, 0.0, apart)
    opening = _random((cases, s), rng)
    user = _random((cases, s, a, s), rng)
    policy = _random((cases, h, s, a), rng)
    other = TabularDialogue(_moved(opening, by_user, rng), _moved(user, by_user, rng), rewards)
    return Pairing(TabularDialogue(opening, user, rewards), policy), Pairing(other, _moved(policy, by_policy, rng))


def _random_rewards(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    drawn = rng.random(shape)
    drawn = np.where(rng.random(shape) < 0.5, np.round(drawn), drawn)
    ends = np.array(list(_REWARDS.values()))[np.arange(shape[0]) % 2]
    low, high = ends.T.reshape(2, -1, *([1] * (len(shape) - 1)))
    result: Array = low + (high - low) * drawn
    return result


def _random(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return random distributions over the last axis; each case of the first axis has its own concentration."""
    concentration = rng.choice(_CONCENTRATIONS, size=(shape[0], *([1] * (len(shape) - 1))))
    # The floor keeps a row of tiny gamma draws from summing to 0.
    drawn = rng.standard_gamma(np.broadcast_to(concentration, shape)) + 1e-12
    result: Array = drawn / drawn.sum(axis=-1, keepdims=True)
    return result


def _moved(distribution: Array, how_far: Array, rng: np.random.Generator) -> Array:
    far = how_far.reshape(-1, *([1] * (distribution.ndim - 1)))
    result: Array = (1.0 - far) * distribution + far * _random(distribution.shape, rng)
    return result


def worst_ratios(cases: int, seed: int = 0, sizes: Sequence[Size] = SIZES) -> dict[str, Array]:
    """Return gap over bound in random dialogues, with a reward on every turn and with a final one.

    Args:
        cases: random dialogues of each size.
        seed: of the dialogues.
        sizes: their sizes.

    Returns:
        "every turn" and "final turn": (cases × sizes,), none of which may be above 1 but for rounding.
    """
    rng = np.random.default_rng(seed)
    found: dict[str, list[Array]] = {"every turn": [], "final turn": []}
    for size in sizes:
        first, second = random_pairings(size, cases, rng)
        found["every turn"].append(gap_over_bound(first, second))
        final = (Pairing(p.dialogue.final_only(), p.policy) for p in (first, second))
        found["final turn"].append(gap_over_bound(*final))
    return {name: np.concatenate(ratios) for name, ratios in found.items()}


def gap_over_bound(first: Pairing, second: Pairing) -> Array:
    """Return |J(first) - J(second)|, less what rounding may make of it, over its bound (…); 0 where both are 0."""
    limit = bound(shift(first, second), reward_ranges(first.dialogue))
    apart = np.maximum(0.0, gap(first, second) - ROUNDING)
    result: Array = np.divide(apart, limit, out=np.where(apart > 0, np.inf, 0.0), where=limit > 0)
    return result
