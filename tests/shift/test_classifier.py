"""The classifier's bound: below the truth, and not by much."""

import math

import numpy as np
import pytest

from duologue.analysis.shift import classifier, classifier_bound
from duologue.analysis.shift.classifier import best_cut
from duologue.errors import DuologueError, MissingExtraError


def drawn(p: list[float], n: int, rng: np.random.Generator) -> list[list[str]]:
    return [[f"word {x}", "the"] for x in rng.choice(len(p), size=n, p=p)]


def test_sides_without_a_word_in_common_are_told_apart() -> None:
    found = classifier_bound([["x"]] * 40, [["y"]] * 40)
    assert found.value == 1.0
    assert 0.7 < found.low < 1.0
    assert found.n == 80


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_lower_limit_is_below_the_exact_variation(share: float) -> None:
    """At most 5 % of limits are above it; 80 repetitions with 80 dialogues a side. The bound itself is near."""
    p, far, rng = [0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4], np.random.default_rng(3)
    q = [(1 - share) * x + share * y for x, y in zip(p, far, strict=True)]
    truth = float(np.abs(np.subtract(p, q)).sum() / 2)
    found = [classifier_bound(drawn(p, 80, rng), drawn(q, 80, rng), seed=i) for i in range(80)]
    assert sum(f.low > truth for f in found) <= 4
    assert np.mean([f.value for f in found]) <= truth + 0.02
    assert np.mean([f.value for f in found]) > truth - 0.12


def test_pairs_stay_in_one_fold() -> None:
    folds = classifier._folds(30, 30, True, np.random.default_rng(0))
    assert (folds[:30] == folds[30:]).all()
    assert set(folds) == set(range(classifier.FOLDS))


def test_too_few_dialogues_give_no_number() -> None:
    assert math.isnan(classifier_bound([["x"]] * 9, [["y"]] * 50).value)


def test_pairs_of_different_numbers_are_refused() -> None:
    with pytest.raises(DuologueError, match="paired=False"):
        classifier_bound([["x"]] * 10, [["y"]] * 11, paired=True)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="fidelity"):
        classifier_bound([["x"]] * 10, [["y"]] * 10)


@pytest.mark.parametrize(
    ("scores", "target", "cut"),
    [
        ([3.0, 2.0, 1.0, 0.0], [1, 1, 0, 0], 1.5),
        ([3.0, 2.0, 2.0, 0.0], [1, 1, 0, 0], 2.5),  # equal scores stay together
        ([1.0, 1.0], [1, 0], 0.0),
    ],
)
def test_best_cut(scores: list[float], target: list[int], cut: float) -> None:
    assert best_cut(np.array(scores), np.array(target)) == cut
