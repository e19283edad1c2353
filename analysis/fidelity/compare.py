"""From what speakers said to the table's rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duologue.analysis.fidelity import diversity
from duologue.analysis.fidelity.config import PEOPLE
from duologue.analysis.fidelity.counting import RESAMPLES, Distance, distance_of, mean_of, swap_test, tabulate
from duologue.analysis.fidelity.diversity import LeftOut
from duologue.analysis.fidelity.measures import Measure, Mode
from duologue.analysis.fidelity.report import Cell, Row, corrected
from duologue.analysis.fidelity.telling import Telling, tell_apart
from duologue.analysis.fidelity.turns import Talk
from duologue.trainers.stats import Estimate

TELLING = Measure(
    "told from people (AUC)",
    "telling apart",
    "0.5 to 1",
    "A classifier of turns, cross-validated by dialogue; 0.5 = cannot be told from people.",
    direction="lower",
)


@dataclass(frozen=True, slots=True)
class Column:
    """What one speaker said in one mode, and people to test it against."""

    talks: Sequence[Talk]
    people: Sequence[Talk]
    """At the same histories and in the same order if ``paired``."""
    paired: bool = False


def rows_of(
    columns: Mapping[Mode, Mapping[str, Column]],
    reference: Mapping[Mode, Sequence[Talk]],
    measures: Sequence[Measure],
    seed: int = 0,
) -> list[Row]:
    """Return the rows of all modes with corrected tests.

    Args:
        columns: by mode and name.
        reference: by mode, the people that every column's distance is taken from.
        measures: the rows to take.
        seed: of resamples and swaps.
    """
    rows: list[Row] = []
    for mode, speakers in columns.items():
        for measure in (m for m in measures if mode in m.modes):
            taken = _Taken(measure)
            cells = {n: _cell(measure, column, reference[mode], taken, seed) for n, column in speakers.items()}
            rows.append(Row(mode, measure, cells))
        rows.append(Row(mode, TELLING, {n: _told(column, seed) for n, column in speakers.items()}))
    return corrected(rows)


def columns_of_people(talks: Sequence[Talk], reference: Sequence[Talk]) -> dict[str, Column]:
    """Return the column of held-out people, tested against the others."""
    return {PEOPLE: Column(talks, reference)}


class _Taken:
    """What a measure made of each list of talks; people's are asked for by every column."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._counts: dict[int, list[Counter[float]]] = {}
        self._whole: dict[int, LeftOut] = {}

    def counts(self, talks: Sequence[Talk]) -> list[Counter[float]]:
        assert self.measure.count is not None
        if id(talks) not in self._counts:
            self._counts[id(talks)] = [self.measure.count(talk) for talk in talks]
        return self._counts[id(talks)]

    def whole(self, talks: Sequence[Talk]) -> LeftOut:
        assert self.measure.statistic is not None
        if id(talks) not in self._whole:
            self._whole[id(talks)] = self.measure.statistic.take(talks)
        return self._whole[id(talks)]


def _cell(measure: Measure, column: Column, reference: Sequence[Talk], taken: _Taken, seed: int) -> Cell:
    sides = (column.talks, column.people, reference)
    if measure.statistic is not None:
        one, base = taken.whole(column.talks), taken.whole(reference)
        p = measure.statistic.swap_test(column.talks, column.people, paired=column.paired, seed=seed)
        return Cell(diversity.estimate(one), diversity.distance(one, base, seed), p)
    values, (said, beside, people) = tabulate(*map(taken.counts, sides))
    value = mean_of(values, said, seed)
    if measure.distance is None:
        return Cell(value)
    far = distance_of(measure.distance, values, said, people, seed)
    return Cell(value, far, swap_test(measure.distance, values, said, beside, paired=column.paired, seed=seed))


def _told(column: Column, seed: int) -> Cell:
    told = tell_apart(column.talks, column.people, paired=column.paired, seed=seed)
    return Cell(told.auc, _from_chance(told), told.p)


def _from_chance(told: Telling) -> Distance:
    """Return how far an AUC is above 0.5, as a share of what can be."""
    value, low, high = (float(np.clip(2 * x - 1, 0, 1)) for x in (told.auc.value, told.auc.low, told.auc.high))
    far = Estimate(value, low, high, told.auc.n if not math.isnan(value) else 0)
    return Distance(far, far, np.clip(2 * np.resize(told.draws, RESAMPLES) - 1, 0, 1))
