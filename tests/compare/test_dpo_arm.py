"""The arm ``dpo``: off unless it is asked for, on the base, logs and user of the others, and a row like theirs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from duologue.analysis.compare import CompareConfig, compare, load_preset
from duologue.analysis.compare.cells import Plan
from duologue.analysis.compare.needs import hours, needs
from duologue.analysis.compare.plan import plan
from duologue.analysis.compare.verdict import verdicts
from duologue.errors import DuologueError
from duologue.trainers.dpo_config import DpoConfig

PRESET = str(Path(__file__).with_name("tiny.yaml"))


def planned(arms: str | None = "base,static,dpo,naive", output: str = "OUT", **dpo: Any) -> Plan:
    config = CompareConfig(preset=PRESET, output=output, arms=arms)
    preset = load_preset(config)
    return plan(config, replace(preset, dpo={**preset.dpo, **dpo}))


def stage_config(made: Plan, name: str) -> Any:
    return next(stage.config for stage in made.stages if stage.name == name)


def test_it_is_off_unless_asked_for() -> None:
    assert "dpo" not in planned(None).policies
    assert planned().policies == ("base", "static", "dpo", "naive")
    assert "seed-0/dpo" in {stage.name for stage in planned().stages}


def test_it_has_the_base_logs_limits_and_user_of_the_others() -> None:
    made = planned()
    dpo, static, naive = (stage_config(made, f"seed-0/{arm}") for arm in ("dpo", "static", "naive"))
    assert isinstance(dpo, DpoConfig)
    assert dpo.simulator == naive.simulator
    assert (dpo.dialogues, dpo.max_turns) == (static.dialogues, naive.max_turns)
    for name in ("model", "learning_rate", "lora_rank", "dtype", "temperature", "max_total_tokens", "system_prompt"):
        assert getattr(dpo, name) == getattr(naive, name), name
    [stage] = [stage for stage in made.stages if stage.name == "seed-0/dpo"]
    assert stage.needs == ("base", "logs")


def test_it_plays_as_many_dialogues_as_an_rl_arm_unless_the_preset_says_otherwise() -> None:
    assert stage_config(planned(), "seed-0/dpo").max_contexts == 4  # 2 steps x 2 groups x 2 dialogues / (2 x 1)
    assert stage_config(planned(replies=4, continuations=2), "seed-0/dpo").max_contexts == 1
    assert stage_config(planned(max_contexts=9, beta=0.2), "seed-0/dpo").max_contexts == 9
    with pytest.raises(DuologueError, match=r"'dpo' has no field 'betta'. Did you mean 'beta'"):
        planned(betta=1)
    with pytest.raises(DuologueError, match=r"dpo\.simulator is set by the comparison"):
        planned(simulator="scripted")


def test_it_is_measured_like_the_others_and_needs_are_told() -> None:
    made = planned()
    users = {cell.user for cell in made.cells if cell.policy == "dpo"}
    assert users == {"held_out", "human", "naive"}
    assert stage_config(made, "seed-0/evaluate/dpo--held_out").agent == str(Path("OUT", "seed-0", "dpo", "final"))
    assert stage_config(made, "seed-0/shift/dpo").logs == str(Path("OUT", "logs", "logs.jsonl"))
    assert "| dpo | 1 |" in needs(made)
    assert 0 < hours(made)["dpo"] < hours(planned(epochs=9.0))["dpo"]


def test_the_verdict_counts_it_among_the_rivals() -> None:
    gain = {"value": 0.1, "low": 0.02, "high": 0.18, "n": 400}
    found = {f"calibrated - {rival}": {"score": gain, "turns": gain} for rival in ("static", "dpo")}
    claims = [v["claim"] for v in verdicts({"differences": found, "arms": {}})]
    assert "calibrated is better than static, dpo" in claims


@pytest.mark.slow
def test_a_comparison_with_it(tmp_path: Path) -> None:
    """The base is too small to earn anything, so there is no pair: the arm stays the base, and says so."""
    config = CompareConfig(preset=PRESET, output=str(tmp_path / "out"), arms="base,dpo")
    found = compare(config)
    facts = found["facts"]["seed-0/dpo"]
    assert facts["pairs"] + facts["ties"] + facts["too_few"] == facts["contexts"] == 4
    assert found["arms"]["dpo"]["trained_with"] == "naive"
    assert found["arms"]["dpo"]["cost"] == {"steps": facts["steps"], "sampled_tokens": facts["sampled_tokens"]}
    assert facts["sampled_tokens"] > 0
    assert found["arms"]["dpo"]["score"]["n"] == 6
    assert found["shift"]["points"][0]["pair"] == "policy"
    table = (tmp_path / "out" / "table.md").read_text()
    assert "\n| dpo |" in table
    assert "dpo plays all its dialogues before its steps" in table
    assert compare(config)["arms"] == found["arms"]
