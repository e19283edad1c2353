"""The figure: each user's distance from people, a row per measure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from duologue.analysis.fidelity.config import PEOPLE
from duologue.analysis.fidelity.report import FidelityReport, Row, distances_by_mode
from duologue.analysis.figures import _figure, _save
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREY = "#777777"


def distances(report: FidelityReport, path: str | Path) -> Path:
    """Draw the distances from people with their 95 % intervals, a panel per mode, and return the file.

    Args:
        report: what was found.
        path: PNG file to write; its folder is made.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    panels = distances_by_mode(report)
    most = max(map(len, panels.values()))
    figure = _figure(11.0, 1.2 + 0.12 * most * (1 + len(report.columns)))
    for axis, (mode, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        _panel(axis, rows, report.columns)
        axis.set_title(mode)
    figure.axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _save(figure, path)


def _panel(axis: Axes, rows: list[Row], columns: list[str]) -> None:
    step = 0.8 / len(columns)
    for k, name in enumerate(columns):
        found = [row.cells[name].distance for row in rows]
        estimates = [d.share if d else Estimate(math.nan, math.nan, math.nan, 0) for d in found]
        places = [i + (k - (len(columns) - 1) / 2) * step for i in range(len(rows))]
        reach = [[_length(e.value, e.low) for e in estimates], [_length(e.high, e.value) for e in estimates]]
        colour = _GREY if name == PEOPLE else None
        axis.errorbar([e.value for e in estimates], places, xerr=reach, fmt="o", markersize=3, label=name, color=colour)
    axis.set_yticks(range(len(rows)), [row.measure.name for row in rows])
    axis.invert_yaxis()
    axis.set_xlim(-0.02, 1.02)
    axis.set_xlabel("distance from people (95 % interval)")


def _length(high: float, low: float) -> float:
    return 0.0 if math.isnan(high - low) else max(0.0, high - low)
