"""Hours count what language models do: neither scripted users nor scripted assistants cost any."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from duologue.analysis.compare.cells import Plan
from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.compare.needs import hours, lengths, needs
from duologue.analysis.compare.run import planned

PRESETS = Path(__file__).parents[2] / "analysis" / "compare" / "presets"
FAST, SLOW = 0.1e12 * 0.3 * 3600, 0.1e12 * 0.05 * 3600
"""Operations an hour of the preset ``small``: in parallel over tokens, and token by token."""
N = 1.35e8


def small(**settings: Any) -> Plan:
    return planned(CompareConfig(preset="small", **settings))


def user_hours(plan: Plan, dialogues: int) -> float:
    step = lengths(plan.preset)
    return dialogues * 2 * N * (step.sampled / FAST + step.user / SLOW)


def policy_hours(plan: Plan, dialogues: int) -> float:
    step = lengths(plan.preset)
    return dialogues * 2 * N * (step.prefill_cached / FAST + step.sampled / SLOW)


def test_what_is_scripted_on_both_sides_costs_nothing() -> None:
    found = hours(small())
    assert (found["logs"], found["base-logs"], found["people"]) == (0.0, 0.0, 0.0)
    assert min(found["base"], found["clone"], found["static"]) > 0
    assert "Who is scripted costs nothing" in needs(small())


def test_a_step_costs_a_users_words_only_where_a_model_says_them() -> None:
    plan = small()
    found, steps = hours(plan), 14 * 32
    assert found["naive"] == found["oracle"] == found["static"]
    assert found["calibrated"] - found["naive"] == pytest.approx(user_hours(plan, steps))


def test_evaluation_counts_each_side_by_who_speaks() -> None:
    plan = small(arms="naive,calibrated")
    policies, users = 2 * policy_hours(plan, 100 + 3 * 32), 2 * user_hours(plan, 32)
    assert hours(plan)["evaluate"] == pytest.approx(policies + users)
    more = small(arms="naive,calibrated", agent={"hasty": "scripted:hasty-math"})
    assert hours(more)["evaluate"] == pytest.approx(policies + users * 3 / 2)  # with the calibrated user alone
    fidelity = hours(plan)["fidelity"]
    assert fidelity == pytest.approx(user_hours(plan, 2 * plan.preset.evaluate.fidelity_dialogues))  # not of naive


def test_a_model_in_the_logs_is_counted(tmp_path: Path) -> None:
    rows = yaml.safe_load((PRESETS / "MathChat-v0-small.yaml").read_text())
    rows["logs"]["agent"] = "default"
    rows["users"]["human"] = "prompted:some/model"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(rows))
    plan = planned(CompareConfig(preset=str(tmp_path / "mine.yaml")))
    assert hours(plan)["logs"] == pytest.approx(policy_hours(plan, 512) + user_hours(plan, 512))
