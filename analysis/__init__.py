"""Evaluation: play dialogues, measure them with intervals, report, draw. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.analysis.collect import Collected, collect_counted
    from duologue.analysis.config import CollectConfig, EvaluateConfig, RolloutConfig
    from duologue.analysis.evaluation import evaluate
    from duologue.analysis.figures import learning_curve, line_chart, score_bars
    from duologue.analysis.play import rollout
    from duologue.analysis.report import markdown, table, transcript
    from duologue.analysis.stats import Estimate, difference, mean, ratio, score_mean, share
    from duologue.analysis.summary import EvaluationReport, summarise
    from duologue.analysis.user_rates import UserRates

_HOMES = {
    "CollectConfig": "config",
    "Collected": "collect",
    "Estimate": "stats",
    "EvaluateConfig": "config",
    "EvaluationReport": "summary",
    "RolloutConfig": "config",
    "UserRates": "user_rates",
    "collect_counted": "collect",
    "difference": "stats",
    "evaluate": "evaluation",
    "learning_curve": "figures",
    "line_chart": "figures",
    "markdown": "report",
    "mean": "stats",
    "ratio": "stats",
    "rollout": "play",
    "score_bars": "figures",
    "score_mean": "stats",
    "share": "stats",
    "summarise": "summary",
    "table": "report",
    "transcript": "report",
}

__all__ = [
    "CollectConfig",
    "Collected",
    "Estimate",
    "EvaluateConfig",
    "EvaluationReport",
    "RolloutConfig",
    "UserRates",
    "collect_counted",
    "difference",
    "evaluate",
    "learning_curve",
    "line_chart",
    "markdown",
    "mean",
    "ratio",
    "rollout",
    "score_bars",
    "score_mean",
    "share",
    "summarise",
    "table",
    "transcript",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
