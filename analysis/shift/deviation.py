"""How far two policies, or two users, are apart on the same histories, turn by turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duologue.analysis.shift.states import OVER, answered, context_state, reached, reply_act, user_act, with_answer
from duologue.analysis.shift.variation import VariationCurve, variation_curve
from duologue.analysis.user_rates import Seen
from duologue.errors import DuologueError
from duologue.trainers.stats import Estimate, mean, ratio
from duologue.types import UserTurn

Texts = Sequence[Sequence[str | None]]
"""Replies by dialogue and turn; None where there is none."""
Answers = Sequence[Sequence[UserTurn | None]]
"""User turns by dialogue and turn of the assistant that they answer; None where there is none."""


def mean_variation(p: NDArray[np.float64], q: NDArray[np.float64], seed: int = 0) -> Estimate:
    """Return the mean total variation of two policies over discrete acts whose probabilities are known.

    Exact at each context; the interval is over contexts, so give one context a dialogue.

    Args:
        p: probabilities of acts, of shape (contexts, acts).
        q: those of the other policy at the same contexts.
        seed: of the bootstrap.

    Raises:
        DuologueError: if the shapes differ, or a row does not sum to 1.
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.ndim != 2 or p.shape != q.shape:
        raise DuologueError(f"Probabilities have shapes {p.shape} and {q.shape}. Give two of shape (contexts, acts).")
    if not (np.allclose(p.sum(axis=1), 1) and np.allclose(q.sum(axis=1), 1) and p.min() >= 0 and q.min() >= 0):
        raise DuologueError("A row of probabilities does not sum to 1. Normalise it over the acts.")
    return mean((np.abs(p - q).sum(axis=1) / 2).tolist(), seed)


def pinsker_bound(log_ratios: Sequence[Sequence[float]], seed: int = 0) -> Estimate:
    """Return an estimate of an upper bound of the mean total variation of two language models: sqrt(KL / 2).

    KL is the mean of ``log p(reply) - log q(reply)`` over replies that p sampled; by Jensen's inequality the root of
    the mean is above the mean of the roots. The estimate of KL can fall below 0 by chance, and counts as 0 then.

    Args:
        log_ratios: one row a dialogue, one number a reply: the summed log-probabilities of its tokens under p, less
            those under q, of the same tokens.
        seed: of the bootstrap, which resamples dialogues.
    """
    kl = ratio([sum(row) for row in log_ratios], [len(row) for row in log_ratios], seed)

    def root(x: float) -> float:
        return x if math.isnan(x) else min(1.0, math.sqrt(max(0.0, x) / 2))

    return Estimate(root(kl.value), root(kl.low), root(kl.high), kl.n)


def policy_deviation(logs: Sequence[Seen], replies: Texts, turns: int, seed: int = 0) -> VariationCurve:
    """Return a lower bound of epsilon_t: the total variation of the acts of two policies on the same contexts.

    Labels are the context's state with the act of the reply: those of the logged reply against those of one that the
    other policy sampled there. Contexts are shared, so this is the mean over states of the acts' total variation within
    a state, at most the mean over histories of that of the replies. Dialogues that are over count as equal.

    Args:
        logs: dialogues of the one policy.
        replies: what the other says at turn t instead; None where it said nothing, which counts as equal.
        turns: how many turns to measure.
        seed: of permutations and resamples.
    """
    rows = [_policy_labels(seen, row, turns) for seen, row in zip(logs, replies, strict=True)]
    return variation_curve([a for a, _ in rows], [b for _, b in rows], paired=True, seed=seed)


def user_deviation(own: Sequence[Seen], answers: Answers, turns: int, seed: int = 0) -> VariationCurve:
    """Return a lower bound of delta_t: the total variation of the acts of two users on the same histories.

    As ``policy_deviation``; the user's turn t answers the assistant's turn t, and the label holds that turn's act too.
    The user's seed counts as part of the history.

    Args:
        own: dialogues with the one user.
        answers: what the other does after the assistant's turn t instead; None counts as equal.
        turns: how many turns to measure.
        seed: of permutations and resamples.
    """
    rows = [_user_labels(seen, row, turns) for seen, row in zip(own, answers, strict=True)]
    return variation_curve([a for a, _ in rows], [b for _, b in rows], paired=True, seed=seed)


def _policy_labels(seen: Seen, replies: Sequence[str | None], turns: int) -> tuple[list[str], list[str]]:
    ours, theirs = [OVER] * turns, [OVER] * turns
    for turn, reply in enumerate(replies[:turns]):
        if reply is not None and reached(seen, turn):
            state = context_state(seen, turn)
            ours[turn] = f"{state}: {reply_act(seen, seen.messages[2 * turn + 1]['content'])}"
            theirs[turn] = f"{state}: {reply_act(seen, reply)}"
    return ours, theirs


def _user_labels(seen: Seen, answers: Sequence[UserTurn | None], turns: int) -> tuple[list[str], list[str]]:
    ours, theirs = [OVER] * turns, [OVER] * turns
    for turn, answer in enumerate(answers[:turns]):
        if answer is not None and answered(seen, turn):
            history = f"{context_state(seen, turn)}, {reply_act(seen, seen.messages[2 * turn + 1]['content'])}"
            ours[turn] = f"{history}: {user_act(seen, turn)}"
            theirs[turn] = f"{history}: {user_act(with_answer(seen, turn, answer), turn)}"
    return ours, theirs
