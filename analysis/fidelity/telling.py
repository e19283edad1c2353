"""Can people's turns be told from a user's? A classifier two-sample test (Lopez-Paz & Oquab 2017), by dialogue."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duologue.analysis.fidelity.counting import Array, draw_weights, interval, p_value
from duologue.analysis.fidelity.turns import Talk
from duologue.errors import MissingExtraError
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5
SWAPS = 1999
_RESAMPLES = 500
Labels = NDArray[np.intp]
Classify = Callable[[Any, Labels, Any], Array]
"""From a matrix and its labels to the scores of other rows: higher = more like a user."""


@dataclass(frozen=True, slots=True)
class Telling:
    """How well a classifier tells a user from people on dialogues that it was not fitted on."""

    auc: Estimate
    """Chance that the user's turn looks more like a user's than a person's turn does: 0.5 = cannot be told apart."""
    p: float
    """Of "cannot be told apart", one-sided."""
    draws: Array
    """The AUC of each resample of dialogues."""


def require_extra() -> None:
    """Refuse early.

    Raises:
        MissingExtraError: without scikit-learn.
    """
    if find_spec("sklearn") is None:
        raise MissingExtraError("Telling users from people", "fidelity")


def tell_apart(user: Sequence[Talk], people: Sequence[Talk], *, paired: bool, seed: int = 0) -> Telling:
    """Fit logistic regression on word and character n-grams and a few counts, cross-validated by dialogue.

    Turns of one dialogue are in one fold. If ``paired``, the user's and the person's turns at the same histories are in
    the same fold too, so that no topic that the fold shares is learned, and every history has one turn of each.

    Args:
        user: its dialogues.
        people: people's dialogues; if ``paired``, row by row at the user's histories.
        paired: see above.
        seed: of folds, swaps and resamples.
    """
    require_extra()
    sides = [(talk.texts, 1) for talk in user] + [(talk.texts, 0) for talk in people]
    groups = [i % len(user) if paired else i for i in range(len(sides))]
    texts = [text for said, _ in sides for text in said]
    labels = np.array([label for said, label in sides for _ in said], dtype=np.intp)
    where = np.array([group for (said, _), group in zip(sides, groups, strict=True) for _ in said], dtype=np.intp)
    return classifier_test(features(texts), labels, where, seed)


def classifier_test(
    matrix: Any, labels: Labels, groups: Labels, seed: int = 0, classify: Classify | None = None
) -> Telling:
    """Return the cross-validated AUC of a classifier, and a test that swaps labels by dialogue.

    The AUC comes from five folds of dialogues. For the test, scores of held-out turns are kept and labels swapped by
    dialogue, which fits nothing again and so is fast. Where every dialogue holds both classes they change places. Else
    whole dialogues are dealt anew; scores of five folds would alarm too often then (9 % where 5 % is meant), so a model
    of each half is tested on the other, and the smaller p counts twice (exact, but weak for few dialogues).

    Args:
        matrix: (turns, features), dense or sparse.
        labels: 1 = user, 0 = person.
        groups: the dialogue of each turn.
        seed: of folds, swaps and resamples.
        classify: fits and scores; None = logistic regression.
    """
    scores = _held_out_scores(matrix, labels, groups, seed, classify or _logistic)
    n = len(np.unique(groups))
    if scores is None:
        return Telling(Estimate(math.nan, math.nan, math.nan, n), math.nan, np.full(_RESAMPLES, math.nan))
    value = float(_aucs(scores, labels[None].astype(float), np.ones((1, len(labels))))[0])
    _, group = np.unique(groups, return_inverse=True)
    weights = draw_weights(n, seed, _RESAMPLES)[:, group]
    draws = _aucs(scores, np.broadcast_to(labels.astype(float), weights.shape), weights)
    if _both(labels, group).all():
        p = _paired_p(scores, labels, group, seed)
    else:
        p = _halves_p(matrix, labels, group, seed, classify or _logistic)
    return Telling(interval(value, draws, n), p, draws)


def features(texts: Sequence[str]) -> csr_matrix:
    """Return TF-IDF of word 1- and 2-grams and of character 2- to 4-grams, and simple counts; labels play no part."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(re.search(r"\w", text) for text in texts):
        return csr_matrix(_counts(texts))
    words = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, lowercase=False)
    return csr_matrix(hstack([words.fit_transform(texts), characters.fit_transform(texts), _counts(texts)]))


def _counts(texts: Sequence[str]) -> Array:
    rows = [
        [
            math.log1p(len(text.split())),
            math.log1p(len(text)),
            text.count("?"),
            text[-1:] in ".?!",
            text[:1].isupper(),
            any(c.isdigit() for c in text),
        ]
        for text in texts
    ]
    return np.array(rows, dtype=float).reshape(len(texts), 6)


def _held_out_scores(matrix: Any, labels: Labels, groups: Labels, seed: int, classify: Classify) -> Array | None:
    """Return the score of each turn by a model that saw none of its dialogue; None with fewer dialogues than folds."""
    smallest = min(len(np.unique(groups[labels == side])) for side in (0, 1))
    if smallest < FOLDS:
        return None
    scores = np.zeros(len(labels))
    fold = _folds(labels, groups, seed)
    for k in range(FOLDS):
        training, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        scores[held_out] = classify(matrix[training], labels[training], matrix[held_out])
    return scores


def _logistic(matrix: Any, labels: Labels, others: Any) -> Array:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(matrix, labels)
    return np.asarray(model.decision_function(others))


def _folds(labels: Labels, groups: Labels, seed: int, folds: int = FOLDS) -> Labels:
    """Return the fold of each turn: groups with a person's turns are dealt in turn, then the others."""
    rng = np.random.default_rng(seed)
    with_person = np.unique(groups[labels == 0])
    rest = np.setdiff1d(groups, with_person)
    fold = {g: i % folds for side in (with_person, rest) for i, g in enumerate(rng.permutation(side))}
    return np.array([fold[group] for group in groups], dtype=np.intp)


def _aucs(scores: Array, labels: Array, weights: Array) -> Array:
    """Return the weighted AUC (Mann-Whitney, ties count half) of each row of labels and weights."""
    order = np.argsort(scores, kind="stable")
    _, starts = np.unique(scores[order], return_index=True)
    user, person = (np.add.reduceat((weights * x)[:, order], starts, axis=1) for x in (labels, 1 - labels))
    below = np.cumsum(person, axis=1) - person / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((user * below).sum(axis=1) / (user.sum(axis=1) * person.sum(axis=1)))


def _both(labels: Labels, group: Labels) -> NDArray[np.bool_]:
    """Return which groups hold both classes."""
    held = [np.bincount(group[labels == side], minlength=group.max() + 1) > 0 for side in (0, 1)]
    return np.asarray(held[0] & held[1])


def _paired_p(scores: Array, labels: Labels, group: Labels, seed: int) -> float:
    flips = np.random.default_rng(seed).random((SWAPS, group.max() + 1)) < 0.5
    return _p(scores, labels, np.where(flips[:, group], 1 - labels, labels).astype(float))


def _halves_p(matrix: Any, labels: Labels, group: Labels, seed: int, classify: Classify) -> float:
    """Return twice the smaller p of two halves, each scored by a model of the other; whole groups are dealt anew."""
    half = _folds(labels, group, seed, 2)
    found = []
    for k in (0, 1):
        training, held_out = np.flatnonzero(half != k), np.flatnonzero(half == k)
        scores = classify(matrix[training], labels[training], matrix[held_out])
        names, place = np.unique(group[held_out], return_inverse=True)
        owner = np.bincount(place, weights=labels[held_out], minlength=len(names)) > 0
        dealt = np.random.default_rng([seed, k]).permuted(np.tile(owner, (SWAPS, 1)), axis=1)
        found.append(_p(scores, labels[held_out], dealt[:, place].astype(float)))
    return min(1.0, 2 * min(found))


def _p(scores: Array, labels: Labels, swaps: Array) -> float:
    rows = np.concatenate([labels[None].astype(float), swaps])
    aucs = _aucs(scores, rows, np.ones_like(rows))
    return p_value(float(aucs[0]), aucs[1:])
