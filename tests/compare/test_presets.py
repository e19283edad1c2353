"""Presets, plans and what they need."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from duologue.analysis.compare.cells import OWN_USER, Plan
from duologue.analysis.compare.config import TRAINED, USUAL_ARMS, CompareConfig
from duologue.analysis.compare.needs import hours, lengths, memory, needs
from duologue.analysis.compare.preset import SIZES, load_preset
from duologue.analysis.compare.run import check_machine, compare, planned
from duologue.analysis.compare.training import built
from duologue.analysis.compare.work import matched_groups
from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig

ENVS = ("MathChat-v0", "MediumDocEditChat-v0")
PRESETS = Path(__file__).parents[2] / "analysis" / "compare" / "presets"
ALL = [(env, size) for env in ENVS for size in SIZES]


def plan_of(env: str = "MathChat-v0", size: str = "tiny", **changes: Any) -> Plan:
    return planned(CompareConfig(env=env, preset=size, **changes))


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Writes a copy of the tiny preset in which a section has other values."""

    def write(section: str, **values: Any) -> Path:
        rows = yaml.safe_load((PRESETS / "MathChat-v0-tiny.yaml").read_text())
        if section:
            rows[section] = {**rows[section], **values}
        else:
            rows |= values
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(rows))
        return path

    return write


@pytest.mark.parametrize(("env", "size"), ALL)
def test_every_preset_can_be_planned_and_says_what_it_needs(env: str, size: str, tmp_path: Path) -> None:
    made = plan_of(env, size, seeds=2, output=str(tmp_path / "nothing"))
    text = needs(made)
    for part in ("6 N T", "KV cache", "| evaluate |", "sampled", "**all**"):
        assert part in text
    assert not (tmp_path / "nothing").exists()
    assert made.preset.env == env


def test_there_is_a_file_for_each_environment_and_size() -> None:
    assert {path.stem for path in PRESETS.glob("*.yaml")} == {f"{env}-{size}" for env, size in ALL}


def test_the_base_may_learn_from_another_assistant_than_the_one_of_the_logs(changed: Callable[..., Path]) -> None:
    base = yaml.safe_load((PRESETS / "MathChat-v0-tiny.yaml").read_text())["base"]
    path = changed("base", **{**base, "agent": "scripted:hasty-math,haste=0.9"})
    agents = {s.name: s.config.agent for s in plan_of(size=str(path)).stages if s.name in ("logs", "base-logs")}
    assert agents["base-logs"] == "scripted:hasty-math,haste=0.9" != agents["logs"]


def test_a_stage_comes_after_those_that_it_needs() -> None:
    seen: set[str] = set()
    for stage in plan_of(seeds=2).stages:
        assert set(stage.needs) <= seen
        assert stage.name not in seen
        seen.add(stage.name)


def test_every_policy_meets_every_user_on_the_same_dialogues() -> None:
    made = plan_of(seeds=2, agent={"ppo": "my:agent"})
    assert made.policies == ("base", "ppo", *(arm for arm in TRAINED if arm != "dpo"))
    assert made.skipped.keys() == {"proactive"}
    by_name = {stage.name: stage.config for stage in made.stages}
    for seed in (0, 1):
        cells = [by_name[cell.name] for cell in made.cells if cell.seed == seed]
        assert len(cells) == len(made.policies) * 4
        assert len({config.seed for config in cells}) == 1
        assert {config.tasks for config in cells} == {"math:level=1,split=test"}


def test_rl_arms_differ_in_their_user_alone() -> None:
    stages = {stage.name: stage.config for stage in plan_of().stages}
    arms = [stages[f"seed-0/{arm}"] for arm in OWN_USER]
    assert [arm.simulator.partition(":")[0] for arm in arms] == ["scripted", "calibrated", "scripted"]
    assert len({arm.simulator for arm in arms}) == 3
    same = {repr(replace(arm, simulator="", output="")) for arm in arms}
    assert len(same) == 1


def test_no_arm_trains_with_the_users_or_tasks_that_judge() -> None:
    for stage in plan_of().stages:
        if stage.kind not in ("evaluate", "shift"):
            assert "held-out" not in repr(stage.config)
            assert "split=test" not in repr(stage.config)


def test_arms_can_be_chosen() -> None:
    made = plan_of(arms="naive,base")
    assert made.policies == ("base", "naive")
    assert {stage.kind for stage in made.stages} == {
        "base-logs",
        "base",
        "naive",
        "evaluate",
        "shift",
        "people",
        "fidelity",
    }
    assert {cell.user for cell in made.cells} == {"held_out", "human", "naive"}


def test_seeds_can_be_added_without_changing_what_is_done() -> None:
    one, two = plan_of(seeds=1), plan_of(seeds=2)
    later = {stage.name: stage.config for stage in two.stages}
    assert all(later[stage.name] == stage.config for stage in one.stages)


def test_flags_change_the_preset() -> None:
    preset = load_preset(CompareConfig(steps=7, dialogues=11))
    assert preset.rl["steps"] == 7
    assert (preset.evaluate.dialogues, preset.evaluate.other_dialogues) == (11, 11)


def test_a_prompted_base_gets_the_proactive_baseline() -> None:
    made = plan_of(size="small")
    prompts = {cell.policy: s.config.system_prompt for s in made.stages for cell in made.cells if cell.name == s.name}
    assert prompts["base"] == prompts["naive"] == "You help with maths."
    assert prompts["proactive"].startswith("You help with maths.\n\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "tinny"}, "no preset 'tinny'. Did you mean 'tiny'?"),
        ({"preset": "none.yaml"}, "no preset file 'none.yaml'"),
        ({"env": "MathsChat-v0"}, "no presets for 'MathsChat-v0'. Did you mean 'MathChat-v0'?"),
        ({"agent": {"naive": "x"}}, "'naive' is taken"),
        ({"agent": {"a b": "x"}}, "no usable name"),
    ],
)
def test_mistakes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message.replace("?", r"\?")):
        planned(CompareConfig(**given))


@pytest.mark.parametrize(("given", "message"), [({"arms": "base,niave"}, "mean 'naive'"), ({"seeds": 0}, "seeds is 0")])
def test_mistakes_are_seen_before_anything_is_read(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        CompareConfig(**given)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("", {"seed": 1}, "mine.yaml has no key 'seed'"),
        ("tasks", {"trian": "x"}, "mine.yaml, tasks has no key 'trian'. Did you mean 'train'"),
        ("limits", {"max_turns": "five"}, "mine.yaml, limits, max_turns is 'five'. Give a value of type int"),
        ("rl", {"step": 3}, "'rl' has no field 'step'. Did you mean 'steps'"),
        ("rl", {"simulator": "scripted"}, "rl.simulator is set by the comparison"),
        ("rl", {"steps": "many"}, "rl.steps is 'many'"),
        ("base", {"method": "scracth"}, "base.method is 'scracth'. Did you mean 'scratch'"),
        ("base", {"settings": {"layer": 1}}, "'base.settings' has no field 'layer'"),
        ("", {"env": "MediumDocEditChat-v0"}, "is for MediumDocEditChat-v0, not MathChat-v0"),
        ("", {"tasks": "math"}, "mine.yaml, tasks holds 'math'"),
        ("", {"arms": ["naif"]}, "no arm 'naif'"),
    ],
)
def test_mistakes_in_a_file(changed: Callable[..., Path], section: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(DuologueError, match=message):
        planned(CompareConfig(preset=str(changed(section, **values))))


def test_a_missing_key_and_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("env: MathChat-v0\n")
    with pytest.raises(DuologueError, match=r"p.yaml lacks about, tasks, .* Add what is missing"):
        planned(CompareConfig(preset=str(path)))
    path.write_text("a: [")
    with pytest.raises(DuologueError, match="is no YAML"):
        planned(CompareConfig(preset=str(path)))


def test_numbers_that_yaml_reads_as_text() -> None:
    assert built(InteractiveConfig, "rl", {"learning_rate": "1e-5"}, {}).learning_rate == 1e-5


def test_static_steps_sample_as_much_as_interactive_ones() -> None:
    config = InteractiveConfig(groups_per_step=8, group_size=8, micro_batch_size=32)
    assert matched_groups(config, 1.0) == 8
    assert matched_groups(config, 3.0) == 24
    assert matched_groups(config, 2.6) == 20  # 20.8 groups, in units of 4 so that 32 divides 8 * groups
    replace(config, groups_per_step=matched_groups(config, 2.6))


def test_needs_by_hand() -> None:
    made = plan_of(size="paper")
    step = lengths(made.preset)
    assert (step.dialogues, step.sampled, step.total, step.user) == (128, 6144, 6144, 0)
    lora, full = (memory(made.preset, full=way) for way in (False, True))
    assert lora.weights == 2 * 4.3e9 + 4 * 6.6e7
    assert (full.gradients, full.optimiser) == (2 * 4.3e9 / 8, 2 * 2 * 4.3e9 / 8)
    assert lora.cache == 2 * 34 * 4 * 256 * 2 * (3 * 16) * 6144
    read, sampled = 128 * 6144 * 200, 128 * 6144 * 200
    fast = (4 * 4.3e9 + 6 * 6.6e7 + 2 * 4.3e9) * read + 2 * 4.3e9 * 128 * 7 * 200 + 2 * 7.6e9 * sampled
    flops = fast / 0.3 + 2 * 4.3e9 * sampled / 0.05
    assert hours(made)["naive"] == pytest.approx(flops / 989e12 / 3600)


@pytest.mark.parametrize("env", ENVS)
def test_the_paper_presets_fit_their_gpus(env: str) -> None:
    preset = plan_of(env, "paper").preset
    for way in (False, True):
        assert memory(preset, full=way).total < 0.97 * preset.machine.memory_gb * 1e9


def test_the_paper_preset_is_refused_without_its_gpus(tmp_path: Path) -> None:
    machine = replace(plan_of(size="paper").preset.machine, gpus=99)
    with pytest.raises(DuologueError, match=r"needs 99 GPUs with 80 GB each, and this machine\s+has \d"):
        check_machine("paper", machine)
    with pytest.raises(DuologueError, match="needs 8 GPUs"):
        compare(CompareConfig(preset="paper", output=str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()


def test_arms_stand_in_one_order() -> None:
    assert load_preset(CompareConfig(arms="oracle,base")).arms == ("base", "oracle")
    assert load_preset(CompareConfig()).arms == USUAL_ARMS


def test_a_launcher_of_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(DuologueError, match=r"runs in one process, but 2 were launched\. Start it without a launcher"):
        compare(CompareConfig(output=str(tmp_path / "out")))
    assert not (tmp_path / "out").exists()
