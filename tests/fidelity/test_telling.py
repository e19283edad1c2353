"""The classifier test: its AUC, and how often it alarms when there is nothing to tell apart."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from duologue.analysis.fidelity import telling
from duologue.analysis.fidelity.counting import Array
from duologue.analysis.fidelity.telling import classifier_test, features, tell_apart
from duologue.analysis.fidelity.turns import Talk, Turn
from duologue.errors import MissingExtraError
from duologue.types import Task

TASK = Task("t", "How many?", "5")
WORDS = ["how", "many", "apples", "are", "left", "then", "what", "is", "next", "does", "it", "go", "on", "maybe"]


def talks(rng: np.random.Generator, count: int, name: str, extra: str = "") -> list[Talk]:
    made = []
    for i in range(count):
        texts = [" ".join([*rng.choice(WORDS, 6), *([extra] if extra else [])]) for _ in range(3)]
        made.append(Talk(f"{name}{i}", tuple(Turn("MathChat-v0", TASK, (), text) for text in texts)))
    return made


def numbers(
    rng: np.random.Generator, dialogues: int, shift: float, *, paired: bool
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Three features of three turns a dialogue and side; dialogues differ, sides by ``shift``."""
    topics = rng.normal(size=(dialogues if paired else 2 * dialogues, 3))
    sides = np.repeat([1, 0], 3 * dialogues)
    groups = np.tile(np.repeat(np.arange(dialogues), 3), 2) + (0 if paired else dialogues * (1 - sides))
    matrix = topics[groups] + rng.normal(size=(6 * dialogues, 3))
    matrix[:, 0] += shift * sides
    return matrix, sides, groups


def test_auc_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 5, 40).astype(float), rng.integers(0, 2, 40)
    weights = rng.integers(0, 3, 40).astype(float)
    (found,) = telling._aucs(scores, labels[None].astype(float), weights[None])
    assert found == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights))


def test_a_habit_is_told_apart() -> None:
    rng = np.random.default_rng(1)
    found = tell_apart(talks(rng, 20, "u", "lol"), talks(rng, 20, "p"), paired=True)
    assert found.auc.value > 0.95
    assert found.auc.low > 0.9
    assert found.p == pytest.approx(1 / 2000)


@pytest.mark.parametrize("paired", [True, False])
def test_no_difference_is_not_told_apart(paired: bool) -> None:
    rng = np.random.default_rng(2)
    found = tell_apart(talks(rng, 30, "u"), talks(rng, 30, "p"), paired=paired)
    assert found.auc.low < 0.5 < found.auc.high
    assert found.p > 0.05


def test_topics_that_both_share_are_not_learned() -> None:
    """Each dialogue has a word of its own, which both sides say: were they split, it would give the side away."""
    rng = np.random.default_rng(3)
    user = [talks(rng, 1, "u", extra=f"topic{i}")[0] for i in range(20)]
    people = [talks(rng, 1, "p", extra=f"topic{i}")[0] for i in range(20)]
    assert tell_apart(user, people, paired=True).p > 0.05


def test_too_few_dialogues_give_no_number() -> None:
    rng = np.random.default_rng(4)
    found = tell_apart(talks(rng, 3, "u"), talks(rng, 3, "p"), paired=False)
    assert math.isnan(found.auc.value)
    assert math.isnan(found.p)


def test_any_texts_have_features() -> None:
    assert features(["?", "..."]).shape == (2, 6)
    assert features(["Hi there.", "", "2 + 2"]).shape[0] == 3


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"duologue\[fidelity\]"):
        tell_apart([], [], paired=False)


def towards_the_mean(matrix: Array, labels: NDArray[np.intp], others: Array) -> Array:
    """A classifier that takes no time: along the line between the classes' means."""
    means = [matrix[labels == side].mean(axis=0) for side in (0, 1)]
    return np.asarray(others @ (means[1] - means[0]))


@pytest.mark.parametrize("paired", [True, False])
def test_nothing_to_tell_apart_alarms_at_the_nominal_rate(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SWAPS", 99)
    monkeypatch.setattr(telling, "_RESAMPLES", 10)
    rng = np.random.default_rng(5)

    def p_value(shift: float, seed: int) -> float:
        return classifier_test(*numbers(rng, 20, shift, paired=paired), seed, towards_the_mean).p

    assert 0.02 <= np.mean([p_value(0.0, i) < 0.05 for i in range(600)]) <= 0.08
    assert np.mean([p_value(3.0, i) < 0.05 for i in range(30)]) >= 0.9
