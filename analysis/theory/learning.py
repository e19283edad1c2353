"""The same learner on logged contexts and on its own, as dialogues grow longer: nothing else differs.

A reply is right or wrong, and pays 1 or 0 at once, so what to say never depends on what comes later: contexts alone
decide what is learned. A wrong reply loses the user, and only the reply that is right then brings them back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.analysis.theory.bounds import gap, quadratic_bound
from duologue.analysis.theory.exact import Pairing, shift
from duologue.envs.tabular import Array, TabularDialogue, TabularDialogueEnv

TOPICS = 64
LOST = 32
REPLIES = 16
CONTEXTS = 2_048
"""Contexts that every learner sees, at every horizon: so many turns, in dialogues of H turns."""
SLIPS = {"static": 0.02, "static, flawless logs": 0.0}
"""How often the assistant of the logs says a wrong reply: the two kinds of logged contexts."""
OWN = "on-policy"
ARMS = (*SLIPS, OWN)


@dataclass(frozen=True, slots=True)
class Learned:
    """What one learner lost, exactly."""

    gap: float
    """J(right replies) - J(learned), with a reward on every turn."""
    final_gap: float
    """The same if only the last reply is paid."""
    error: float
    """Probability of a wrong reply, mean over the turns of flawless dialogues: ε."""
    bound: float
    """Theorem 3.1's bound on ``gap``."""


def topics_dialogue(horizon: int, rng: np.random.Generator) -> TabularDialogue:
    """Return a dialogue whose user is on one of ``TOPICS`` or in one of ``LOST`` states of loss.

    Each state has one right reply of ``REPLIES``, drawn by ``rng``. After a right one the user turns to topic k with a
    probability in proportion to 1 / (k + 1); after a wrong one they are in any of the states of loss, all as likely.

    Args:
        horizon: H.
        rng: draws the right replies.
    """
    states = TOPICS + LOST
    on_topic = np.zeros(states)
    on_topic[:TOPICS] = 1.0 / np.arange(1, TOPICS + 1)
    on_topic /= on_topic.sum()
    lost = np.zeros(states)
    lost[TOPICS:] = 1.0 / LOST
    right = np.eye(REPLIES)[rng.integers(REPLIES, size=states)]
    user = right[..., None] * on_topic + (1.0 - right[..., None]) * lost
    return TabularDialogue(on_topic, user, np.broadcast_to(right, (horizon, states, REPLIES)))


def learn(dialogue: TabularDialogue, contexts: int, slips: float | None, rng: np.random.Generator) -> Array:
    """Let a learner try replies in so many contexts, and return its policy (S, A).

    In a context it says one of the replies that it does not know to be wrong, all as likely, and sees its reward. Where
    the next context comes from is the only difference.

    Args:
        dialogue: pays a reply the same at every turn, 1 for the right one and 0 for others.
        contexts: how many turns to learn from.
        slips: None = the learner's own replies go on the dialogue. Else contexts are logged: the dialogue goes on with
            the right reply, or, so often, with another.
        rng: draws everything.
    """
    possible = np.ones((dialogue.states, dialogue.replies), dtype=bool)
    right = dialogue.rewards[0].argmax(axis=-1).tolist()
    env = TabularDialogueEnv(dialogue)
    state, _ = env.reset(seed=int(rng.integers(2**31)))
    for _ in range(contexts):
        reply = _any_of(np.flatnonzero(possible[state]), rng)
        _note(possible[state], reply, reply == right[state])
        goes_on = reply if slips is None else _logged(right[state], dialogue.replies, slips, rng)
        state, _, over, _, _ = env.step(goes_on)
        if over:
            state, _ = env.reset()
    result: Array = possible / possible.sum(axis=-1, keepdims=True)
    return result


def _note(possible: NDArray[np.bool_], reply: int, is_right: bool) -> None:
    """Write what one trial taught about a state's replies (A,): the right one leaves no other."""
    if is_right:
        possible[:] = False
    possible[reply] = is_right


def _logged(right: int, replies: int, slips: float, rng: np.random.Generator) -> int:
    """Return what the assistant of the logs says: the right reply, or, so often, one of the others."""
    return right if rng.random() >= slips else (right + 1 + int(rng.integers(replies - 1))) % replies


def _any_of(choices: NDArray[np.intp], rng: np.random.Generator) -> int:
    return int(choices[rng.integers(len(choices))])


def learned(horizon: int, arm: str, seed: int, contexts: int = CONTEXTS) -> Learned:
    """Train one learner and work out exactly what it loses.

    Args:
        horizon: H.
        arm: one of ``ARMS``.
        seed: of the dialogue, which all arms and horizons share, and of the learner.
        contexts: how many turns it learns from.
    """
    dialogue = topics_dialogue(horizon, np.random.default_rng([seed, 0]))
    policy = learn(dialogue, contexts, SLIPS.get(arm), np.random.default_rng([seed, 1, horizon, ARMS.index(arm)]))
    ideal = Pairing(dialogue, dialogue.rewards[0])
    made = ideal.with_policy(policy)
    apart = shift(ideal, made)
    final = (Pairing(p.dialogue.final_only(), p.policy) for p in (ideal, made))
    return Learned(
        gap=float(gap(ideal, made)),
        final_gap=float(gap(*final)),
        error=float(apart.policies.mean()),
        bound=float(quadratic_bound(apart)),
    )
