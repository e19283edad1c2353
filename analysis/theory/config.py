"""What a person sets of the theory's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.errors import DuologueError

MOST_TURNS = 512


def _help(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class TheoryConfig:
    """How long the dialogues are, and how many learners are trained."""

    horizons: str = _help("Numbers of turns, with commas between.", "2,4,8,16,32")
    seeds: int = _help("Learners of each kind at each horizon, with seeds 0, 1, …", 20)
    output: str = _help("Folder for theory.json, table.md and theory.png.", "runs/theory")

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        if self.seeds < 1:
            raise DuologueError(f"seeds is {self.seeds}. Set it to 1 or more.")
        _ = self.turns

    @property
    def turns(self) -> tuple[int, ...]:
        """Return the horizons in order, each once.

        Raises:
            DuologueError: if they are no whole numbers from 1 to ``MOST_TURNS``.
        """
        given = [part.strip() for part in self.horizons.split(",")]
        if not all(part.isdecimal() and 1 <= int(part) <= MOST_TURNS for part in given):
            raise DuologueError(f"horizons is {self.horizons!r}. Write whole numbers up to {MOST_TURNS}, like 2,4,8.")
        return tuple(sorted({int(part) for part in given}))
