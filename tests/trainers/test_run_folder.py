import json
from dataclasses import replace
from pathlib import Path

import pytest
from accelerate import Accelerator

from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.run_folder import claim, how_to_go_on, last_checkpoint, written_aside


def checkpoint(folder: Path, step: int, *, complete: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    if complete:
        (path / "trainer_state.json").write_text("{}")
    return path


def test_the_newest_complete_checkpoint_is_found_by_number(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    checkpoint(tmp_path, 9)
    newest = checkpoint(tmp_path, 10)
    checkpoint(tmp_path, 11, complete=False)
    assert last_checkpoint(tmp_path) == newest


def test_a_run_goes_on_from_its_own_checkpoint_even_with_more_steps(tmp_path: Path) -> None:
    config = InteractiveConfig(output=str(tmp_path), steps=4)
    assert claim(config) is None
    newest = checkpoint(tmp_path, 2)
    assert claim(replace(config, steps=8, report_to="tensorboard")) == newest
    assert json.loads((tmp_path / "config.json").read_text())["steps"] == 8


def test_servers_may_move_and_users_may_not(tmp_path: Path) -> None:
    user = "calibrated:sglang:http://{}:30000#runs/{}"
    config = InteractiveConfig(
        output=str(tmp_path), simulator=user.format("one.example", "user"), engine="sglang:http://one.example:1"
    )
    claim(config)
    newest = checkpoint(tmp_path, 2)
    moved = replace(config, simulator=user.format("two.example", "user"), engine="sglang:http://two.example:1")
    assert claim(moved) == newest
    for other in (user.format("two.example", "other"), "calibrated:runs/user", "scripted"):
        with pytest.raises(DuologueError, match=r"simulator: .* choose another output"):
            claim(replace(moved, simulator=other))


def test_another_configuration_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    config = InteractiveConfig(output=str(tmp_path))
    claim(config)
    checkpoint(tmp_path, 2)
    with pytest.raises(DuologueError, match=r"learning_rate: 1e-05 -> 0.1.*choose another output"):
        claim(replace(config, learning_rate=0.1))
    assert json.loads((tmp_path / "config.json").read_text())["learning_rate"] == 1e-5


def test_without_resume_checkpoints_are_not_overwritten(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    with pytest.raises(DuologueError, match="choose another output"):
        claim(InteractiveConfig(output=str(tmp_path), resume=False))


@pytest.mark.parametrize("left", ["", "{", '{"global_step": 2', "[]"])
def test_a_checkpoint_whose_last_file_was_cut_is_none(tmp_path: Path, left: str) -> None:
    whole = checkpoint(tmp_path, 2)
    (checkpoint(tmp_path, 4) / "trainer_state.json").write_text(left)
    assert last_checkpoint(tmp_path) == whole


def test_what_was_being_written_is_removed_when_a_run_begins(tmp_path: Path) -> None:
    checkpoint(tmp_path / "partial", 2)
    assert claim(InteractiveConfig(output=str(tmp_path))) is None
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_a_folder_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "final" / "older").mkdir(parents=True)
    with written_aside(tmp_path, "final", Accelerator(cpu=True)) as aside:
        aside.mkdir(parents=True)
        (aside / "new").write_text("x")
        assert (tmp_path / "final" / "older").is_dir()
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["final", "final/new"]


def test_a_folder_that_failed_leaves_what_was_there(tmp_path: Path) -> None:
    kept = checkpoint(tmp_path, 2)

    def fail() -> None:
        with written_aside(tmp_path, "checkpoint-2", Accelerator(cpu=True)) as aside:
            aside.mkdir(parents=True)
            (aside / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert sorted(tmp_path.rglob("*")) == [kept, kept / "trainer_state.json"]


def test_how_to_go_on(tmp_path: Path) -> None:
    config = InteractiveConfig(output=str(tmp_path))
    assert how_to_go_on(config).startswith("run the same command: it begins again")
    checkpoint(tmp_path, 12)
    assert how_to_go_on(config) == "run the same command: it goes on from step 12."
    assert how_to_go_on(replace(config, resume=False)) == "run the same command with resume: it goes on from step 12."
