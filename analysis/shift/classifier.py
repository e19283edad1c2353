"""A lower bound of total variation by a classifier that tells two sets of contexts apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.errors import DuologueError, MissingExtraError
from duologue.trainers.stats import Estimate, share

FOLDS, INNER_FOLDS = 2, 3
FEWEST = 10
"""Dialogues that each side must have."""
_Floats = NDArray[np.float64]
Tokens = Sequence[Sequence[str]]
"""The features of each dialogue that are present."""


def classifier_bound(a: Tokens, b: Tokens, *, paired: bool = False, seed: int = 0) -> Estimate:
    """Return TPR - FPR of a logistic regression on dialogues that it was not fitted to: the mean over two halves.

    For every set of contexts, P(set) - Q(set) <= TV, so its expectation is at most TV, whatever the classifier. The
    threshold is the best one on the other half, on scores that are cross-fitted there. The interval is the mean of the
    two halves' intervals (Newcombe 1998, method 10). The halves depend on each other, so that pooling them as
    if they did not gives too short an interval; the mean of two 97.5 % limits fails in at most 5 % by the union bound.
    Only its **lower** limit speaks of TV: TV >= low at 95 %. The upper one is no limit of TV.

    Args:
        a: one side, one context a dialogue; present features, such as words.
        b: the other side.
        paired: row i of both sides belongs together, and is put into one fold.
        seed: of the folds.

    Returns:
        The bound, which falls below 0 where nothing was found; NaN with fewer than 10 dialogues on a side.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
        DuologueError: if pairs are of different numbers.
    """
    require_classifier()
    if paired and len(a) != len(b):
        raise DuologueError(f"{len(a)} and {len(b)} dialogues make no pairs. Give as many of each, or paired=False.")
    if min(len(a), len(b)) < FEWEST:
        return Estimate(math.nan, math.nan, math.nan, len(a) + len(b))
    from sklearn.feature_extraction.text import CountVectorizer

    # A word of held-out dialogues alone gets weight 0, so one vocabulary for all folds tells the classifier nothing.
    features = CountVectorizer(analyzer=list, binary=True).fit_transform([*a, *b])
    target = np.repeat([1, 0], [len(a), len(b)])
    folds = _folds(len(a), len(b), paired, np.random.default_rng(seed))
    halves = [_on(features, target, folds == fold) for fold in range(FOLDS)]
    value, low, high = (sum(getattr(half, name) for half in halves) / FOLDS for name in ("value", "low", "high"))
    return Estimate(value, low, high, len(target))


def require_classifier() -> None:
    """Raise if scikit-learn is not installed.

    Raises:
        MissingExtraError: then.
    """
    if find_spec("sklearn") is None:
        raise MissingExtraError("Telling contexts apart by a classifier", "fidelity")


def _folds(n_a: int, n_b: int, paired: bool, rng: np.random.Generator) -> NDArray[np.intp]:
    first = rng.permutation(n_a) % FOLDS
    return np.concatenate([first, first if paired else rng.permutation(n_b) % FOLDS])


def _on(features: Any, target: NDArray[Any], held_out: NDArray[np.bool_]) -> Estimate:
    """Return the bound on one fold, by the classifier of the others."""
    chosen = _chosen(features[~held_out], target[~held_out], features[held_out])
    ours, theirs = chosen[target[held_out] == 1], chosen[target[held_out] == 0]
    return _difference(int(ours.sum()), len(ours), int(theirs.sum()), len(theirs))


def _chosen(features: Any, target: NDArray[Any], held_out: Any) -> NDArray[np.bool_]:
    """Return which held-out contexts a classifier assigns to side a."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    # The fixed seed is for liblinear's order of coordinates, which changes the last digits only.
    model = LogisticRegression(solver="liblinear", class_weight="balanced", random_state=0)
    scores = cross_val_predict(model, features, target, cv=INNER_FOLDS, method="decision_function")
    cut = best_cut(scores, target)
    return np.asarray(model.fit(features, target).decision_function(held_out) > cut)


def best_cut(scores: _Floats, target: NDArray[Any]) -> float:
    """Return the threshold with the highest TPR - FPR, half-way between two scores.

    Args:
        scores: of shape (N,).
        target: 1 for side a, 0 for side b, of shape (N,).
    """
    order = np.argsort(-scores, kind="stable")
    ranked, side = scores[order], target[order]
    gains = np.cumsum(side) / max(1, side.sum()) - np.cumsum(1 - side) / max(1, (1 - side).sum())
    last = np.append(ranked[:-1] > ranked[1:], True)  # equal scores fall on one side of a threshold
    best = int(np.argmax(np.where(last, gains, -np.inf)))
    return float((ranked[best] + ranked[best + 1]) / 2) if best + 1 < len(ranked) else float(ranked[best]) - 1.0


def _difference(hits: int, n_a: int, false: int, n_b: int) -> Estimate:
    """Return the difference of two shares with Newcombe's interval."""
    p, q = share(hits, n_a), share(false, n_b)
    value = p.value - q.value
    below = math.hypot(p.value - p.low, q.high - q.value)
    above = math.hypot(p.high - p.value, q.value - q.low)
    return Estimate(value, value - below, value + above, n_a + n_b)
