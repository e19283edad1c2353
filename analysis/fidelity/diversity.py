"""Measures of a whole sample: how many different words it has, how much its turns resemble each other.

Resampling with replacement repeats dialogues and so lowers diversity. The jackknife (Tukey 1958) leaves one out at a
time instead, which repeats nothing; its intervals are a little too wide. Tests swap dialogues, and are exact.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

import numpy as np

from duologue.analysis.fidelity.counting import RESAMPLES, Array, Distance, p_value, swapped
from duologue.analysis.fidelity.turns import Talk
from duologue.simulators._text import words
from duologue.trainers.stats import Estimate, Z

TOKENS = 200
"""Words (or pairs of words) at which samples of any size are compared."""
SWAPS = 1999
SAMPLED = 30
"""Dialogues of which one turn each is compared with one turn of each other."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A statistic, and what it is without each dialogue."""

    value: float
    without: Array


class Statistic(Protocol):
    """A measure of a whole sample."""

    def take(self, talks: Sequence[Talk]) -> LeftOut:
        """Return it for a sample; NaN if the sample is too small."""
        ...

    def swap_test(self, one: Sequence[Talk], other: Sequence[Talk], *, paired: bool, seed: int) -> float:
        """Return the p-value of "both samples have the same": dialogues change sides at random."""
        ...


@dataclass(frozen=True, slots=True)
class Distinct:
    """The share of different n-grams among ``size`` of them drawn from the sample, in expectation.

    Rarefaction (Hurlbert 1971): no draw is made, and samples of any size compare. N-grams do not cross turns.
    """

    n: int
    size: int = TOKENS

    def take(self, talks: Sequence[Talk]) -> LeftOut:
        """Return it, and what it is without each dialogue."""
        table = self._table(talks)
        total = table.sum(axis=0, keepdims=True)
        return LeftOut(float(rarefied(total, self.size)[0]), rarefied(total - table, self.size))

    def swap_test(self, one: Sequence[Talk], other: Sequence[Talk], *, paired: bool, seed: int) -> float:
        """Return the p-value of "both samples have the same"."""
        table = self._table([*one, *other])
        sides = swapped(len(one), len(other), SWAPS, paired=paired, seed=seed)
        first = np.arange(len(table)) < len(one)
        left = np.concatenate([first[None].astype(float), sides]) @ table
        gaps = np.abs(rarefied(left, self.size) - rarefied(table.sum(axis=0) - left, self.size))
        return math.nan if math.isnan(gaps[0]) else p_value(float(gaps[0]), gaps[1:])

    def _table(self, talks: Sequence[Talk]) -> Array:
        rows = [Counter(_grams(talk.texts, self.n)) for talk in talks]
        index = {gram: i for i, gram in enumerate(sorted({gram for row in rows for gram in row}))}
        table = np.zeros((len(rows), len(index)))
        for i, row in enumerate(rows):
            table[i, [index[gram] for gram in row]] = list(row.values())
        return table


def rarefied(counts: Array, size: int) -> Array:
    """Return the expected share of different items among ``size`` drawn without replacement, for each row of counts.

    NaN for rows with fewer items.
    """
    totals = counts.sum(axis=1).astype(np.intp)
    highest = int(totals.max(initial=0))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, highest + 1)))])
    left = totals[:, None] - counts.astype(np.intp)
    fits, enough = left >= size, totals >= size
    whole = log_factorial[totals] - log_factorial[np.maximum(totals - size, 0)]
    log_missed = log_factorial[left] - log_factorial[np.maximum(left - size, 0)] - whole[:, None]
    missed = np.where(fits, np.exp(np.minimum(log_missed, 0.0)), 0.0).sum(axis=1)
    return np.where(enough, (counts.shape[1] - missed) / size, np.nan)


@dataclass(frozen=True, slots=True)
class PairwiseBleu:
    """The mean BLEU of one turn against another of another dialogue, in [0, 1] (self-BLEU in pairs).

    One seeded turn of each of up to ``SAMPLED`` seeded dialogues; sentence BLEU of sacreBLEU with effective order.
    """

    seed: int = 0

    def take(self, talks: Sequence[Talk]) -> LeftOut:
        """Return it, and what it is without each dialogue."""
        texts = self._sample(talks)
        m = len(texts)
        if m < 3:
            return LeftOut(math.nan, np.full(m, math.nan))
        scores = _scores(texts)
        total, own = scores.sum(), scores.sum(axis=0) + scores.sum(axis=1)
        return LeftOut(float(total / (m * (m - 1))), (total - own) / ((m - 1) * (m - 2)))

    def swap_test(self, one: Sequence[Talk], other: Sequence[Talk], *, paired: bool, seed: int) -> float:
        """Return the p-value of "both samples have the same"."""
        texts, others = self._sample(one), self._sample(other)
        m, k = len(texts), len(others)
        if min(m, k) < 3:
            return math.nan
        scores = _scores([*texts, *others])
        first = (np.arange(m + k) < m).astype(float)
        sides = np.concatenate([first[None], swapped(m, k, SWAPS, paired=paired and m == k, seed=seed)])
        gaps = np.abs(_within(scores, sides) / (m * (m - 1)) - _within(scores, 1 - sides) / (k * (k - 1)))
        return p_value(float(gaps[0]), gaps[1:])

    def _sample(self, talks: Sequence[Talk]) -> list[str]:
        spoken = sorted((t for t in talks if t.texts), key=lambda t: _place(self.seed, t.dialogue_id))[:SAMPLED]
        return [talk.texts[_place(self.seed, talk.dialogue_id) % len(talk.texts)] for talk in spoken]


def estimate(one: LeftOut) -> Estimate:
    """Return a statistic with its 95 % interval."""
    error = _error(one.without)
    if math.isnan(one.value) or math.isnan(error):
        return Estimate(one.value, math.nan, math.nan, 0 if math.isnan(one.value) else len(one.without))
    return Estimate(one.value, one.value - Z * error, one.value + Z * error, len(one.without))


def distance(one: LeftOut, people: LeftOut, seed: int = 0) -> Distance:
    """Return the absolute difference of two samples' statistics, with an interval and normal draws for the score."""
    gap = one.value - people.value
    error = math.hypot(_error(one.without), _error(people.without))
    near = np.abs(gap + error * np.random.default_rng(seed).standard_normal(RESAMPLES))
    low, high = max(0.0, abs(gap) - Z * error), min(1.0, abs(gap) + Z * error)
    n = 0 if math.isnan(gap) else min(len(one.without), len(people.without))
    found = Estimate(abs(gap), low if n else math.nan, high if n else math.nan, n)
    return Distance(found, found, np.clip(near, 0.0, 1.0))


def _error(without: Array) -> float:
    n = len(without)
    return float(np.sqrt((n - 1) * without.var())) if n > 1 else math.nan


def _grams(texts: Sequence[str], n: int) -> list[tuple[str, ...]]:
    said = [words(text) for text in texts]
    return [gram for turn in said for gram in (pairwise(turn) if n == 2 else ((word,) for word in turn))]


def _scores(texts: Sequence[str]) -> Array:
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(effective_order=True, lowercase=True)
    scores = [
        [0.0 if i == j else bleu.sentence_score(a, [b]).score for j, b in enumerate(texts)] for i, a in enumerate(texts)
    ]
    return np.array(scores) / 100


def _place(seed: int, name: str) -> int:
    return int.from_bytes(sha256(f"{seed}:{name}".encode()).digest()[:6], "big")


def _within(scores: Array, sides: Array) -> Array:
    """Return the sum of the scores of pairs that are both on the side, for each row of sides."""
    return np.asarray(((sides @ scores) * sides).sum(axis=1))
