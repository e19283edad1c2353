"""Measures of a whole sample: how many different words it has, how much its turns resemble each other.

Resampling with replacement repeats dialogues and so lowers diversity. The jackknife (Tukey 1958) leaves one out at a
time instead, which repeats nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from duologue.analysis.fidelity.counting import RESAMPLES, Array, Distance
from duologue.analysis.fidelity.turns import Talk
from duologue.simulators._text import words
from duologue.trainers.stats import Estimate, Z

TOKENS = 200
"""Words (or pairs of words) at which samples of any size are compared."""
SAMPLED = 40
"""Dialogues of which one turn each is compared with one turn of each other."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A statistic, and what it is without each dialogue."""

    value: float
    without: Array


Statistic = Callable[[Sequence[Talk]], LeftOut]


def distinct(n: int) -> Statistic:
    """Return the share of different n-grams among ``TOKENS`` of them drawn from the sample, in expectation.

    Rarefaction (Hurlbert 1971): no draw is made, and samples of any size compare. N-grams do not cross turns.
    """

    def measure(talks: Sequence[Talk]) -> LeftOut:
        rows = [Counter(_grams(talk.texts, n)) for talk in talks]
        index = {gram: i for i, gram in enumerate(sorted({gram for row in rows for gram in row}))}
        table = np.zeros((len(rows), len(index)), dtype=np.intp)
        for i, row in enumerate(rows):
            table[i, [index[gram] for gram in row]] = list(row.values())
        total = table.sum(axis=0)
        return LeftOut(rarefied(total), np.array([rarefied(total - row) for row in table]))

    return measure


def rarefied(counts: NDArray[np.intp], size: int = TOKENS) -> float:
    """Return the expected share of different items among ``size`` drawn without replacement; NaN if there are fewer."""
    n = int(counts.sum())
    if n < size:
        return math.nan
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    left = n - counts
    fits = left >= size
    missing = log_factorial[left[fits]] - log_factorial[left[fits] - size] - log_factorial[n] + log_factorial[n - size]
    return float((len(counts) - np.exp(missing).sum()) / size)


def pairwise_bleu(seed: int = 0) -> Statistic:
    """Return the mean BLEU of one turn against another of another dialogue, in [0, 1] (self-BLEU in pairs).

    One seeded turn of each of up to ``SAMPLED`` seeded dialogues; sentence BLEU of sacreBLEU with effective order.
    """

    def measure(talks: Sequence[Talk]) -> LeftOut:
        spoken = sorted((t for t in talks if t.texts), key=lambda t: _place(seed, t.dialogue_id))[:SAMPLED]
        texts = [talk.texts[_place(seed, talk.dialogue_id) % len(talk.texts)] for talk in spoken]
        m = len(texts)
        if m < 3:
            return LeftOut(math.nan, np.full(len(talks), math.nan))
        scores = _scores(texts)
        total, own = scores.sum(), scores.sum(axis=0) + scores.sum(axis=1)
        value, without = total / (m * (m - 1)), (total - own) / ((m - 1) * (m - 2))
        found = {talk.dialogue_id: float(rest) for talk, rest in zip(spoken, without, strict=True)}
        return LeftOut(float(value), np.array([found[t.dialogue_id] for t in talks if t.dialogue_id in found]))

    return measure


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


def difference_test(one: LeftOut, other: LeftOut, *, paired: bool) -> float:
    """Return the two-sided p-value of "both samples have the same", by the jackknife's error and a normal law."""
    if paired and len(one.without) == len(other.without):
        error = _error(one.without - other.without)
    else:
        error = math.hypot(_error(one.without), _error(other.without))
    gap = one.value - other.value
    if math.isnan(gap) or math.isnan(error):
        return math.nan
    if error < 1e-12:
        return 1.0 if abs(gap) < 1e-12 else 0.0
    return math.erfc(abs(gap) / error / math.sqrt(2))


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
