"""Can people's turns be told from a user's? A classifier two-sample test (Lopez-Paz & Oquab 2017), by dialogue."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from duologue.analysis.fidelity.counting import Array, draw_weights, interval
from duologue.analysis.fidelity.turns import Talk
from duologue.errors import MissingExtraError
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5
SWAPS = 999
_RESAMPLES = 500
Labels = NDArray[np.intp]


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


def classifier_test(matrix: Any, labels: Labels, groups: Labels, seed: int = 0) -> Telling:
    """Return the cross-validated AUC of logistic regression, and a test that swaps labels by dialogue.

    The test keeps the scores of held-out turns and swaps labels by group: in a group that holds both classes they
    change places, else whole groups are dealt anew. Nothing is fitted again, which is fast; the rate of false
    alarms was measured (docs/fidelity.md).

    Args:
        matrix: (turns, features), dense or sparse.
        labels: 1 = user, 0 = person.
        groups: the dialogue of each turn.
        seed: of folds, swaps and resamples.
    """
    scores = _held_out_scores(matrix, labels, groups, seed)
    n = len(np.unique(groups))
    if scores is None:
        return Telling(Estimate(math.nan, math.nan, math.nan, n), math.nan, np.full(_RESAMPLES, math.nan))
    value = float(_aucs(scores, labels[None].astype(float), np.ones((1, len(labels))))[0])
    _, group = np.unique(groups, return_inverse=True)
    weights = draw_weights(n, seed, _RESAMPLES)[:, group]
    draws = _aucs(scores, np.broadcast_to(labels.astype(float), weights.shape), weights)
    swapped = _swapped(labels, group, np.random.default_rng(seed))
    found = _aucs(scores, swapped, np.ones_like(swapped))
    found = found[np.isfinite(found)]
    p = float((1 + (found >= value - 1e-12).sum()) / (1 + len(found)))
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


def _held_out_scores(matrix: Any, labels: Labels, groups: Labels, seed: int) -> Array | None:
    """Return the score of each turn by a model that saw none of its dialogue; None if a fold would lack a class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold

    smallest = min(len(np.unique(groups[labels == side])) for side in (0, 1))
    if smallest < FOLDS:
        return None
    scores = np.zeros(len(labels))
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    for training, held_out in folds.split(matrix, labels, groups):
        if len(np.unique(labels[training])) < 2:
            return None
        model = LogisticRegression(class_weight="balanced", max_iter=1000)
        scores[held_out] = model.fit(matrix[training], labels[training]).decision_function(matrix[held_out])
    return scores


def _aucs(scores: Array, labels: Array, weights: Array) -> Array:
    """Return the weighted AUC (Mann-Whitney, ties count half) of each row of labels and weights."""
    _, place = np.unique(scores, return_inverse=True)
    bins = np.zeros((len(scores), place.max() + 1))
    bins[np.arange(len(scores)), place] = 1.0
    user, person = (weights * labels) @ bins, (weights * (1 - labels)) @ bins
    below = np.cumsum(person, axis=1) - person / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((user * below).sum(axis=1) / (user.sum(axis=1) * person.sum(axis=1)))


def _swapped(labels: Labels, group: Labels, rng: np.random.Generator) -> Array:
    """Return ``SWAPS`` rows of labels, changed group by group."""
    n = group.max() + 1
    has = np.stack([np.bincount(group[labels == side], minlength=n) > 0 for side in (0, 1)])
    if has.all():
        flips = rng.random((SWAPS, n)) < 0.5
        return np.where(flips[:, group], 1 - labels, labels).astype(float)
    owner = has[1].astype(float)
    dealt = rng.permuted(np.tile(owner, (SWAPS, 1)), axis=1)
    return np.asarray(dealt[:, group])
