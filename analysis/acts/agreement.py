"""How far two labellings of dialogue acts agree: precision, recall, F1 and Cohen's kappa, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.errors import DuologueError
from duologue.trainers.stats import Estimate, of_totals
from duologue.types import Act

_Table = NDArray[np.float64]
"""Counts, shape (N, 4): both say the act, only the second does, only the first does, neither."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One user turn with two labellings. Turns of one dialogue are resampled together."""

    dialogue_id: str
    truth: AbstractSet[Act]
    """What the first annotator says."""
    found: AbstractSet[Act]
    """What the second annotator, or the rules, say."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on one act. Each ``n`` counts dialogues; values that are not defined (0 / 0) are NaN."""

    labelled: int
    """Turns that the first labelling gives the act."""
    found: int
    """Turns that the second gives it."""
    precision: Estimate
    recall: Estimate
    f1: Estimate
    kappa: Estimate
    """Cohen's kappa (1960): agreement beyond chance, in [-1, 1]."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; NaN becomes null."""
        estimates = {name: getattr(self, name).to_json() for name in ("precision", "recall", "f1", "kappa")}
        return {"labelled": self.labelled, "found": self.found, **estimates}


def act_agreement(turns: Sequence[Labelled], seed: int = 0) -> Mapping[str, Agreement]:
    """Measure the agreement of two labellings of the same turns.

    Args:
        turns: of any number of dialogues.
        seed: of the resamples; intervals are bootstraps over dialogues.

    Returns:
        By act, then ``all``: every act but ``open`` together (micro-averaged). ``open`` only asks whether a turn is the
        first, which would flatter the average.

    Raises:
        DuologueError: if there are no turns.
    """
    if not turns:
        raise DuologueError("There is no labelled turn. Give act_agreement() at least one.")
    by_act = {act: _counts(turns, [act]) for act in Act}
    together = _counts(turns, [act for act in Act if act is not Act.OPEN])
    tables = {**{act.value: table for act, table in by_act.items()}, "all": together}
    return {name: _agreement(table, seed) for name, table in tables.items()}


def _counts(turns: Sequence[Labelled], acts: Sequence[Act]) -> _Table:
    """Return the counts of each dialogue, shape (dialogues, 4)."""
    rows = {turn.dialogue_id: np.zeros(4) for turn in turns}
    for turn in turns:
        for act in acts:
            rows[turn.dialogue_id][2 * (act not in turn.found) + (act not in turn.truth)] += 1
    return np.stack(list(rows.values()))


def _agreement(table: _Table, seed: int) -> Agreement:
    def estimate(statistic: Callable[[_Table], _Table]) -> Estimate:
        return of_totals(statistic, table.tolist(), seed)

    both, second, first, _ = table.sum(axis=0)
    return Agreement(
        labelled=int(both + first),
        found=int(both + second),
        precision=estimate(lambda t: t[:, 0] / (t[:, 0] + t[:, 1])),
        recall=estimate(lambda t: t[:, 0] / (t[:, 0] + t[:, 2])),
        f1=estimate(lambda t: 2 * t[:, 0] / (2 * t[:, 0] + t[:, 1] + t[:, 2])),
        kappa=estimate(_kappa),
    )


def _kappa(table: _Table) -> _Table:
    both, second, first, neither = table.T
    chance = (both + second) * (second + neither) + (both + first) * (first + neither)
    kappa: _Table = 2 * (both * neither - first * second) / chance
    return kappa
