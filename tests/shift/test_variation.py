"""Total variation of labels, against what can be worked out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.analysis.shift import total_variation, variation_curve
from duologue.analysis.shift import variation as module
from duologue.errors import DuologueError

Labels = st.lists(st.sampled_from("xyz"), min_size=2, max_size=8)


def drawn(p: list[float], n: int, rng: np.random.Generator) -> list[str]:
    return [str(x) for x in rng.choice(len(p), size=n, p=p)]


def test_plug_in_by_hand() -> None:
    found = total_variation(["x", "x", "y", "z"], ["x", "y"])
    assert found.plug_in == pytest.approx((0.5 - 0.5 + abs(0.25 - 0.5) + 0.25) / 2)
    assert found.estimate.n == 6
    assert found.estimate.low <= found.estimate.value <= found.estimate.high


def test_no_label_in_common_is_one() -> None:
    found = total_variation(["x"] * 40, ["y"] * 40)
    assert found.plug_in == 1.0
    assert found.estimate.value > 0.98
    assert found.p == pytest.approx(1 / (1 + module.RESAMPLES))


@given(Labels, Labels)
def test_sides_and_names_do_not_matter(a: list[str], b: list[str]) -> None:
    renamed = {"x": "q", "y": "a", "z": "m"}
    there, back = total_variation(a, b), total_variation(b, a)
    other = total_variation([renamed[x] for x in a], [renamed[x] for x in b])
    assert there.plug_in == pytest.approx(back.plug_in)
    assert there.plug_in == pytest.approx(other.plug_in)
    assert 0 <= there.estimate.low <= there.estimate.value <= there.estimate.high <= 1


def test_pairs_that_agree_show_nothing() -> None:
    labels = ["x", "y", "z", "x"] * 10
    found = total_variation(labels, labels, paired=True)
    assert (found.estimate.value, found.estimate.high, found.null, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_known_variation_is_found() -> None:
    """Over 40 repetitions: the mean error is below 0.02, and nearly all intervals hold the truth."""
    p, q, rng = [0.5, 0.3, 0.15, 0.05], [0.3, 0.25, 0.25, 0.2], np.random.default_rng(0)
    truth = float(np.abs(np.subtract(p, q)).sum() / 2)
    found = [total_variation(drawn(p, 200, rng), drawn(q, 200, rng), seed=i) for i in range(40)]
    assert abs(np.mean([f.estimate.value for f in found]) - truth) < 0.02
    assert np.mean([f.estimate.low <= truth <= f.estimate.high for f in found]) >= 0.88
    assert np.mean([f.plug_in for f in found]) > truth  # why it is corrected
    assert all(f.p < 0.05 for f in found)


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
def test_equal_distributions_are_refused_at_the_nominal_rate(monkeypatch: pytest.MonkeyPatch, paired: bool) -> None:
    """600 repetitions of three turns: 5 % within four standard errors, and the estimate stays near 0."""
    monkeypatch.setattr(module, "RESAMPLES", 199)
    rng, p = np.random.default_rng(1), [0.4, 0.3, 0.2, 0.1]

    def rows() -> list[list[str]]:
        return [drawn(p, 3, rng) for _ in range(80)]

    found = [variation_curve(rows(), rows(), paired=paired, seed=i) for i in range(600)]
    for rate in (np.mean([f.p <= 0.05 for f in found]), np.mean([f.turns[0].p <= 0.05 for f in found])):
        assert 0.05 - 4 * 0.0089 < rate < 0.05 + 4 * 0.0089
    assert np.mean([f.turns[0].estimate.value for f in found]) < 0.06
    assert np.mean([f.turns[0].estimate.low == 0 for f in found]) > 0.95


def test_a_curve_is_its_turns() -> None:
    rng = np.random.default_rng(2)
    a, b = ([drawn([0.6, 0.4], 2, rng) for _ in range(30)] for _ in range(2))
    curve = variation_curve(a, b)
    for turn, found in enumerate(curve.turns):
        assert found.plug_in == pytest.approx(total_variation([r[turn] for r in a], [r[turn] for r in b]).plug_in)
    assert variation_curve(a, b) == curve


def test_memory_is_bounded_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    draw = module._exchanges

    def counted(of: tuple[int, int], times: int, rng: np.random.Generator) -> Any:
        sizes.append(times)
        return draw(of, times, rng)

    monkeypatch.setattr(module, "_exchanges", counted)
    monkeypatch.setattr(module, "_DRAWS_AT_ONCE", 1_200)
    total_variation(["x"] * 2, ["y"] * 2)
    assert sizes == [300, 300, 300, 100]


@pytest.mark.parametrize(
    ("a", "b", "paired", "message"),
    [
        ([], [["x"]], False, "at least one of each"),
        ([["x"]], [["x", "y"]], False, "one label a turn"),
        ([[]], [[]], False, "one label a turn"),
        ([["x"]], [["x"], ["y"]], True, "paired=False"),
    ],
)
def test_what_cannot_be_compared_is_refused(a: Any, b: Any, paired: bool, message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        variation_curve(a, b, paired=paired)
