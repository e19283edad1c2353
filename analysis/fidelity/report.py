"""What a measurement of fidelity found, as numbers that carry their n, interval and test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from duologue.analysis.fidelity.config import PEOPLE
from duologue.analysis.fidelity.counting import Array, Distance, holm, interval
from duologue.analysis.fidelity.measures import MODES, Measure, Mode
from duologue.trainers.stats import Estimate

FEWEST = 5
"""Dialogues with a chance that a row needs, on both sides, to count in the score."""
LEVEL = 0.05
"""Chance of any false flag in a user's column, at most (Holm's correction over its rows)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one speaker."""

    value: Estimate
    distance: Distance | None = None
    """From the people that all columns are compared with; None = not compared."""
    p: float = math.nan
    """Of "the same as people", uncorrected; NaN = not tested."""
    corrected: float = math.nan
    """The same, corrected for the rows of the column."""

    @property
    def differs(self) -> bool:
        """Return True if the speaker differs from people beyond chance."""
        return self.corrected < LEVEL

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; NaN becomes null."""
        far = self.distance and {"raw": self.distance.raw.to_json(), "share": self.distance.share.to_json()}
        p_values = {name: _number(getattr(self, name)) for name in ("p", "corrected")}
        return {"value": self.value.to_json(), "distance": far, **p_values, "differs": self.differs}


@dataclass(slots=True)
class Row:
    """One measure in one mode, a cell per column."""

    mode: Mode
    measure: Measure
    cells: dict[str, Cell] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        names = ("name", "block", "unit", "definition", "direction")
        about = {name: getattr(self.measure, name) for name in names}
        return {"mode": self.mode, **about, "cells": {name: cell.to_json() for name, cell in self.cells.items()}}


@dataclass(slots=True)
class FidelityReport:
    """The whole table."""

    signature: str
    about: dict[str, Any]
    """Counts of dialogues and turns, and each user's signature and failures."""
    rows: list[Row]
    foretold: dict[str, dict[str, Any] | None]
    """Held-out NLL by user; None = the user has no probabilities."""

    @property
    def columns(self) -> list[str]:
        """Return the names of the speakers, people first."""
        return list(self.rows[0].cells)

    def score(self, column: str, mode: Mode = "replayed") -> Estimate:
        """Return how close to people a speaker is: 1 = as close as other people are, 0 = as far as can be.

        Per row, the excess of the distance over the people's own: (d - f) / (1 - f), at least 0. The score is 1 minus
        the mean excess of each block, averaged over blocks; rows with a chance in fewer than ``FEWEST`` dialogues do
        not count. The interval resamples dialogues.
        """
        blocks: dict[str, list[tuple[float, Array]]] = {}
        for row in self._of(mode):
            cell, people = row.cells.get(column), row.cells.get(PEOPLE)
            if cell and people and cell.distance and people.distance:
                found = _excess(cell.distance, people.distance)
                if min(cell.distance.share.n, people.distance.share.n) >= FEWEST and not math.isnan(found[0]):
                    blocks.setdefault(row.measure.block, []).append(found)
        if not blocks:
            return Estimate(math.nan, math.nan, math.nan, 0)
        value = 1 - float(np.mean([np.mean([point for point, _ in rows]) for rows in blocks.values()]))
        draws = 1 - np.mean([np.mean([far for _, far in rows], axis=0) for rows in blocks.values()], axis=0)
        n = max(row.cells[column].value.n for row in self._of(mode) if column in row.cells)
        drawn = interval(value, draws, n)
        return replace(drawn, low=min(drawn.low, value), high=max(drawn.high, value))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        scores = {mode: {name: self.score(name, mode).to_json() for name in self.columns} for mode in MODES}
        rows = [row.to_json() for row in self.rows]
        return {"signature": self.signature, **self.about, "score": scores, "rows": rows, "nll": self.foretold}

    def _of(self, mode: Mode) -> Iterator[Row]:
        return (row for row in self.rows if row.mode == mode)


def corrected(rows: list[Row]) -> list[Row]:
    """Fill in the corrected p-values: a column's rows of both modes are one family."""
    for name in {name for row in rows for name in row.cells}:
        family = [row for row in rows if name in row.cells]
        for row, p in zip(family, holm([row.cells[name].p for row in family]), strict=True):
            row.cells[name] = replace(row.cells[name], corrected=p)
    return rows


def distances_by_mode(report: FidelityReport) -> Mapping[Mode, list[Row]]:
    """Return the rows that are compared, by mode."""
    rows = [row for row in report.rows if any(cell.distance for cell in row.cells.values())]
    return {mode: [row for row in rows if row.mode == mode] for mode in MODES}


def _excess(far: Distance, floor: Distance) -> tuple[float, Array]:
    draws, floors = _filled(far), _filled(floor)
    floors = np.resize(floors, draws.shape) if len(floors) != len(draws) else floors
    return float(_over(np.array(far.share.value), np.array(floor.share.value))), _over(draws, floors)


def _over(far: Array, floor: Array) -> Array:
    room = np.maximum(1 - floor, 1e-9)
    return np.asarray(np.clip((far - floor) / room, 0.0, 1.0))


def _filled(distance: Distance) -> Array:
    """Return the draws; where a resample had nothing to compare, the estimate."""
    return np.where(np.isfinite(distance.draws), distance.draws, distance.share.value)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
