"""Figures: files that are PNGs, drawn from what they are given."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from duologue.analysis import Estimate, figures, learning_curve, line_chart, score_bars
from duologue.errors import DuologueError, MissingExtraError

ROWS: list[dict[str, float | None]] = [
    {"step": i, "reward": i / 20, "dialogue/turns": 3.0, "loss": 0.0} for i in range(20)
]


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n")


def test_learning_curve_from_rows_and_from_a_file(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + '{"step": 20, "rew')  # cut in writing
    from_rows = learning_curve(ROWS, tmp_path / "new" / "rows.png")
    from_file = learning_curve(log, tmp_path / "file.png")
    assert is_png(from_rows)
    assert from_rows.read_bytes() == from_file.read_bytes()


def test_each_measured_key_gets_a_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, int] = {}
    monkeypatch.setattr(figures, "_draw", lambda axis, label, points: drawn.update({label: len(points)}))
    rows: list[dict[str, float | None]] = [
        *ROWS,
        {"step": 21, "reward": math.nan},
        {"step": 22, "reward": None},
        {"reward": 1.0},
    ]
    learning_curve(rows, tmp_path / "x.png")
    assert drawn == {"reward": 20, "turns": 20}


def test_running_mean_does_not_look_ahead() -> None:
    assert figures._running_mean([0.0, 2.0, 4.0, 0.0], 2) == [0.0, 1.0, 3.0, 2.0]


def test_line_chart(tmp_path: Path) -> None:
    series = {"static": [(1.0, 0.2), (2.0, 0.4)], "naive": [(1.0, 0.1)]}
    assert is_png(line_chart(series, tmp_path / "lines.png", x="step", y="reward"))
    with pytest.raises(DuologueError, match="at least one point"):
        line_chart({"static": []}, tmp_path / "x.png", x="step", y="reward")


def test_score_bars(tmp_path: Path) -> None:
    bars = {"before": Estimate(0.1, 0.05, 0.2, 200), "after": Estimate(0.6, math.nan, math.nan, 1)}
    assert is_png(score_bars(bars, tmp_path / "bars.png", label="accuracy"))


def test_nothing_to_draw(tmp_path: Path) -> None:
    undrawable: list[list[dict[str, float]]] = [[], [{"step": 1, "loss": 2.0}], [{"reward": 1.0}]]
    for rows in undrawable:
        with pytest.raises(DuologueError, match="Give rows with 'step'"):
            learning_curve(rows, tmp_path / "x.png")
    with pytest.raises(DuologueError, match="at least one estimate"):
        score_bars({}, tmp_path / "x.png")


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    with pytest.raises(DuologueError, match="There is no file"):
        learning_curve(tmp_path / "none.jsonl", tmp_path / "x.png")
    for line in ("[1]", "oops"):
        (tmp_path / "bad.jsonl").write_text(f'{{"step": 1, "reward": 1}}\n{line}\n')
        with pytest.raises(DuologueError, match=r"Line 2 of .* is no JSON object"):
            learning_curve(tmp_path / "bad.jsonl", tmp_path / "x.png")


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"duologue\[plots\]"):
        learning_curve(ROWS, tmp_path / "x.png")


def test_the_package_is_light() -> None:
    code = (
        "import sys, duologue.analysis as a; a.EvaluateConfig, a.learning_curve, a.evaluate; "
        "print([m for m in ('torch', 'transformers', 'matplotlib') if m in sys.modules], callable(a.evaluate))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[] True"
