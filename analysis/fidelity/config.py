"""Configuration of a measurement of fidelity."""

from __future__ import annotations

from dataclasses import dataclass

from duologue.errors import DuologueError

PEOPLE = "people"
"""Name of the column of people."""
AGENTS = {"MathChat": "scripted:hasty-math", "MediumDocEditChat": "scripted:hasty-writer"}
"""The assistant of free dialogues, by environment."""


@dataclass(frozen=True, slots=True)
class FidelityConfig:
    """What is measured, and against whom."""

    env: str
    """Environment id, for instance ``MathChat-v0``."""
    dialogues: str
    """People's dialogues (JSONL) that all columns are compared with."""
    simulators: tuple[str, ...]
    """Users, as ``make_simulator`` takes them; each is a column."""
    held_out: str | None = None
    """People's dialogues (JSONL) whose histories are replayed; None = half of ``dialogues``, taken from them."""
    agent: str | None = None
    """The assistant of free dialogues; None = the environment's scripted one."""
    dialogues_per_simulator: int | None = None
    """Free dialogues of each user; None = as many as are held out."""
    seed: int = 0
    """Of the split, users, agent and resamples."""
    output: str = "runs/fidelity"
    """Folder for ``fidelity.json``, ``table.md``, ``distances.png`` and what the users said."""

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the fix.
        """
        if not self.simulators:
            raise DuologueError("There is no user to measure. Give --simulator, once for each.")
        names = [*self.simulators, PEOPLE]
        if len(set(names)) < len(names):
            raise DuologueError(f"A user is named twice, or {PEOPLE!r}. Give each once: {', '.join(self.simulators)}.")
        if self.dialogues_per_simulator is not None and self.dialogues_per_simulator < 1:
            raise DuologueError("dialogues_per_simulator is below 1. Set it to 1 or more.")
        if self.seed < 0:
            raise DuologueError(f"seed is {self.seed}. Set it to 0 or more.")

    @property
    def assistant(self) -> str:
        """Return the spec of the assistant of free dialogues.

        Raises:
            DuologueError: if shipped users do not know the environment.
        """
        from duologue.simulators.spec import env_name

        return self.agent or AGENTS[env_name(self.env)]
