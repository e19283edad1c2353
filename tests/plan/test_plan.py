"""Plans of runs: from files, presets and flags to sections, findings and JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from duologue.analysis.plan.relief import bottleneck, findings
from duologue.analysis.plan.run import Run, run_of_file, run_of_preset
from duologue.analysis.plan.sections import SIDE_BY_SIDE, TOGETHER, plan, playing_gpus
from duologue.analysis.plan.table import number, to_json
from duologue.cli.app import app
from duologue.errors import DuologueError
from duologue.types import Episode, Span, StopReason

OnPaper = Callable[..., Run]
SHAPE = [
    "parameters=1e9",
    "trained_parameters=1e7",
    "layers=10",
    "hidden=1000",
    "kv_heads=2",
    "head_size=50",
    "vocabulary=5000",
]
MACHINE = ["gpus=2", "memory_gb=40", "tflops=100"]


def flags(name: str, values: list[str]) -> list[str]:
    return [part for value in values for part in (f"--{name}", value)]


def test_every_number_stands_by_a_formula(on_paper: OnPaper) -> None:
    for section in plan(on_paper()).sections:
        for line in section.lines:
            assert line.formula
            assert len(line.values) == len(section.columns)


def test_a_step_by_hand(on_paper: OnPaper) -> None:
    made = plan(on_paper(groups_per_step=4, group_size=4))
    assert made.tokens.value("turns", "value") == 64
    assert made.tokens.value("sampled", "value") == 16 * 400
    assert made.tokens.value("trained on", "value") == 16 * 1000
    assert made.prefix.value("prompt tokens computed", "none") == 16 * (4 * 150 + 250 * 6)
    assert made.prefix.value("prompt tokens computed", "dialogue") == 16 * (150 + 3 * 151)
    assert made.network.value("one engine, a sync", "adapters") == pytest.approx(4 * 1e7 / 1e9)
    assert made.network.value("one engine, a sync", "every weight") == pytest.approx(2 * 1e9 / 1e9)
    training = (6 * 1e9 + 6 * 1e7) * 16_000 / (100e12 * 0.3)
    assert made.seconds.value("training", TOGETHER) == pytest.approx(training / 4)


def test_sums_add_up(on_paper: OnPaper) -> None:
    made = plan(on_paper())
    names = ("weights", "gradients", "optimiser", "activations", "logits", "cache", "user")
    for way in made.memory.columns:
        total = sum(made.memory.value(name, way) for name in names)
        assert made.memory.value("sum", way) == pytest.approx(total)
        assert made.memory.value("free", way) == pytest.approx(40 - total)
    parts = ("reading prompts", "sampling", "user", "training", "exchange", "sync")
    step = sum(made.seconds.value(name, TOGETHER) for name in parts)
    assert made.seconds.value("step", TOGETHER) == pytest.approx(step)
    assert made.seconds.value("run", TOGETHER) == pytest.approx(100 * step / 3600)


def test_side_by_side_ends_with_the_slower_half(on_paper: OnPaper) -> None:
    run = on_paper()
    seconds = plan(run).seconds
    plays = sum(seconds.value(name, SIDE_BY_SIDE) for name in ("reading prompts", "sampling", "user"))
    trains = seconds.value("training", SIDE_BY_SIDE) + seconds.value("exchange", SIDE_BY_SIDE)
    step = max(plays, trains) + seconds.value("sync", SIDE_BY_SIDE)
    assert seconds.value("step", SIDE_BY_SIDE) == pytest.approx(step)
    assert seconds.value("GPUs that play", SIDE_BY_SIDE) == playing_gpus(run)
    assert seconds.value("GPUs that train", SIDE_BY_SIDE) == 4 - playing_gpus(run)


@pytest.mark.parametrize("gpus", [0, 1])
def test_one_device_splits_and_sends_nothing(on_paper: OnPaper, gpus: int) -> None:
    made = plan(on_paper({"gpus": gpus}, dtype="float32"))
    assert made.seconds.columns == (TOGETHER,)
    assert made.memory.columns == (TOGETHER, "every weight")
    assert all(made.network.value(name, "adapters") == 0 for name in ("engines", "sync", "gradients, a step"))


def test_more_gpus_and_sharding_need_less_of_each(on_paper: OnPaper) -> None:
    few, many = (plan(on_paper({"gpus": gpus}, {"trained_parameters": 1e9})) for gpus in (2, 8))
    assert few.memory.columns == (TOGETHER, "together, FSDP", "plays", "trains")
    for name in ("gradients", "optimiser", "cache"):
        assert few.memory.value(name, "together, FSDP") > many.memory.value(name, "together, FSDP")
    assert few.seconds.value("step", TOGETHER) > many.seconds.value("step", TOGETHER)


def test_what_limits_and_what_relieves(on_paper: OnPaper) -> None:
    run = on_paper({"generation_utilisation": 0.01})
    assert bottleneck(plan(run)) == "sampling"
    assert "Most time goes to sampling" in findings(run, plan(run))[-1]
    busy = on_paper({"generation_utilisation": 1, "training_utilisation": 0.001})
    assert bottleneck(plan(busy)) == "training"
    slow = on_paper({"network_gbs": 0.001}, {"trained_parameters": 1e9})
    assert bottleneck(plan(slow)) == "exchange"


def test_what_does_not_fit_is_named_with_its_largest_part(on_paper: OnPaper) -> None:
    run = on_paper({"memory_gb": 1})
    first = findings(run, plan(run))[0]
    assert first.startswith("together: ")
    assert "do not fit into 1. The largest part is weights, 2.04 GB. Set dtype: bfloat16" in first
    assert not [text for text in findings(on_paper(), plan(on_paper())) if "fit" in text]


def test_limits_that_leave_the_user_nothing_are_said(on_paper: OnPaper) -> None:
    run = on_paper(max_tokens_per_turn=250)
    assert any("leave the user nothing" in text for text in findings(run, plan(run)))


@pytest.mark.parametrize(("method", "turns"), [("interactive", 5), ("static", 1), ("calibrated", 5)])
def test_presets_have_the_arms(method: str, turns: int) -> None:
    run = run_of_preset("MathChat-v0", "tiny", {"method": method, "machine": {"tflops": 3}})
    assert run.lengths.turns == turns
    assert (run.machine.tflops, run.machine.memory_gb) == (3, 4)
    assert plan(run).tokens.value("trained on", "value") == pytest.approx(64 * 400)


def test_a_preset_and_its_dry_run_agree() -> None:
    from duologue.analysis.compare.config import CompareConfig
    from duologue.analysis.compare.needs import hours, memory
    from duologue.analysis.compare.run import planned

    compared = planned(CompareConfig(preset="tiny"))
    made = plan(run_of_preset("MathChat-v0", "tiny"))
    assert made.seconds.value("run", TOGETHER) == pytest.approx(hours(compared)["naive"])
    assert made.memory.value("sum", TOGETHER) == pytest.approx(memory(compared.preset, full=True).total / 1e9)


@pytest.mark.parametrize(("env", "turns"), [("MathChat-v0", 8), ("MediumDocEditChat-v0", 6)])
def test_turns_are_the_environments_where_none_are_given(on_paper: OnPaper, env: str, turns: int) -> None:
    assert on_paper(env=env, max_turns=None).lengths.turns == turns


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"method": "statc"}, "no method 'statc'. Did you mean 'static'"),
        ({"stepz": 3}, "no key 'stepz'. Did you mean 'steps'"),
        ({"machine": {}}, "machine is not described. Give --machine"),
        ({"machine": "big"}, "machine holds 'big'"),
        ({"machine": {"gpus": 1}}, "machine lacks memory_gb, tflops"),
        ({"shape": {"parameters": 3}}, "shape lacks trained_parameters, layers"),
        ({"method": "static"}, "no dialogues to take histories from"),
        ({"env": "MathsChat-v0"}, "no environment 'MathsChat-v0'"),
        ({"model": "/no/such/folder", "shape": {}}, r"The shape of '/no/such/folder' cannot be read.*by hand"),
    ],
)
def test_mistakes(rows: dict[str, Any], message: str) -> None:
    shape = dict(value.split("=") for value in SHAPE)
    numbers = {name: float(value) if "param" in name else int(value) for name, value in shape.items()}
    good = {"machine": {"gpus": 1, "memory_gb": 80, "tflops": 9}, "shape": numbers}
    with pytest.raises(DuologueError, match=message.replace("?", r"\?")):
        run_of_file({**good, **rows})


def test_the_command_reads_a_file_of_train_and_writes_json(tmp_path: Path) -> None:
    file, out = tmp_path / "train.yaml", tmp_path / "deep" / "plan.json"
    file.write_text(yaml.safe_dump({"steps": 10, "max_turns": 3, "learning_rate": "1e-5"}))
    done = CliRunner().invoke(
        app, ["plan", "--config", str(file), *flags("machine", MACHINE), *flags("shape", SHAPE), "--json", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "Most time goes to" in done.output
    written = json.loads(out.read_text())
    run = run_of_file({**yaml.safe_load(file.read_text())}, {"machine": read(MACHINE), "shape": read(SHAPE)})
    assert written["sections"] == to_json(plan(run).sections)
    assert written["bottleneck"] == bottleneck(plan(run))


def read(pairs: list[str]) -> dict[str, Any]:
    return {name: json.loads(value) for name, value in (pair.split("=") for pair in pairs)}


def test_the_command_takes_lengths_from_episodes(tmp_path: Path) -> None:
    row = Episode(
        "MathChat-v0",
        "t",
        0,
        (),
        StopReason.TURN_LIMIT,
        1.0,
        prompt_ids=(1,) * 7,
        completion_ids=(1,) * 5,
        completion_mask=(1, 1, 0, 0, 1),
        logprobs=(0.0,) * 5,
        spans=(Span(0, 2, 0), Span(4, 5, 0)),
    )
    log, out = tmp_path / "episodes.jsonl", tmp_path / "plan.json"
    log.write_text(json.dumps({"step": 0, **row.to_json()}) + "\n")
    done = CliRunner().invoke(app, ["plan", "--preset", "tiny", "--episodes", str(log), "--json", str(out)])
    assert done.exit_code == 0, done.output
    tokens = {line["name"]: line["values"]["value"] for line in json.loads(out.read_text())["sections"][0]["lines"]}
    assert (tokens["turns"], tokens["sampled"], tokens["trained on"]) == (64 * 2, 64 * 3, 64 * 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give one of both: --config FILE.yaml, or --preset"),
        (["--preset", "tiny", "--config", "x.yaml"], "Give one of both"),
        (["--preset", "tiny", "--method", "oracle"], "no arm of that method"),
        (["--config", "none.yaml"], "Cannot read the file 'none.yaml'"),
        (["--preset", "tiny", "--machine", "gpus"], "--machine gpus has no value"),
        (["--preset", "tiny", "--episodes", "none.jsonl"], "no file 'none.jsonl'"),
    ],
)
def test_mistakes_at_the_command_line(arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["plan", *arguments])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(("value", "text"), [(1234567.8, "1,234,568"), (0.01234, "0.0123"), (12.345, "12.3"), (8, "8")])
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text
