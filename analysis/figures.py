"""Figures as PNG files, drawn without a display."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from duologue.errors import DuologueError, MissingExtraError
from duologue.json_files import read_lines
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Content = TypeVar("Content")
PANELS = {"reward": "reward", "accuracy": "accuracy", "turns": "turns", "dialogue/turns": "turns"}
"""Keys that get a panel each, where the log has them, and the panel's label."""
_COLOUR = "#1f6f8b"
Band = Sequence[tuple[float, Estimate]]
"""Estimates along an axis."""


def learning_curve(log: Sequence[Row] | str | Path, path: str | Path) -> Path:
    """Draw what training logged, step by step, with a running mean, and return the file.

    Args:
        log: rows with ``step`` and at least one key of ``PANELS``, such as ``reward``; or a ``metrics.jsonl`` of them.
            A row without a key, or with NaN, leaves a gap.
        path: PNG file to write; its folder is made.

    Raises:
        DuologueError: if there is nothing to draw, or the file is missing or damaged.
        MissingExtraError: if matplotlib is not installed.
    """
    rows = read_metrics(log) if isinstance(log, str | Path) else log
    series = {key: points for key in PANELS if (points := _points(rows, key))}
    if not series:
        raise DuologueError(f"There is nothing to draw. Give rows with 'step' and one of: {', '.join(PANELS)}.")
    figure = _figure(7.0, 2.4 * len(series))
    axes = figure.subplots(len(series), sharex=True, squeeze=False)[:, 0]
    for axis, (key, points) in zip(axes, series.items(), strict=True):
        _draw(axis, PANELS[key], points)
    axes[-1].set_xlabel("optimiser step")
    return _save(figure, path)


def score_bars(estimates: Mapping[str, Estimate], path: str | Path, *, label: str = "score") -> Path:
    """Draw estimates as bars with their 95 % intervals and return the file.

    Args:
        estimates: by the name under each bar.
        path: PNG file to write; its folder is made.
        label: of the vertical axis.

    Raises:
        DuologueError: if there are no estimates.
        MissingExtraError: if matplotlib is not installed.
    """
    if not estimates:
        raise DuologueError("There is nothing to draw. Give at least one estimate.")
    figure = _figure(1.5 + 1.3 * len(estimates), 3.2)
    axis = figure.subplots()
    values = [e.value for e in estimates.values()]
    below = [_length(e.value, e.low) for e in estimates.values()]
    above = [_length(e.high, e.value) for e in estimates.values()]
    axis.bar(list(estimates), values, yerr=[below, above], color=_COLOUR, width=0.6, capsize=4)
    axis.set_ylabel(f"{label} (95 % interval)")
    return _save(figure, path)


def line_chart(series: Mapping[str, Sequence[tuple[float, float]]], path: str | Path, *, x: str, y: str) -> Path:
    """Draw one line per name with a legend and return the file.

    Args:
        series: points (x, y) by name.
        path: PNG file to write; its folder is made.
        x: label of the horizontal axis.
        y: label of the vertical axis.

    Raises:
        DuologueError: if there are no points.
        MissingExtraError: if matplotlib is not installed.
    """
    if not any(series.values()):
        raise DuologueError("There is nothing to draw. Give at least one point.")
    figure = _figure(7.0, 3.6)
    axis = figure.subplots()
    for name, points in series.items():
        axis.plot([a for a, _ in points], [b for _, b in points], label=name, marker=".", linewidth=1.5)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _save(figure, path)


def band_charts(panels: Mapping[str, Mapping[str, Band]], path: str | Path, *, x: str) -> Path:
    """Draw panels side by side, each with a line per name and its 95 % intervals as a band; return the file.

    Args:
        panels: by the label of the panel's vertical axis: lines by name. Estimates without a value leave a gap.
        path: PNG file to write; its folder is made.
        x: label of the horizontal axes.

    Raises:
        DuologueError: if there are no panels.
        MissingExtraError: if matplotlib is not installed.
    """
    figure, drawn = _panels(panels, x, 3.4)
    from matplotlib.ticker import MaxNLocator

    for axis, lines in drawn:
        for name, band in lines.items():
            places = [place for place, _ in band]
            (line,) = axis.plot(places, [e.value for _, e in band], label=name, marker=".", linewidth=1.5)
            axis.fill_between(
                places, [e.low for _, e in band], [e.high for _, e in band], color=line.get_color(), alpha=0.15
            )
        if all(float(place).is_integer() for band in lines.values() for place, _ in band):
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.legend()
    return _save(figure, path)


def scatter_charts(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], path: str | Path, *, x: str
) -> Path:
    """Draw panels side by side, each with points in a colour per name, and return the file.

    Args:
        panels: by the label of the panel's vertical axis: points (x, y) by name.
        path: PNG file to write; its folder is made.
        x: label of the horizontal axes.

    Raises:
        DuologueError: if there are no panels.
        MissingExtraError: if matplotlib is not installed.
    """
    figure, drawn = _panels(panels, x, 4.0)
    for axis, series in drawn:
        for name, points in series.items():
            axis.scatter([a for a, _ in points], [b for _, b in points], label=name)
        axis.axhline(0.0, color="grey", linewidth=0.8)
        axis.legend()
    return _save(figure, path)


def _panels(panels: Mapping[str, Content], x: str, width: float) -> tuple[Figure, list[tuple[Axes, Content]]]:
    """Return a figure with labelled panels side by side, each with what is to be drawn in it."""
    if not panels:
        raise DuologueError("There is nothing to draw. Give at least one panel.")
    figure = _figure(1.0 + width * len(panels), 3.3)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, label in zip(axes, panels, strict=True):
        axis.set_xlabel(x)
        axis.set_ylabel(label)
    return figure, list(zip(axes, panels.values(), strict=True))


def read_metrics(path: str | Path) -> list[Row]:
    """Read a JSONL file of metrics. A last line that was cut in writing is left out.

    Raises:
        DuologueError: if the file is missing, or a line is no JSON object.
    """
    if not Path(path).is_file():
        raise DuologueError(f"There is no file {str(path)!r}. Give the metrics.jsonl of a training run.")
    return read_lines(path, dict, "JSON object", "Remove it.")


def _points(rows: Sequence[Row], key: str) -> list[tuple[float, float]]:
    pairs = [(row.get("step"), row.get(key)) for row in rows]
    return sorted((float(x), float(y)) for x, y in pairs if _is_number(x) and _is_number(y))  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _draw(axis: Axes, label: str, points: Sequence[tuple[float, float]]) -> None:
    steps, values = zip(*points, strict=True)
    axis.plot(steps, values, color=_COLOUR, alpha=0.3, linewidth=1)
    axis.plot(steps, _running_mean(values, max(1, len(values) // 10)), color=_COLOUR, linewidth=2)
    axis.set_ylabel(label)


def _running_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each value and up to ``width - 1`` before it: a step shows nothing of its future."""
    windows = (values[max(0, i + 1 - width) : i + 1] for i in range(len(values)))
    return [sum(window) / len(window) for window in windows]


def _length(high: float, low: float) -> float:
    return 0.0 if math.isnan(high - low) else max(0.0, high - low)


def _figure(width: float, height: float) -> Figure:
    if find_spec("matplotlib") is None:
        raise MissingExtraError("Drawing figures", "plots")
    # A Figure of its own, not pyplot: no global state and no choice of backend for the caller's process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: str | Path) -> Path:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=150, format="png", bbox_inches="tight")
    return target
