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
    from duologue.analysis.summary import EvaluationReport, summarise
    from duologue.analysis.user_rates import UserRates
    from duologue.trainers.stats import Estimate, difference, mean, ratio, score_mean, share

_HOMES = {
    "CollectConfig": "duologue.analysis.config",
    "Collected": "duologue.analysis.collect",
    "Estimate": "duologue.trainers.stats",
    "EvaluateConfig": "duologue.analysis.config",
    "EvaluationReport": "duologue.analysis.summary",
    "RolloutConfig": "duologue.analysis.config",
    "UserRates": "duologue.analysis.user_rates",
    "collect_counted": "duologue.analysis.collect",
    "difference": "duologue.trainers.stats",
    "evaluate": "duologue.analysis.evaluation",
    "learning_curve": "duologue.analysis.figures",
    "line_chart": "duologue.analysis.figures",
    "markdown": "duologue.analysis.report",
    "mean": "duologue.trainers.stats",
    "ratio": "duologue.trainers.stats",
    "rollout": "duologue.analysis.play",
    "score_bars": "duologue.analysis.figures",
    "score_mean": "duologue.trainers.stats",
    "share": "duologue.trainers.stats",
    "summarise": "duologue.analysis.summary",
    "table": "duologue.analysis.report",
    "transcript": "duologue.analysis.report",
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
    return getattr(import_module(_HOMES[name]), name)
