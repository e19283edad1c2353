"""Stages: pieces of work with a folder each, done once, in order, whatever interrupts them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from duologue.disk import write_whole
from duologue.errors import DuologueError
from duologue.json_files import read_object

Facts = dict[str, Any]
"""What a stage tells about itself, as JSON."""
_AGAIN = "Remove {}: the stage is then done again."


@dataclass(frozen=True, slots=True)
class Stage:
    """A piece of work. Its folder is its name under the output folder."""

    name: str
    config: Any
    """The configuration dataclass: it and those of the needed stages decide whether finished work is still valid."""
    run: Callable[[], Facts]
    needs: tuple[str, ...] = ()
    """Names of earlier stages that it reads."""
    resumes: bool = False
    """True if ``run`` itself goes on from what its folder holds; else the folder is emptied first."""

    @property
    def kind(self) -> str:
        """Return what stages of different seeds share: the part of the name after the seed."""
        first, *rest = self.name.split("/")
        return rest[0] if rest else first


@dataclass(frozen=True, slots=True)
class Done:
    """What ``done.json`` says."""

    seconds: float
    """Of the attempt that finished."""
    attempts: int
    """Above 1 after an interruption; then the seconds are only those of the last attempt."""
    facts: Facts


OnStage = Callable[[Stage, Done | None, Mapping[str, Done]], None]
"""Called with a stage as it begins (None) and as it ends, and with all that is done."""


def run_stages(root: Path, stages: Sequence[Stage], on_stage: OnStage | None = None) -> dict[str, Done]:
    """Do what is not done yet.

    Args:
        root: the output folder.
        stages: each after those that it needs.
        on_stage: follows the work.

    Returns:
        What is done, by name of stage.

    Raises:
        DuologueError: if a stage was done or begun with other settings, before anything is touched.
    """
    inputs = _inputs(root, stages)
    for stage in stages:
        _check_same(root / stage.name, stage.name, inputs[stage.name])
    done: dict[str, Done] = {}
    for stage in stages:
        folder = root / stage.name
        found = read_done(folder)
        if found is None:
            if on_stage:
                on_stage(stage, None, done)
            found = _perform(stage, folder, inputs[stage.name])
            done[stage.name] = found
            if on_stage:
                on_stage(stage, found, done)
        done[stage.name] = found
    return done


def read_done(folder: Path) -> Done | None:
    """Return what a finished stage says; None if it is not finished."""
    path = folder / "done.json"
    return Done(**read_object(path, _AGAIN.format(folder))) if path.is_file() else None


def seconds_left(stages: Sequence[Stage], done: Mapping[str, Done]) -> float | None:
    """Estimate the least that the rest takes: stages of a kind that never ran count 0; None = none of them ran."""
    if not done:
        return None
    by_kind: dict[str, list[float]] = {}
    for stage in stages:
        if stage.name in done:
            by_kind.setdefault(stage.kind, []).append(done[stage.name].seconds)
    means = {kind: sum(times) / len(times) for kind, times in by_kind.items()}
    rest = [stage.kind for stage in stages if stage.name not in done]
    return sum(means.get(kind, 0.0) for kind in rest) if not rest or means.keys() & set(rest) else None


def _perform(stage: Stage, folder: Path, inputs: Mapping[str, Any]) -> Done:
    marker = folder / "inputs.json"
    attempts = 1 + (read_object(marker, _AGAIN.format(folder))["attempts"] if marker.is_file() else 0)
    if not stage.resumes and marker.is_file():
        _empty(folder, marker)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(marker, {**inputs, "attempts": attempts})
    started = time.monotonic()
    with _own_randomness(stage.name):
        facts = stage.run()
    done = Done(time.monotonic() - started, attempts, facts)
    write_json(folder / "done.json", asdict(done))
    return done


def _empty(folder: Path, marker: Path) -> None:
    """Remove all but the file that says whose folder it is, so that a process may die here, too."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != marker:
            path.unlink()


@contextmanager
def _own_randomness(name: str) -> Iterator[None]:
    """Begin a stage with a random state of its own, so that it does not depend on what ran before in the process."""
    import torch

    with torch.random.fork_rng(devices=[]):
        seed = int(sha256(name.encode()).hexdigest()[:8], 16)
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        yield


def _inputs(root: Path, stages: Sequence[Stage]) -> dict[str, dict[str, Any]]:
    """Return settings and hash of each stage. Paths count from the output folder, so that it can be moved.

    Settings at their default are not hashed: a later version may know more of them, and finished work is still valid.
    """
    made: dict[str, dict[str, Any]] = {}
    for stage in stages:
        text = json.dumps(asdict(stage.config), sort_keys=True).replace(json.dumps(str(root))[1:-1], "OUTPUT")
        settings = json.loads(text)
        changed = {name: value for name, value in settings.items() if name not in _defaults(stage.config, settings)}
        upstream = [made[name]["hash"] for name in stage.needs]
        digest = sha256(json.dumps([changed, upstream]).encode()).hexdigest()[:16]
        made[stage.name] = {"settings": settings, "needs": list(stage.needs), "hash": digest}
    return made


def _defaults(config: Any, settings: Mapping[str, Any]) -> set[str]:
    """Return the names of settings that are at their default."""
    made = {f.name: f.default_factory() for f in fields(config) if f.default_factory is not MISSING}
    usual = {f.name: f.default for f in fields(config) if f.default is not MISSING} | made
    return {name for name, value in json.loads(json.dumps(usual)).items() if settings[name] == value}


def _check_same(folder: Path, name: str, inputs: Mapping[str, Any]) -> None:
    marker = folder / "inputs.json"
    if not marker.is_file():
        if folder.is_dir() and any(path.is_file() and path.suffix != ".partial" for path in folder.iterdir()):
            raise DuologueError(f"{folder} holds files of something else. Give another --output.")
        return
    there = read_object(marker, _AGAIN.format(folder))
    moved = any(inputs["settings"].get(name) != value for name, value in there["settings"].items())
    if there["hash"] != inputs["hash"] or moved:
        raise DuologueError(
            f"The stage {name} was made with other settings ({_changes(there, inputs)}). Set these back, give another "
            f"--output, or remove {folder} and all that was made from it."
        )


def _changes(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Name the settings that differ; if none does, an earlier stage does."""
    old, new = there["settings"], here["settings"]
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if not names:
        return f"or from another {' or '.join(here['needs']) or 'version'}"
    return ", ".join(f"{name}: {old.get(name)!r} -> {new.get(name)!r}" for name in names)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all."""
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
