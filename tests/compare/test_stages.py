"""Stages are done once, in order, whatever interrupts them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from duologue.analysis.compare.stages import Done, Stage, read_done, run_stages, seconds_left
from duologue.errors import DuologueError


@dataclass(frozen=True)
class Work:
    output: str
    size: int = 1


class World:
    """Two stages, where the second reads the first, and a count of how often each ran."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[str] = []
        self.fails = ""

    def stages(self, size: int = 1, resumes: bool = False) -> list[Stage]:
        first, second = self.root / "first", self.root / "seed-0" / "second"
        return [
            Stage("first", Work(str(first), size), partial(self.run, first)),
            Stage("seed-0/second", Work(str(second)), partial(self.run, second), ("first",), resumes),
        ]

    def run(self, folder: Path) -> dict[str, Any]:
        self.ran.append(folder.name)
        left = folder / "half"
        found = left.exists()
        left.write_text("x")
        if folder.name == self.fails:
            raise KeyboardInterrupt
        return {"found": found, "drawn": float(torch.rand(1))}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "out")


def test_each_runs_once(world: World) -> None:
    done = run_stages(world.root, world.stages())
    assert world.ran == ["first", "second"]
    assert run_stages(world.root, world.stages()) == done
    assert world.ran == ["first", "second"]
    assert {work.attempts for work in done.values()} == {1}


@pytest.mark.parametrize("resumes", [False, True])
def test_an_interrupted_stage_starts_over_or_goes_on(world: World, resumes: bool) -> None:
    world.fails = "second"
    with pytest.raises(KeyboardInterrupt):
        run_stages(world.root, world.stages(resumes=resumes))
    world.fails = ""
    done = run_stages(world.root, world.stages(resumes=resumes))
    assert world.ran == ["first", "second", "second"]
    assert done["seed-0/second"].facts["found"] is resumes
    assert (done["first"].attempts, done["seed-0/second"].attempts) == (1, 2)


def test_randomness_depends_on_the_stage_alone(world: World, tmp_path: Path) -> None:
    whole = run_stages(world.root, world.stages())
    other = World(tmp_path / "elsewhere")
    other.fails = "second"
    with pytest.raises(KeyboardInterrupt):
        run_stages(other.root, other.stages())
    torch.rand(7)
    other.fails = ""
    state = torch.get_rng_state()
    again = run_stages(other.root, other.stages())
    assert [again[n].facts["drawn"] for n in whole] == [whole[n].facts["drawn"] for n in whole]
    assert torch.equal(state, torch.get_rng_state())


def test_other_settings_are_refused_before_anything_runs(world: World) -> None:
    run_stages(world.root, world.stages())
    with pytest.raises(DuologueError, match=r"stage first was made with other settings \(size: 1 -> 2\)"):
        run_stages(world.root, world.stages(size=2))
    assert world.ran == ["first", "second"]


def test_finished_work_outlives_a_new_setting_but_not_a_new_default(world: World) -> None:
    def stages(**changes: Any) -> list[Stage]:
        config = make_dataclass("Config", [(name, Any, field(default=value)) for name, value in changes.items()])()
        return [Stage("only", config, lambda: world.ran.append("only") or {})]  # type: ignore[func-returns-value]

    run_stages(world.root, stages(size=1))
    run_stages(world.root, stages(size=1, colour=None))
    assert world.ran == ["only"]
    with pytest.raises(DuologueError, match=r"other settings \(size: 1 -> 2\)"):
        run_stages(world.root, stages(size=2, colour=None))


def test_a_stage_made_from_another_is_refused(world: World) -> None:
    run_stages(world.root, world.stages())
    (world.root / "first" / "inputs.json").unlink()
    (world.root / "first" / "half").unlink()
    (world.root / "first" / "done.json").unlink()
    with pytest.raises(DuologueError, match=r"seed-0/second was made with other settings \(or from another first"):
        run_stages(world.root, world.stages(size=2))


def test_the_folder_can_be_moved(world: World, tmp_path: Path) -> None:
    run_stages(world.root, world.stages())
    moved = World(tmp_path / "moved")
    world.root.rename(moved.root)
    run_stages(moved.root, moved.stages())
    assert moved.ran == []


def test_files_of_something_else_are_left_alone(world: World) -> None:
    (world.root / "first").mkdir(parents=True)
    (world.root / "first" / "thesis.tex").write_text("years of work")
    with pytest.raises(DuologueError, match="something else"):
        run_stages(world.root, world.stages())
    assert (world.root / "first" / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("name", ["done.json", "inputs.json"])
def test_a_damaged_file_says_where_and_what_to_do(world: World, name: str) -> None:
    run_stages(world.root, world.stages())
    (world.root / "first" / name).write_text('{"sec')
    with pytest.raises(
        DuologueError, match=rf"first/{name}' holds no JSON.*Remove .*first: the stage is then done again"
    ):
        run_stages(world.root, world.stages())
    shutil.rmtree(world.root / "first")
    run_stages(world.root, world.stages())
    assert world.ran == ["first", "second", "first"]


def test_followers_hear_of_beginnings_and_ends(world: World) -> None:
    heard: list[tuple[str, bool, int]] = []
    run_stages(
        world.root, world.stages(), lambda stage, ended, done: heard.append((stage.kind, bool(ended), len(done)))
    )
    assert heard == [("first", False, 0), ("first", True, 1), ("second", False, 1), ("second", True, 2)]


def test_done_is_written_last_and_whole(world: World) -> None:
    run_stages(world.root, world.stages())
    row = json.loads((world.root / "first" / "done.json").read_text())
    assert read_done(world.root / "first") == Done(**row)
    assert read_done(world.root / "nowhere") is None
    assert not list(world.root.rglob("*.partial"))


def test_kinds() -> None:
    names = ["logs", "seed-1/naive", "seed-1/evaluate/naive--held_out"]
    make: Callable[[], dict[str, Any]] = dict
    assert [Stage(name, None, make).kind for name in names] == ["logs", "naive", "evaluate"]


def test_time_left_is_what_the_kind_usually_takes() -> None:
    stages = [Stage(name, None, dict) for name in ("logs", "seed-0/naive", "seed-1/naive", "seed-0/clone")]
    assert seconds_left(stages, {}) is None
    done = {"logs": Done(10.0, 1, {}), "seed-0/naive": Done(100.0, 1, {})}
    assert seconds_left(stages, done) == 100.0  # nobody knows yet what cloning takes
    assert seconds_left(stages[2:], {"seed-0/clone": Done(1.0, 1, {})}) is None
    assert seconds_left(stages[:1], {"logs": Done(1.0, 1, {})}) == 0.0


def test_a_stage_that_found_no_room_to_begin_can_begin_later(world: World, small_disk: Any) -> None:
    """Its folder may then exist without saying whose it is."""
    world.root = small_disk.folder / "out"
    with small_disk.full(0), pytest.raises(OSError, match=r"No space|too large"):
        run_stages(world.root, world.stages())
    assert world.ran == []
    (world.root / "first" / "inputs.json.partial").write_text("{")  # as a kill leaves it
    assert list(run_stages(world.root, world.stages())) == ["first", "seed-0/second"]


def test_a_stage_without_room_for_its_end_is_done_again(world: World, small_disk: Any) -> None:
    world.root = small_disk.folder / "out"
    run = world.run

    def fill(folder: Path) -> dict[str, Any]:
        return {**run(folder), "much": "x" * (7_000_000 if small_disk.own else 70_000)}

    world.run = fill  # type: ignore[method-assign]
    with small_disk.full(60_000), pytest.raises(OSError, match=r"No space|too large"):
        run_stages(world.root, world.stages())
    assert read_done(world.root / "first") is None
    world.run = run  # type: ignore[method-assign]
    assert run_stages(world.root, world.stages())["first"].attempts == 2


def test_a_process_may_die_while_it_empties_a_folder(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.fails = "second"
    with pytest.raises(KeyboardInterrupt):
        run_stages(world.root, world.stages())
    world.fails = ""
    folder = world.root / "seed-0" / "second"
    (folder / "model").mkdir()

    def die(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", die)
        with pytest.raises(KeyboardInterrupt):
            run_stages(world.root, world.stages())
    assert run_stages(world.root, world.stages())["seed-0/second"].facts["found"] is False
