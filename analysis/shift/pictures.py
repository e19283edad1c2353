"""Figures of shifts: curves over turns, of one policy or of several arms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from duologue.analysis.figures import Band, band_charts
from duologue.analysis.shift.report import ShiftReport

_TITLES = {"states": "TV of states", "classifier": "TV at least (classifier)", "likelihood": "log-likelihood (nats)"}


def shift_figure(report: ShiftReport, path: str | Path) -> Path:
    """Draw a panel per estimator with a curve per shift, and one with the deviations; return the file.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    panels: dict[str, dict[str, Band]] = {}
    for estimator, title in _TITLES.items():
        curves = {name: pair.estimates(estimator) for name, pair in report.pairs.items()}
        if any(curves.values()):
            panels[title] = {name: list(enumerate(found)) for name, found in curves.items() if found}
    known = {"policy": report.policy_deviation, "user": report.user_deviation}
    deviations = {k: list(enumerate(t.estimate for t in c.turns)) for k, c in known.items() if c}
    return band_charts(panels | ({"deviation in a turn": deviations} if deviations else {}), path, x="turn")


def arms_figure(arms: Mapping[str, ShiftReport], path: str | Path, estimator: str = "states") -> Path:
    """Draw a panel per shift with a curve per arm (static, naive, calibrated, …); return the file.

    Args:
        arms: reports by name.
        path: PNG file to write.
        estimator: ``states``, ``classifier`` or ``likelihood``.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    names = dict.fromkeys(name for report in arms.values() for name in report.pairs)
    panels = {
        f"{name} shift": {
            arm: list(enumerate(report.pairs[name].estimates(estimator)))
            for arm, report in arms.items()
            if name in report.pairs
        }
        for name in names
    }
    return band_charts(panels, path, x="turn")
