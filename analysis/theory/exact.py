"""What happens in a finite dialogue, worked out exactly: no sampling, one pass over the turns.

Arrays may carry leading axes (…): a batch, worked out at once. Turns count from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from duologue.envs.tabular import Array, TabularDialogue, check_distribution
from duologue.errors import DuologueError


@dataclass(frozen=True, eq=False)
class Pairing:
    """Who talks with whom: a policy, and the dialogue with its user."""

    dialogue: TabularDialogue
    policy: Array
    """(…, H, S, A): probability of each reply to each message, by turn. (S, A) is taken for every turn."""

    def __post_init__(self) -> None:
        """Take the policy in its full shape, and check it.

        Raises:
            DuologueError: if the shape does not fit, or a row is no distribution.
        """
        shape = self.dialogue.rewards.shape
        policy = np.asarray(self.policy, dtype=np.float64)
        if policy.shape == shape[-2:]:
            policy = np.broadcast_to(policy, shape)
        check_distribution("policy", policy, shape)
        object.__setattr__(self, "policy", policy)

    def with_policy(self, policy: ArrayLike) -> Pairing:
        """Return another policy with the same user."""
        return Pairing(self.dialogue, np.asarray(policy, dtype=np.float64))


def contexts(pairing: Pairing) -> Array:
    """Return d (…, H, S): how likely each message is the one that waits for a reply at turn t."""
    return np.stack(list(_forward(pairing)), axis=-2)


def _forward(pairing: Pairing) -> Iterator[Array]:
    dialogue, d = pairing.dialogue, pairing.dialogue.opening
    yield d
    for turn in range(dialogue.horizon - 1):
        said = d[..., None] * pairing.policy[..., turn, :, :]
        d = np.einsum("...sa,...sau->...u", said, dialogue.user)
        yield d


def said(pairing: Pairing) -> Array:
    """Return (…, H, S, A): how likely turn t is this message and this reply."""
    return contexts(pairing)[..., None] * pairing.policy


def expected_return(pairing: Pairing) -> Array:
    """Return J (…): the expected sum of rewards."""
    result: Array = (said(pairing) * pairing.dialogue.rewards).sum(axis=(-3, -2, -1))
    return result


def action_values(pairing: Pairing) -> Array:
    """Return Q (…, H, S, A): the expected sum of rewards from turn t on, after this message and this reply."""
    dialogue, policy = pairing.dialogue, pairing.policy
    values = np.array(np.broadcast_to(dialogue.rewards, policy.shape))
    for turn in range(dialogue.horizon - 2, -1, -1):
        after = (policy[..., turn + 1, :, :] * values[..., turn + 1, :, :]).sum(axis=-1)
        values[..., turn, :, :] += np.einsum("...sau,...u->...sa", dialogue.user, after)
    return values


def total_variation(p: Array, q: Array) -> Array:
    """Return half the sum of absolute differences over the last axis: 0 = equal, 1 = nothing in common."""
    result: Array = 0.5 * abs(p - q).sum(axis=-1)
    return result


@dataclass(frozen=True, eq=False)
class Shift:
    """How far two pairings are apart, turn by turn, in expectation over the histories of the first."""

    policies: Array
    """ε (…, H): expected total variation between the policies' replies at turn t."""
    users: Array
    """δ (…, H): the same between the users' messages that open turn t; δ_0 is that between their openings."""
    contexts: Array
    """Δ (…, H): total variation between the messages that wait for a reply at turn t (states, not histories)."""


def shift(first: Pairing, second: Pairing) -> Shift:
    """Measure how far two pairings are apart.

    ε and δ are expectations over histories of the first. Policies and users see no more of a history than its last
    message and reply, so the expectation over these is the same number.

    Raises:
        DuologueError: if the two do not have the same turns, messages and replies.
    """
    _check_same(first, second)
    before = said(first)
    policies = (contexts(first) * total_variation(first.policy, second.policy)).sum(axis=-1)
    apart = total_variation(first.dialogue.user, second.dialogue.user)
    answers = (before[..., :-1, :, :] * apart[..., None, :, :]).sum(axis=(-2, -1))
    openings = total_variation(first.dialogue.opening, second.dialogue.opening)
    users = np.concatenate([openings[..., None], answers], axis=-1)
    return Shift(policies, users, total_variation(contexts(first), contexts(second)))


def _check_same(first: Pairing, second: Pairing) -> None:
    a, b = first.policy.shape, second.policy.shape
    if a != b:
        raise DuologueError(f"The shapes (…, H, S, A) are {a} and {b}. Compare pairings of one shape.")
