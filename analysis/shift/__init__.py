"""How far contexts of training are from those that a policy meets, turn by turn. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.analysis.shift.classifier import classifier_bound
    from duologue.analysis.shift.config import ShiftConfig
    from duologue.analysis.shift.deviation import mean_variation, pinsker_bound, policy_deviation, user_deviation
    from duologue.analysis.shift.likelihood import Reference, ReferenceModel
    from duologue.analysis.shift.measure import measure_shift
    from duologue.analysis.shift.pictures import arms_figure, shift_figure
    from duologue.analysis.shift.report import PairShift, ShiftReport
    from duologue.analysis.shift.returns import Bounds, bounds
    from duologue.analysis.shift.run import shift
    from duologue.analysis.shift.sampling import answers_on, replies_on
    from duologue.analysis.shift.variation import TotalVariation, VariationCurve, total_variation, variation_curve

_HOMES = {
    "Bounds": "returns",
    "PairShift": "report",
    "Reference": "likelihood",
    "ReferenceModel": "likelihood",
    "ShiftConfig": "config",
    "ShiftReport": "report",
    "TotalVariation": "variation",
    "VariationCurve": "variation",
    "answers_on": "sampling",
    "arms_figure": "pictures",
    "bounds": "returns",
    "classifier_bound": "classifier",
    "mean_variation": "deviation",
    "measure_shift": "measure",
    "pinsker_bound": "deviation",
    "policy_deviation": "deviation",
    "replies_on": "sampling",
    "shift": "run",
    "shift_figure": "pictures",
    "total_variation": "variation",
    "user_deviation": "deviation",
    "variation_curve": "variation",
}

__all__ = [
    "Bounds",
    "PairShift",
    "Reference",
    "ReferenceModel",
    "ShiftConfig",
    "ShiftReport",
    "TotalVariation",
    "VariationCurve",
    "answers_on",
    "arms_figure",
    "bounds",
    "classifier_bound",
    "mean_variation",
    "measure_shift",
    "pinsker_bound",
    "policy_deviation",
    "replies_on",
    "shift",
    "shift_figure",
    "total_variation",
    "user_deviation",
    "variation_curve",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"duologue.analysis.shift.{_HOMES[name]}"), name)
