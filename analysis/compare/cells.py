"""What a comparison consists of: its cells, and the plan that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from duologue.analysis.compare.preset import Preset
from duologue.analysis.compare.stages import Stage

USERS = ("held_out", "human", "naive", "calibrated")
"""Columns of the matrix. Nobody trains with ``held_out``."""
OWN_USER = {"naive": "naive", "calibrated": "calibrated", "oracle": "human"}
"""The user that an arm plays whole dialogues with."""
TRAINED_WITH = {**OWN_USER, "dpo": "naive"}
"""The user that an arm trains with; the others have none. The one of ``dpo`` goes on from logged histories."""
FITTED = ("naive", "calibrated")
"""Users of training whose fidelity is measured; the others are the humans themselves."""
RL_ARMS = ("static", *OWN_USER)


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy measured with one user."""

    seed: int
    policy: str
    user: str
    step: int | None = None
    """Optimiser step of the checkpoint; None = the end of training."""

    @property
    def name(self) -> str:
        """Return the name of its stage."""
        policy = self.policy if self.step is None else f"{self.policy}@{self.step}"
        return f"seed-{self.seed}/evaluate/{policy}--{self.user}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A comparison, before it runs."""

    preset: Preset
    root: Path
    seeds: int
    stages: tuple[Stage, ...]
    cells: tuple[Cell, ...]
    policies: tuple[str, ...]
    """Rows of the table, in order."""
    skipped: Mapping[str, str]
    """Arms that are left out, with the reason."""
    axis: tuple[Cell, ...] = ()
    """Arms of the preset's axis, each measured with the held-out user and with its ``own``."""
    checkpoints: tuple[Cell, ...] = ()
    """Checkpoints of RL arms before the last, measured with the held-out user."""


def axis_arm(value: float) -> str:
    """Return the name of the arm at a value of the axis."""
    return f"axis/{value:g}"


def shift_stage(seed: int, arm: str) -> str:
    """Return the name of the stage that measures an arm's shift."""
    return f"seed-{seed}/shift/{arm}"
