"""Agreement of two labellings: values worked out by hand and by scikit-learn, and chance."""

import math

import numpy as np
import pytest

from duologue.analysis.acts.agreement import Agreement, Labelled, act_agreement
from duologue.errors import DuologueError
from duologue.trainers import stats
from duologue.types import Act

ASK, THANK, OPEN = frozenset({Act.ASK}), frozenset({Act.THANK}), frozenset({Act.OPEN})
NONE: frozenset[Act] = frozenset()


def test_values_worked_out_by_hand() -> None:
    pairs = [(ASK, ASK)] * 20 + [(NONE, ASK)] * 5 + [(ASK, NONE)] * 10 + [(NONE, NONE)] * 15
    found = act_agreement([Labelled(f"d{i % 10}", truth, said) for i, (truth, said) in enumerate(pairs)])["ask"]
    assert (found.labelled, found.found) == (30, 25)
    assert found.precision.value == pytest.approx(20 / 25)
    assert found.recall.value == pytest.approx(20 / 30)
    assert found.f1.value == pytest.approx(40 / 55)
    assert found.kappa.value == pytest.approx(0.4)  # the example of Cohen's kappa in most textbooks
    assert found.kappa.n == 10
    assert found.kappa.low < 0.4 < found.kappa.high


def test_the_average_leaves_the_first_turn_out() -> None:
    turns = [Labelled("a", OPEN | ASK, OPEN | ASK), Labelled("a", THANK, NONE), Labelled("b", NONE, ASK)]
    found = act_agreement(turns)
    assert list(found) == [*(act.value for act in Act), "all"]
    assert found["all"].labelled == 2
    assert found["all"].f1.value == pytest.approx(0.5)
    assert found["open"].f1.value == 1.0


def test_what_is_not_defined_is_not_a_number() -> None:
    found = act_agreement([Labelled("a", ASK, ASK), Labelled("b", ASK, ASK)])
    assert math.isnan(found["thank"].f1.value)
    assert math.isnan(found["ask"].kappa.value)
    assert found["thank"].to_json()["f1"] == {"value": None, "low": None, "high": None, "n": 2}
    with pytest.raises(DuologueError, match="at least one"):
        act_agreement([])


def drawn(seed: int, rate: float, copied: float) -> Agreement:
    """Agreement where the second labelling copies the first with this chance and else draws at the same rate."""
    rng = np.random.default_rng(seed)
    truth, other, copies = rng.random(400) < rate, rng.random(400) < rate, rng.random(400) < copied
    said = np.where(copies, truth, other)
    turns = [
        Labelled(f"d{i % 80}", ASK if t else NONE, ASK if s else NONE)
        for i, (t, s) in enumerate(zip(truth, said, strict=True))
    ]
    return act_agreement(turns)["ask"]


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("copied", [0.0, 0.6])
def test_kappa_is_the_share_that_is_not_chance(rate: float, copied: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "RESAMPLES", 400)
    found = [drawn(seed, rate, copied) for seed in range(10)]
    assert np.mean([one.kappa.value for one in found]) == pytest.approx(copied, abs=0.06)
    assert sum(one.kappa.low <= copied <= one.kappa.high for one in found) >= 8


def test_the_same_as_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    rng = np.random.default_rng(5)
    truth, said = rng.random(60) < 0.4, rng.random(60) < 0.5
    pairs = zip(truth, said, strict=True)
    found = act_agreement(
        [Labelled(f"d{i % 7}", ASK if t else NONE, ASK if s else NONE) for i, (t, s) in enumerate(pairs)]
    )["ask"]
    assert found.kappa.value == pytest.approx(metrics.cohen_kappa_score(truth, said))
    assert found.f1.value == pytest.approx(metrics.f1_score(truth, said))
