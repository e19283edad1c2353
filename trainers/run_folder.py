"""A training run's folder: which configuration it belongs to, and where it can go on."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from duologue.disk import write_whole
from duologue.errors import DuologueError
from duologue.json_files import read_object
from duologue.trainers.config import InteractiveConfig

ASIDE = "partial"
"""Folder in a run's, for what is being written."""
_FREE = {"resume", "steps", "save_steps", "report_to", "output", "max_empty_steps", "dialogues", "held_out", "engine"}
_FREE |= {"weight_sync"}
"""Fields that a resumed run may change: none of them alters the steps that were done. Files may move; their content,
where it is learned from, is compared by its hash."""
_SERVER = re.compile(r"(?<=^calibrated:sglang:)[^#]*")
"""Where a served user is, which may change as ``engine`` may."""


def claim(config: InteractiveConfig, data: str | None = None) -> Path | None:
    """Note the configuration in the output folder and return the checkpoint to go on from, if there is one.

    Args:
        config: the run's.
        data: hash of the files that the run learns from, if there are any.

    Raises:
        DuologueError: if the folder has checkpoints of another configuration, or ``resume`` is off and it has any.
    """
    folder = Path(config.output)
    found = last_checkpoint(folder)
    note = folder / "config.json"
    if found and not config.resume:
        raise DuologueError(
            f"{folder} holds checkpoints up to {found.name}. Go on from them with resume, or choose another output."
        )
    ours = json.loads(json.dumps({**asdict(config), **({"data": data} if data else {})}))
    if found and note.is_file():
        theirs = read_object(note, "Choose another output, or remove the folder.")
        changed = [n for n in ours if n not in _FREE and _compared(ours[n]) != _compared(theirs.get(n))]
        if changed:
            listed = ", ".join(f"{name}: {theirs.get(name)!r} -> {ours[name]!r}" for name in changed)
            raise DuologueError(f"{folder} holds another run ({listed}). Set these back, or choose another output.")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / ASIDE, ignore_errors=True)
    write_whole(note, json.dumps(ours, indent=2) + "\n")
    return found


def _compared(value: Any) -> Any:
    return _SERVER.sub("", value) if isinstance(value, str) else value


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run, if there is one."""
    return max(filter(_is_whole, folder.glob("checkpoint-*")), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """Return the number of optimiser steps that a checkpoint holds."""
    return int(checkpoint.name.rpartition("-")[2])


def how_to_go_on(config: InteractiveConfig) -> str:
    """Return the end of a message about a run that had to stop: what to do, and what it does then."""
    found = last_checkpoint(Path(config.output))
    if found is None:
        return "run the same command: it begins again, as there is no checkpoint yet (save_steps makes some)."
    return f"run the same command{'' if config.resume else ' with resume'}: it goes on from step {step_of(found)}."


@contextmanager
def written_aside(folder: Path, name: str, accelerator: Any) -> Iterator[Path]:
    """Yield a place for ``folder/name``, which gets there once it is whole; a failure leaves what was there.

    Args:
        folder: the run's.
        name: of the folder in it that is to be written.
        accelerator: of the trainer; all its processes must enter the block and all must leave it.
    """
    aside, place = folder / ASIDE / name, folder / name
    try:
        yield aside
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            _settle(aside, place)
        accelerator.wait_for_everyone()
        if accelerator.is_local_main_process and aside.is_dir():  # a machine that shares no disk with the first
            with suppress(FileNotFoundError):  # or one that heard late of the first one's move
                aside.rename(place)
    except BaseException:
        shutil.rmtree(aside.parent, ignore_errors=True)
        raise


def _settle(made: Path, place: Path) -> None:
    for path in made.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())  # some file systems say only now that they are full
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)
    with suppress(OSError):
        made.parent.rmdir()


def _is_whole(checkpoint: Path) -> bool:
    """Return True if the file that is written last is whole."""
    try:
        return isinstance(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False
