"""A training run's folder: which configuration it belongs to, and where it can go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig

_FREE = ("resume", "steps", "save_steps", "report_to", "output", "max_empty_steps", "dialogues", "held_out", "engine")
"""Fields that a resumed run may change: none of them alters the steps that were done. Files may move; their content,
where it is learned from, is compared by its hash."""


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
        theirs: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        changed = [name for name in ours if name not in _FREE and ours[name] != theirs.get(name)]
        if changed:
            listed = ", ".join(f"{name}: {theirs.get(name)!r} -> {ours[name]!r}" for name in changed)
            raise DuologueError(f"{folder} holds another run ({listed}). Set these back, or choose another output.")
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(ours, indent=2) + "\n", encoding="utf-8")
    return found


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run, if there is one."""
    found = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
