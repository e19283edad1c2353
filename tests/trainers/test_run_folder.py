import json
from dataclasses import replace
from pathlib import Path

import pytest

from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.run_folder import claim, last_checkpoint


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
