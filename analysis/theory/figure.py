"""The theory's figure, drawn from ``theory.json``: gaps and bounds over the horizon, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duologue.analysis import figures
from duologue.analysis.theory.table import estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Results = Mapping[str, Any]


def figure(results: Results, path: str | Path) -> Path:
    """Draw the family that attains the bounds, and what learners lose; return the file.

    Args:
        results: what ``theory.json`` holds.
        path: PNG file to write; its folder is made.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    made = figures._figure(10.0, 4.0)
    left, right = made.subplots(1, 2)
    horizons = [row["horizon"] for row in results["rates"]["families"][0]["rows"]]
    _draw_family(left, results["rates"])
    _draw_learning(right, results["learning"])
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks(horizons, [str(h) for h in horizons])
        axis.minorticks_off()
        axis.set_yscale("log")
        axis.set_xlabel("turns H")
        axis.legend(fontsize="small")
    return figures._save(made, path)


def _draw_family(axis: Axes, rates: Results) -> None:
    long = rates["slope_horizons"]
    for one in rates["families"]:
        if one["shifted"] != "policy":
            continue
        x = [row["horizon"] for row in one["rows"]]
        paid = one["paid"].replace("final", "the final")
        label = f"paid on {paid}: slope {one['slope']:.2f} (H = {long[0]} … {long[-1]})"
        axis.plot(x, [row["gap"] for row in one["rows"]], marker="o", linewidth=1.5, label=label)
        axis.plot(x, [row["bound"] for row in one["rows"]], color="black", linestyle=":", linewidth=2.5)
    axis.plot([], [], color="black", linestyle=":", linewidth=2.5, label="bounds")
    axis.set_title(f"The family that attains the bounds, ε = {rates['rate']:g}", fontsize="medium")
    axis.set_ylabel("gap |J(π) - J(π')|")


def _draw_learning(axis: Axes, learning: Results) -> None:
    for arm in learning["arms"]:
        gaps = [estimate(row["gap"]) for row in arm["rows"]]
        below = [figures._length(e.value, e.low) for e in gaps]
        above = [figures._length(e.high, e.value) for e in gaps]
        label = f"{arm['arm']}: slope {estimate(arm['slope']).value:.2f}"
        x = [row["horizon"] for row in arm["rows"]]
        axis.errorbar(x, [e.value for e in gaps], yerr=[below, above], marker="o", capsize=3, label=label)
    axis.set_title(f"Learners of {learning['contexts']:,} contexts, {learning['seeds']} seeds, 95 %", fontsize="medium")
    axis.set_ylabel("gap J(right replies) - J(learned)")
