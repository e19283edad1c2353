"""Figures of a comparison. Pure functions of results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from duologue.analysis.figures import band_charts, line_chart, scatter_charts, score_bars
from duologue.trainers.stats import Estimate


def pictures(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw score and turns by arm, learning curves, and score by turn; return the files.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    metric = str(results["metric"])
    made = [
        score_bars(_bars(results, "score"), folder / "score.png", label=f"{metric}, held-out humans"),
        score_bars(_bars(results, "turns"), folder / "turns.png", label="turns per dialogue"),
    ]
    by_turn = {p: list(enumerate(scores, start=1)) for p, scores in results["score_by_turn"].items()}
    made.append(line_chart(by_turn, folder / "score_by_turn.png", x="turn", y=f"{metric} of dialogues ended by then"))
    curves = {p: [(row["step"], row["reward"]) for row in rows] for p, rows in results["curves"].items()}
    if curves:
        path = folder / "learning_curves.png"
        made.append(line_chart(curves, path, x="optimiser step", y="reward with the training user"))
    if held_out := results.get("held_out_curves"):
        points = {p: [(row["step"], _estimate(row["score"])) for row in rows] for p, rows in held_out.items()}
        path = folder / "held_out_curves.png"
        made.append(band_charts({f"{metric}, held-out humans": points}, path, x="optimiser step"))
    if axis := results.get("axis"):
        lines = {"held-out humans": _along(axis, "score"), "own user (apparent)": _along(axis, "apparent")}
        made.append(band_charts({metric: lines}, folder / "axis.png", x=axis["label"]))
    return made + (_shift(results["shift"]["points"], metric, folder) if results["shift"]["points"] else [])


def _shift(points: Sequence[Mapping[str, Any]], metric: str, folder: Path) -> list[Path]:
    """Draw the shift of each arm by turn (its first seed's intervals), and gaps and regrets over shifts."""
    first = {p["arm"]: [(t, _estimate(turn)) for t, turn in enumerate(p["states"])] for p in points if p["seed"] == 0}
    measures = {"gap": lambda p: p["gap"]["value"], "regret": lambda p: p["regret"]}
    labels = {"gap": f"{metric}: training side - held-out humans", "regret": f"{metric}: oracle - arm"}
    panels = {
        label: {
            arm: [(p["shift"], y) for p in points if p["arm"] == arm and (y := measures[name](p)) is not None]
            for arm in first
        }
        for name, label in labels.items()
    }
    return [
        band_charts({"total variation of states, seed 0": first}, folder / "shift.png", x="turn"),
        scatter_charts(panels, folder / "gap_by_shift.png", x="measured shift (mean over turns)"),
    ]


def _along(axis: Mapping[str, Any], measure: str) -> list[tuple[float, Estimate]]:
    return [(row["value"], _estimate(row[measure])) for row in axis["rows"]]


def _bars(results: Mapping[str, Any], measure: str) -> dict[str, Estimate]:
    return {policy: _estimate(results["arms"][policy][measure]) for policy in results["policies"]}


def _estimate(row: Mapping[str, Any]) -> Estimate:
    value, low, high = (float("nan") if row[name] is None else row[name] for name in ("value", "low", "high"))
    return Estimate(value, low, high, row["n"])
