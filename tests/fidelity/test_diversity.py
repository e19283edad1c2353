"""Distinct n-grams and pairwise BLEU: worked out by hand, against draws, and under the null."""

import math

import numpy as np
import pytest

from duologue.analysis.fidelity import diversity
from duologue.analysis.fidelity.diversity import Distinct, LeftOut, PairwiseBleu, estimate, rarefied
from duologue.analysis.fidelity.turns import Talk, Turn
from duologue.types import Task

TASK = Task("t", "How many?", "5")


def talk_of(name: str, *texts: str) -> Talk:
    return Talk(name, tuple(Turn("MathChat-v0", TASK, (), text) for text in texts))


def random_talks(rng: np.random.Generator, count: int, vocabulary: int, words: int = 20) -> list[Talk]:
    """Each dialogue has favourite words of its own, so that its words are not independent."""
    talks = []
    for i in range(count):
        favourites = rng.integers(vocabulary, size=words)
        letters = ["".join(chr(97 + int(d)) for d in str(rng.choice(favourites))) for _ in range(words)]
        talks.append(talk_of(f"d{i}", " ".join(letters)))
    return talks


def test_rarefaction_is_the_mean_of_draws() -> None:
    counts = np.array([5, 3, 1, 1])
    items, rng = np.repeat(np.arange(4), counts), np.random.default_rng(0)
    drawn = [len(set(rng.choice(items, 4, replace=False))) / 4 for _ in range(20_000)]
    rows = np.stack([counts, 2 * counts]).astype(float)
    assert rarefied(rows, 4)[0] == pytest.approx(float(np.mean(drawn)), abs=0.005)
    assert rarefied(rows, 10)[0] == pytest.approx(4 / 10)
    assert list(np.isnan(rarefied(rows, 11))) == [True, False]


def test_samples_of_any_size_compare() -> None:
    size = 50
    rng = np.random.default_rng(1)
    small, large = (estimate(Distinct(1, size).take(random_talks(rng, n, 60))) for n in (20, 200))
    assert small.low <= large.value <= small.high
    assert large.high - large.low < small.high - small.low


def test_word_pairs_do_not_cross_turns() -> None:
    size = 2
    assert Distinct(2, size).take([talk_of("d", "a b", "a b")]).value == 0.5
    assert math.isnan(Distinct(2, size).take([talk_of("d", "a", "b c")]).value)


def test_pairwise_bleu_of_equal_and_of_different_turns() -> None:
    same = [talk_of(f"d{i}", "I do not think that is right") for i in range(5)]
    assert estimate(PairwiseBleu().take(same)).value == pytest.approx(1.0)
    other = [talk_of(f"d{i}", " ".join(f"{c}{i}" for c in "abcdef")) for i in range(5)]
    assert PairwiseBleu().take(other).value < 0.05
    assert math.isnan(PairwiseBleu().take(same[:2]).value)


def test_leaving_out_is_leaving_out() -> None:
    talks = [talk_of(f"d{i}", text) for i, text in enumerate(("a b c d", "a b c e", "x y z d", "a b x y"))]
    found = PairwiseBleu().take(talks)
    again = [PairwiseBleu().take(talks[:i] + talks[i + 1 :]).value for i in range(4)]
    assert sorted(found.without) == pytest.approx(sorted(again))


@pytest.mark.parametrize("paired", [True, False])
def test_equal_diversity_alarms_at_the_nominal_rate(paired: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "SWAPS", 99)
    rng, alarms = np.random.default_rng(2), []
    for i in range(500):
        one, other = (random_talks(rng, 12, 80, words=12) for _ in range(2))
        alarms.append(Distinct(1, 80).swap_test(one, other, paired=paired, seed=i) < 0.05)
    assert 0.02 <= np.mean(alarms) <= 0.08


@pytest.mark.slow
def test_equal_likeness_alarms_at_the_nominal_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "SWAPS", 99)
    rng, alarms = np.random.default_rng(3), []
    for i in range(500):
        one, other = (random_talks(rng, 6, 30, words=5) for _ in range(2))
        alarms.append(PairwiseBleu().swap_test(one, other, paired=i % 2 == 0, seed=i) < 0.05)
    assert 0.015 <= np.mean(alarms) <= 0.08


def test_other_diversity_is_found() -> None:
    rng = np.random.default_rng(3)
    one, other = (random_talks(rng, 40, size) for size in (20, 200))
    few, many = (Distinct(1, 100).take(talks) for talks in (one, other))
    assert Distinct(1, 100).swap_test(one, other, paired=False, seed=0) < 0.01
    far = diversity.distance(few, many)
    assert far.share.low > 0
    assert far.draws.mean() == pytest.approx(far.share.value, abs=0.02)
    same = [talk_of(f"d{i}", "I do not think that is right") for i in range(12)]
    assert PairwiseBleu().swap_test(same, one[:12], paired=False, seed=0) < 0.01


def test_too_small_samples_are_not_tested() -> None:
    few = [talk_of("a", "x y"), talk_of("b", "x z")]
    assert math.isnan(Distinct(1, 100).swap_test(few, few, paired=True, seed=0))
    assert math.isnan(PairwiseBleu().swap_test(few, few, paired=True, seed=0))
    flat, none = LeftOut(0.5, np.full(4, 0.5)), LeftOut(math.nan, np.full(4, math.nan))
    assert diversity.distance(flat, none).share.n == 0
