"""What a calibration leaves beside its weights: everything that sampling must do as training did."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from duologue.disk import write_whole
from duologue.errors import DuologueError
from duologue.simulators._random import short_hash
from duologue.simulators.calibrated_layout import DECISIONS

FILE = "calibration.json"
_FORMAT = 1
"""Version of the layout in ``calibrated_layout``. A change there that old weights were not trained on raises it."""


@dataclass(frozen=True, slots=True)
class CalibrationNote:
    """How a user's model was made and how it is to be asked."""

    env: str
    """Environment, without version."""
    prompt: str
    """Jinja template of the oracle context."""
    max_new_tokens: int
    """Cap on one turn."""
    base: str
    """Signature of the model that it was trained from."""
    data_hash: str
    """16 hex digits of the training dialogues."""
    settings: dict[str, Any]
    """The configuration of the training."""

    def write(self, folder: Path) -> None:
        """Write the note into a folder. It is written last: a folder with one is complete."""
        more = {"format": _FORMAT, "decisions": list(DECISIONS), "prompt_hash": short_hash(self.prompt)}
        write_whole(folder / FILE, json.dumps({**asdict(self), **more}, indent=2, ensure_ascii=False) + "\n")


def read_note(folder: Path) -> CalibrationNote:
    """Read the note of a calibrated user's folder.

    Raises:
        DuologueError: if the folder is missing, holds no complete calibration, or one of another layout.
    """
    if not folder.is_dir():
        raise DuologueError(f"There is no folder {str(folder)!r} with a calibrated user. Make one: duologue calibrate.")
    file = folder / FILE
    if not file.is_file():
        raise DuologueError(
            f"{str(folder)!r} has no {FILE}, so it holds no calibrated user, or its training was broken off. Give the "
            "output folder of duologue calibrate."
        )
    try:
        row = json.loads(file.read_text(encoding="utf-8"))
        note = CalibrationNote(**{name: row[name] for name in CalibrationNote.__dataclass_fields__})
        same = row["format"] == _FORMAT and row["decisions"] == list(DECISIONS)
    except (ValueError, KeyError, TypeError) as error:
        raise DuologueError(f"{str(file)!r} cannot be read ({error!r}). Calibrate again.") from error
    if not same or row.get("prompt_hash") != short_hash(note.prompt):
        raise DuologueError(
            f"{str(file)!r} was written for another layout of dialogues, or edited since. Calibrate again."
        )
    return note
