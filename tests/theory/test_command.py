"""The numbers in one place, their tables and figure, and the command."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duologue.analysis.theory import TheoryConfig, theory
from duologue.analysis.theory.figure import figure
from duologue.analysis.theory.run import slope, slope_of_means
from duologue.analysis.theory.table import markdown, tables
from duologue.cli import app
from duologue.errors import DuologueError


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two seeds at two small horizons give."""
    return theory(TheoryConfig(horizons="2,4", seeds=2, output=str(tmp_path_factory.mktemp("theory"))))


def test_slopes_are_powers() -> None:
    assert slope([2, 4, 8], [3 * h**2 for h in (2, 4, 8)]) == pytest.approx(2.0)
    assert math.isnan(slope([2], [1.0]))
    assert math.isnan(slope([2, 4], [0.0, 1.0]))
    same = slope_of_means([2, 4, 8], [[h**1.5] * 4 for h in (2, 4, 8)])
    assert (same.value, same.low, same.high, same.n) == pytest.approx((1.5, 1.5, 1.5, 4))
    wide = slope_of_means([2, 4], [[1.0, 1.0], [2.0, 4.0]])
    assert (wide.low, wide.high) == pytest.approx((1.0, 2.0))
    assert wide.value == pytest.approx(math.log2(3.0))
    assert math.isnan(slope_of_means([2, 4], [[1.0], [2.0]]).low)


def test_rates_and_random_dialogues_say_what_the_theorems_say(found: dict[str, Any]) -> None:
    for one in found["rates"]["families"]:
        assert one["slope"] == pytest.approx(2.0 if one["paid"] == "every turn" else 1.0, abs=0.05)
        assert [row["horizon"] for row in one["rows"]] == [2, 4]
        assert all(0.99 < row["ratio"] <= 1.0 for row in one["rows"])
    assert [(row["dialogues"], row["above"]) for row in found["random"]] == [(12_000, 0), (12_000, 0)]


def test_learners_have_a_row_per_horizon(found: dict[str, Any]) -> None:
    learning = found["learning"]
    assert learning["seeds"] == 2
    assert [arm["arm"] for arm in learning["arms"]] == ["static", "static, flawless logs", "on-policy"]
    for arm in learning["arms"]:
        assert [row["horizon"] for row in arm["rows"]] == [2, 4]
        assert all(row["gap"]["value"] <= row["bound"]["value"] for row in arm["rows"])
        assert arm["slope"]["n"] == 2
    own = learning["arms"][-1]["rows"][0]
    assert own["more_than_on_policy"]["value"] == 0


def test_tables_and_figure_are_drawn_from_the_file(found: dict[str, Any], tmp_path: Path) -> None:
    read = json.loads(json.dumps(found, allow_nan=False))
    text = markdown(read)
    for part in ("| policy (3.1) | every turn | 4 |", "| every turn | 12,000 | 0 |", "over 2 seeds", read["signature"]):
        assert part in text
    assert len(tables(read)) == 4
    assert figure(read, tmp_path / "new" / "x.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_one_seed_and_one_horizon_have_no_slope_and_no_interval(tmp_path: Path) -> None:
    found = theory(TheoryConfig(horizons="2", seeds=1, output=str(tmp_path)))
    assert found["learning"]["arms"][0]["slope"]["value"] is None
    assert found["rates"]["families"][0]["slope_of_rows"] is None
    assert (tmp_path / "table.md").read_text() == markdown(found) + "\n"
    assert json.loads((tmp_path / "theory.json").read_text()) == found
    figure(found, tmp_path / "x.png")


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["theory", "--horizons", "4,2", "--seeds", "1", "--output", str(out)])
    assert result.exit_code == 0, result.output
    for part in ("gap / bound", "The power of H", "Random dialogues", "Everything is in"):
        assert part in result.output
    assert {path.name for path in out.iterdir()} == {"theory.json", "table.md", "theory.png"}


@pytest.mark.parametrize("given", ["", "2,x", "0,2", "2;4", "2,1000"])
def test_horizons_that_cannot_work(given: str) -> None:
    with pytest.raises(DuologueError, match="Write whole numbers up to 512, like 2,4,8"):
        TheoryConfig(horizons=given)


def test_values_of_the_configuration() -> None:
    assert TheoryConfig(horizons="8, 2,2").turns == (2, 8)
    with pytest.raises(DuologueError, match="Set it to 1 or more"):
        TheoryConfig(seeds=0)
    result = CliRunner().invoke(app, ["theory", "--seeds", "0"])
    assert (result.exit_code, result.stderr) == (2, "error: seeds is 0. Set it to 1 or more.\n")


def test_the_configuration_is_light() -> None:
    code = "import sys, duologue.analysis.theory.config; print('numpy' in sys.modules, 'gymnasium' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False False"
