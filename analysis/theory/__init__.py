"""The theory of distribution shift, worked out exactly on finite dialogues. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.analysis.theory.bounds import bound, coupling_bound, gap, linear_bound, quadratic_bound, reward_ranges
    from duologue.analysis.theory.config import TheoryConfig
    from duologue.analysis.theory.exact import (
        Pairing,
        Shift,
        action_values,
        contexts,
        expected_return,
        shift,
        total_variation,
    )
    from duologue.analysis.theory.families import family, gap_over_bound, random_pairings, worst_ratios
    from duologue.analysis.theory.histories import history_distribution, history_shift
    from duologue.analysis.theory.learning import learned
    from duologue.analysis.theory.run import theory

_HOMES = {
    "Pairing": "exact",
    "Shift": "exact",
    "TheoryConfig": "config",
    "action_values": "exact",
    "bound": "bounds",
    "contexts": "exact",
    "coupling_bound": "bounds",
    "expected_return": "exact",
    "family": "families",
    "gap": "bounds",
    "gap_over_bound": "families",
    "history_distribution": "histories",
    "history_shift": "histories",
    "learned": "learning",
    "linear_bound": "bounds",
    "quadratic_bound": "bounds",
    "random_pairings": "families",
    "reward_ranges": "bounds",
    "shift": "exact",
    "theory": "run",
    "total_variation": "exact",
    "worst_ratios": "families",
}

__all__ = [
    "Pairing",
    "Shift",
    "TheoryConfig",
    "action_values",
    "bound",
    "contexts",
    "coupling_bound",
    "expected_return",
    "family",
    "gap",
    "gap_over_bound",
    "history_distribution",
    "history_shift",
    "learned",
    "linear_bound",
    "quadratic_bound",
    "random_pairings",
    "reward_ranges",
    "shift",
    "theory",
    "total_variation",
    "worst_ratios",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
