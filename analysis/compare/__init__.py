"""The comparison of ways to train: every arm on equal budgets, every policy against every user."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.analysis.compare.config import CompareConfig
    from duologue.analysis.compare.needs import needs
    from duologue.analysis.compare.preset import Preset, load_preset
    from duologue.analysis.compare.run import compare
    from duologue.analysis.compare.table import table
    from duologue.analysis.compare.verdict import verdicts

_HOMES = {
    "CompareConfig": "config",
    "Preset": "preset",
    "compare": "run",
    "load_preset": "preset",
    "needs": "needs",
    "table": "table",
    "verdicts": "verdict",
}

__all__ = ["CompareConfig", "Preset", "compare", "load_preset", "needs", "table", "verdicts"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
