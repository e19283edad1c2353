"""The whole comparison at its smallest: every part real, and the same numbers whatever interrupts it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from duologue.analysis.compare import CompareConfig, compare
from duologue.analysis.compare import run as run_module
from duologue.analysis.compare.run import planned
from duologue.analysis.compare.stages import Done, Stage
from duologue.disk import DiskFullError
from duologue.engines.hf import TransformersEngine
from duologue.errors import DuologueError

PRESET = str(Path(__file__).with_name("tiny.yaml"))
ARMS = "base,clone,static,naive,calibrated"
HASTY = {"hasty": "scripted:hasty-math,haste=0.2"}


class Killed(BaseException):
    """Stands for a process that dies: nothing in duologue catches it."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def config(output: Path, **changes: Any) -> CompareConfig:
    return CompareConfig(preset=PRESET, output=str(output), **changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A comparison without interruption."""
    output = tmp_path_factory.mktemp("whole")
    return output, compare(config(output, arms=ARMS, agent=HASTY))


@pytest.mark.slow
def test_it_writes_everything(whole: tuple[Path, dict[str, Any]]) -> None:
    output, found = whole
    assert {path.name for path in output.iterdir() if path.is_file()} == {"results.json", "table.md", "transcripts.md"}
    figures = {"score.png", "turns.png", "score_by_turn.png", "learning_curves.png", "held_out_curves.png"}
    figures |= {"shift.png", "gap_by_shift.png"}
    assert {path.name for path in (output / "figures").iterdir()} == figures
    assert json.loads((output / "results.json").read_text()) == json.loads(json.dumps(found))
    table, played = (output / "table.md").read_text(), (output / "transcripts.md").read_text()
    for policy in found["policies"]:
        assert f"\n| {policy} |" in table
        assert f"## {policy}\n" in played


@pytest.mark.slow
def test_every_number_has_what_it_depends_on(whole: tuple[Path, dict[str, Any]]) -> None:
    _, found = whole
    assert found["policies"] == ["base", "hasty", "clone", "static", "naive", "calibrated"]
    assert set(found["matrix"]["naive"]) == {"held_out", "human", "naive", "calibrated"}
    for arm in found["arms"].values():
        assert arm["score"]["n"] == 6
        assert arm["unscored"] == 0
        assert len(arm["score"]) == 4
    for name in ("naive", "calibrated"):
        assert found["arms"][name]["gap"]["n"] == 3
        assert found["arms"][name]["cost"]["steps"] == 2
        assert found["arms"][name]["cost"]["sampled_tokens"] > 0
        assert [row["step"] for row in found["curves"][name]] == [1, 2]
    for arm in ("static", "naive", "calibrated"):
        assert [(row["step"], row["score"]["n"]) for row in found["held_out_curves"][arm]] == [(1, 4), (2, 6)]
    assert set(found["fidelity"]["seed-0"]) == {"naive", "calibrated"}
    assert found["fidelity"]["seed-0"]["naive"]["replayed"]["n"] > 0
    points = {point["arm"]: point for point in found["shift"]["points"]}
    assert {arm: point["pair"] for arm, point in points.items()} == {
        "clone": "policy",
        "static": "policy",
        "naive": "simulator",
        "calibrated": "simulator",
    }
    assert all(len(point["states"]) == 3 for point in points.values())
    assert "n:6" in found["facts"]["seed-0/evaluate/naive--held_out"]["signature"]
    assert found["arms"]["hasty"]["tokens"] is None
    assert found["calibration"]["seed-0"]
    assert len(found["score_by_turn"]["base"]) == 3
    assert found["score_by_turn"]["hasty"][-1] == pytest.approx(found["arms"]["hasty"]["score"]["value"])
    assert found["facts"]["seed-0/static"]["groups_per_step"] >= 2


@pytest.mark.slow
def test_killed_between_and_inside_stages_it_comes_to_the_same_numbers(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at a boundary, then inside RL after its first checkpoint, then inside an evaluation."""
    given = config(tmp_path / "out", arms="base,static,naive")

    def at(kind: str) -> Any:
        def follow(stage: Stage, ended: Done | None, done: Any) -> None:
            if stage.kind == kind and ended is None:
                raise Killed

        return follow

    with pytest.raises(Killed):
        compare(given, at("static"))
    with monkeypatch.context() as patch:
        die_after(patch, tmp_path / "out" / "seed-0" / "naive" / "checkpoint-1")
        with pytest.raises(Killed):
            compare(given)
    with monkeypatch.context() as patch:
        die_after(patch, tmp_path / "out" / "seed-0" / "evaluate" / "static--held_out" / "run.json")
        with pytest.raises(Killed):
            compare(given)
    found = compare(given)
    assert found["timing"]["interrupted"] == ["seed-0/evaluate/static--held_out", "seed-0/naive"]
    for policy in ("base", "static", "naive"):
        assert found["arms"][policy] == whole[1]["arms"][policy]
        assert found["matrix"][policy].items() <= whole[1]["matrix"][policy].items()
        assert found["curves"].get(policy) == whole[1]["curves"].get(policy)
    assert {name: facts for name, facts in whole[1]["facts"].items() if name in found["facts"]} == found["facts"]
    assert weights(tmp_path / "out") == weights(whole[0])


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_to_the_same_numbers(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """``kill -9`` of the command, once training with a user has begun, then the same command again."""
    output = tmp_path / "out"
    command = [sys.executable, "-m", "duologue", "compare", "--preset", PRESET, "--arms", "base,naive"]
    command += ["--output", str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and not (output / "seed-0" / "naive" / "inputs.json").exists():
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    assert not (output / "results.json").exists()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    found = json.loads((output / "results.json").read_text())
    expected = json.loads(json.dumps(whole[1]))
    for policy in ("base", "naive"):
        assert found["arms"][policy] == expected["arms"][policy]
        assert found["matrix"][policy].items() <= expected["matrix"][policy].items()


@pytest.mark.slow
def test_a_full_disk_ends_a_stage_and_the_next_call_comes_to_the_same_numbers(
    whole: tuple[Path, dict[str, Any]], small_disk: Any
) -> None:
    """With more and more room, from none at all; every refusal keeps the stages that are done."""
    given, room, done = config(small_disk.folder / "out", arms="base,naive"), 0, [0]
    while True:
        try:
            with small_disk.full(room):
                found = compare(given)
            break
        except DiskFullError as error:
            said = str(error)
        assert re.search(r"could not be written: .* Then run the same command( without --overwrite)?: .*\.$", said)
        done.append(len(list(small_disk.folder.rglob("done.json"))))
        room = (room or 8192) * 2
    assert done == sorted(done)
    assert len(set(done)) > 2
    expected = json.loads(json.dumps(whole[1]))
    for policy in ("base", "naive"):
        assert found["arms"][policy] == expected["arms"][policy]
        assert found["matrix"][policy].items() <= expected["matrix"][policy].items()


def weights(output: Path) -> list[bytes]:
    """Bytes of what was trained, as files: equal to the last bit."""
    folders = ("base/model", "seed-0/static/final", "seed-0/naive/final")
    return [(output / folder / "model.safetensors").read_bytes() for folder in folders]


def die_after(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Make the engine die at its first turn of generation once a path exists."""
    generate = TransformersEngine.generate

    def dying(self: Any, *arguments: Any, **options: Any) -> Any:
        if path.exists():
            raise Killed
        return generate(self, *arguments, **options)

    patch.setattr(TransformersEngine, "generate", dying)


@pytest.mark.slow
def test_finished_work_is_not_done_again_and_not_mixed(
    whole: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    output, found = whole
    again = compare(config(output, arms=ARMS, agent=HASTY))
    assert again == found
    with pytest.raises(DuologueError, match=r"seed-0/static was made with other settings \(steps: 2 -> 3\)"):
        compare(config(output, arms=ARMS, steps=3))


def test_a_dry_run_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from duologue.cli import app

    monkeypatch.setattr(run_module, "run_stages", None)
    result = CliRunner().invoke(app, ["compare", "--preset", PRESET, "--dry-run", "--output", str(tmp_path / "x")])
    assert result.exit_code == 0, result.output
    assert (
        "| evaluate | 28 | 6 policies x 4 users x 1 seeds, and 4 of checkpoints and along the axis |" in result.output
    )
    assert not (tmp_path / "x").exists()


def test_the_plan_of_the_test_is_small(tmp_path: Path) -> None:
    assert len(planned(config(tmp_path)).stages) == 3 + 6 + 24 + 4 + 5 + 3
