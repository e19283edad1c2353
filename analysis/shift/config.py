"""Configuration of ``duologue shift``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.analysis.config import RolloutConfig
from duologue.errors import DuologueError


def _help(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class ShiftConfig(RolloutConfig):
    """Logged contexts against those that a policy meets with a simulator and with the human, or a proxy."""

    logs: str = _help("JSONL file of logged dialogues: the contexts of static training.", "")
    simulator: str = _help("The user of training: scripted, prompted:MODEL, calibrated:FOLDER, …", "scripted:naive")
    human: str = _help("The user that the policy will meet, or a proxy.", "scripted:held-out")
    tasks: str | None = _help("Task source; the default is the logs' own tasks.", None)
    episodes: int = _help("Dialogues with each user, and at most so many of the logs, drawn with the seed.", 200)
    reference: str | None = _help("Model for likelihoods, such as 'default'; none by default, since it costs.", None)
    output: str = _help("Folder for shift.json, table.md, the figure and the dialogues.", "runs/shift")
    overwrite: bool = _help("Throw away the dialogues that the folder has.", False)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        RolloutConfig.__post_init__(self)
        if not self.logs:
            raise DuologueError("There are no logs. Give --logs FILE.jsonl, as duologue collect writes it.")
