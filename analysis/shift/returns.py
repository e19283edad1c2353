"""What deviations per turn allow a return to differ by, beside what it does differ by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duologue.analysis.shift.variation import VariationCurve
from duologue.trainers.stats import Estimate


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a gap between returns. They are estimates from below, since the deviations are."""

    linear: Estimate
    """R_max * (D_0 + sum_i d_i): for a reward at the last turn only, as here. Its limits are sums too."""
    quadratic: Estimate
    """R_max * (H D_0 + sum_i (H - i) d_i), i = 0..H-1: for a reward of up to R_max on every turn."""
    gap: Estimate
    """Mean score of the one side less that of the other."""

    @property
    def held(self) -> bool:
        """True if the gap is within the linear bound. If not, the labels miss a deviation that matters."""
        return abs(self.gap.value) <= self.linear.value

    @property
    def looseness(self) -> float | None:
        """How many times the gap the linear bound is; None if there is no gap."""
        return self.linear.value / abs(self.gap.value) if self.gap.value else None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        numbers = {name: getattr(self, name).to_json() for name in ("linear", "quadratic", "gap")}
        return {**numbers, "held": self.held, "looseness": self.looseness}


def bounds(deviations: Sequence[VariationCurve], opening: Estimate, gap: Estimate, reward_range: float = 1.0) -> Bounds:
    """Return the bounds that deviations give, with the gap that they bound.

    Histories of two systems whose openings differ by D_0 and whose turns by d_i (total variation, on the way) differ by
    at most D_0 and the sum of d_i up to a turn. So a final reward differs by R_max times the whole sum in the mean, and
    a reward on every turn by R_max * (H D_0 + sum_i (H - i) d_i).

    Args:
        deviations: of policies, of users, or of both; all of H turns, i = 0..H-1.
        opening: D_0, the total variation of the contexts of turn 0, before anything was replied.
        gap: difference of the mean scores.
        reward_range: R_max, highest less lowest reward.
    """
    horizon = len(deviations[0].turns)
    turns = [(i, turn.estimate) for curve in deviations for i, turn in enumerate(curve.turns)]
    return Bounds(
        linear=_weighted([(reward_range, d) for d in (opening, *(d for _, d in turns))]),
        quadratic=_weighted(
            [(reward_range * horizon, opening), *((reward_range * (horizon - i), d) for i, d in turns)]
        ),
        gap=gap,
    )


def _weighted(terms: Sequence[tuple[float, Estimate]]) -> Estimate:
    value, low, high = (sum(w * getattr(e, name) for w, e in terms) for name in ("value", "low", "high"))
    return Estimate(value, low, high, max(e.n for _, e in terms))
