from collections.abc import Sequence

import pytest

from duologue.errors import DuologueError
from duologue.rewards import BleuReward, ExactMatch, ScoredInParts, WeightedSum, score
from duologue.types import Dialogue, Task

BATCH = [Dialogue(Task(str(i), "q", "12"), seed=i) for i in range(3)]


class Fixed:
    """Returns what it was made with."""

    def __init__(self, *scores: float | None) -> None:
        self.scores = scores
        self.calls = 0

    def __call__(self, dialogues: Sequence[Dialogue], /) -> list[float | None]:
        self.calls += 1
        return list(self.scores)


def test_weighted_total_and_parts() -> None:
    one, two = Fixed(1.0, 0.0, 1.0), Fixed(0.5, 0.5, 0.0)
    reward = WeightedSum({"one": (one, 2.0), "two": (two, -1.0)})
    assert isinstance(reward, ScoredInParts)
    assert reward(BATCH) == [1.5, -0.5, 2.0]
    assert (one.calls, two.calls) == (1, 1)
    assert score(reward, BATCH)[0].parts == {"one": 1.0, "two": 0.5}


def test_none_is_not_zero() -> None:
    parts = {"one": (Fixed(1.0, None, 1.0), 1.0), "logged": (Fixed(None, 1.0, 1.0), 0.0)}
    reward = WeightedSum(parts)
    assert reward(BATCH) == [1.0, None, 1.0]
    assert reward.score(BATCH)[0].parts == {"one": 1.0, "logged": None}


def test_gate_silences_shaping_where_the_outcome_failed() -> None:
    outcome, shaping = Fixed(1.0, 0.0, None), Fixed(0.3, 0.9, 0.9)
    reward = WeightedSum({"shaping": (shaping, 1.0), "outcome": (outcome, 1.0)}, gate="outcome")
    assert reward(BATCH) == [1.3, 0.0, None]
    assert reward.score(BATCH)[1].parts["shaping"] == 0.9


def test_a_shut_gate_needs_no_shaping_score() -> None:
    reward = WeightedSum({"a": (Fixed(0.0, 1.0, 1.0), 1.0), "b": (Fixed(None, None, 1.0), 1.0)}, gate="a")
    assert reward(BATCH) == [0.0, None, 2.0]


def test_an_unscored_gate_of_weight_0_leaves_the_total_unscored() -> None:
    reward = WeightedSum({"a": (Fixed(None, 1.0, 0.0), 0.0), "b": (Fixed(0.5, 0.5, 0.5), 1.0)}, gate="a")
    assert reward(BATCH) == [None, 0.5, 0.0]


def test_sums_nest() -> None:
    inner = WeightedSum({"x": (Fixed(1.0, 2.0, 3.0), 1.0)})
    outer = WeightedSum({"in": (inner, 0.5)})
    assert outer.score(BATCH)[1].value == 1.0
    assert outer.score(BATCH)[1].parts == {"in": 2.0, "in/x": 2.0}


def test_signature_holds_the_formula() -> None:
    reward = WeightedSum({"answer": (ExactMatch(), 1.0), "text": (BleuReward(), 0.25)}, gate="answer")
    assert reward.signature.startswith("sum[1*answer(exact_match|")
    assert "+0.25*text(bleu|" in reward.signature
    assert reward.signature.endswith("|gate:answer")


def test_mistakes_end_with_the_fix() -> None:
    with pytest.raises(DuologueError, match="needs parts"):
        WeightedSum({})
    with pytest.raises(DuologueError, match="Did you mean 'outcome'"):
        WeightedSum({"outcome": (Fixed(), 1.0)}, gate="outcom")
    with pytest.raises(DuologueError, match="Give a finite number"):
        WeightedSum({"outcome": (Fixed(), float("nan"))})
    with pytest.raises(DuologueError, match="exactly one score"):
        WeightedSum({"outcome": (Fixed(1.0), 1.0)})(BATCH)
