"""The shift as an axis: one more arm per value, planned, measured and told like the others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duologue.analysis.compare import CompareConfig, load_preset, verdicts
from duologue.analysis.compare.cells import Plan
from duologue.analysis.compare.pictures import pictures
from duologue.analysis.compare.plan import plan
from duologue.analysis.compare.preset import Axis, from_mapping
from duologue.analysis.compare.table import table
from duologue.errors import DuologueError

PRESET = str(Path(__file__).with_name("tiny.yaml"))
LEAK = Axis("leak rate", "scripted:naive,leak={}", (0.0, 0.5))


def planned(seeds: int = 2) -> Plan:
    config = CompareConfig(preset=PRESET, output="OUT", seeds=seeds, arms="base")
    return plan(config, replace(load_preset(config), axis=LEAK))


def test_every_value_is_an_arm_with_a_user_of_its_own() -> None:
    stages = {stage.name: stage for stage in planned().stages}
    low, high = stages["seed-1/axis/0"].config, stages["seed-1/axis/0.5"].config
    assert (low.simulator, high.simulator) == ("scripted:naive,leak=0", "scripted:naive,leak=0.5")
    assert replace(low, simulator=high.simulator, output=high.output) == high  # nothing else differs


def test_each_is_measured_with_the_judge_and_with_its_own_user() -> None:
    made = planned()
    users = {stage.name: stage.config.simulator for stage in made.stages if "evaluate/axis/" in stage.name}
    assert len(users) == 2 * 2 * 2
    assert users["seed-0/evaluate/axis/0.5--held_out"] == "scripted:held-out"
    assert users["seed-0/evaluate/axis/0.5--own"] == "scripted:naive,leak=0.5"
    assert not {cell.policy for cell in made.cells} & {"axis/0", "axis/0.5"}  # the matrix holds the arms alone


def test_more_seeds_leave_what_is_there_as_it_was() -> None:
    one, two = ({stage.name: stage.config for stage in planned(seeds).stages} for seeds in (1, 2))
    assert one.items() <= two.items()


def test_an_axis_comes_from_yaml() -> None:
    rows = {"label": "leak rate", "user": "scripted:naive,leak={}", "values": [0, 0.5]}
    assert from_mapping(Axis, rows, "mine.yaml, axis").user_at(0.5) == "scripted:naive,leak=0.5"


@pytest.mark.parametrize(
    ("user", "values", "said"),
    [("scripted:naive", (0.0, 1.0), "Write {}"), ("a,leak={}", (), "Give different"), ("a={}", (1.0, 1), "different")],
)
def test_an_axis_that_cannot_tell_users_apart_is_refused(user: str, values: tuple[float, ...], said: str) -> None:
    with pytest.raises(DuologueError, match=said):
        Axis("leak rate", user, values)


def estimate(value: float, low: float, high: float) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": 9}


ROWS = [
    {"value": 0.0, "user": "u,leak=0", "score": estimate(0.5, 0.4, 0.6), "apparent": estimate(0.5, 0.4, 0.6)},
    {"value": 0.5, "user": "u,leak=0.5", "score": estimate(0.2, 0.1, 0.3), "apparent": estimate(0.9, 0.8, 1.0)},
]
GAPS = [estimate(0.0, -0.1, 0.1), estimate(0.7, 0.6, 0.8)]
FOUND = {
    "axis": {"label": "leak rate", "rows": [{**row, "gap": gap} for row, gap in zip(ROWS, GAPS, strict=True)]},
    "differences": {},
    "arms": {},
}


def test_the_verdict_tells_where_the_gap_begins() -> None:
    assert [(v["claim"].split(",")[0], v["outcome"]) for v in verdicts(FOUND)] == [
        ("trained at leak rate 0", "undecided"),
        ("trained at leak rate 0.5", "holds"),
    ]


def test_the_figure_and_the_table_show_both_scores(tmp_path: Path, recorded: dict[str, Any]) -> None:
    told = {"shift": {"points": []}, "fidelity": {}, **recorded, "axis": FOUND["axis"]}
    assert "| 0.5 | `u,leak=0.5` | 0.200 [0.100, 0.300] | 0.900 [0.800, 1.000] | 0.700 [0.600, 0.800] |" in table(told)
    assert (tmp_path / "axis.png") in pictures(told, tmp_path)
    assert (tmp_path / "axis.png").stat().st_size > 1_000


def test_checkpoints_are_measured_only_if_they_are_kept() -> None:
    config = CompareConfig(preset=PRESET, output="OUT", arms="base,static,naive")
    preset = load_preset(config)
    made = plan(config, preset)
    stage = next(s for s in made.stages if s.name == "seed-0/evaluate/naive@1--held_out")
    assert (stage.config.agent, stage.config.episodes) == (str(Path("OUT", "seed-0", "naive", "checkpoint-1")), 4)
    assert {(cell.policy, cell.step) for cell in made.checkpoints} == {("static", 1), ("naive", 1)}
    for rl in ({**preset.rl, "trl": {"save_total_limit": 1}}, {**preset.rl, "save_steps": 0}):
        with pytest.raises(DuologueError, match=r"Set rl\.save_steps"):
            plan(config, replace(preset, rl=rl))


@pytest.fixture
def recorded() -> dict[str, Any]:
    import json

    path = Path(__file__).parents[2] / "docs" / "results" / "mathchat-tiny" / "results.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
