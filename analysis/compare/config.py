"""What a person sets of a comparison; the rest is in the preset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duologue.errors import DuologueError, did_you_mean

BASELINES = ("base", "proactive")
"""Policies that the comparison does not train."""
TRAINED = ("clone", "static", "dpo", "naive", "calibrated", "oracle")
"""Policies that it can train, once per seed, all from the same base."""
ARMS = (*BASELINES, *TRAINED)
USUAL_ARMS = tuple(arm for arm in ARMS if arm != "dpo")
"""Arms of a preset that names none."""


def _help(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True, slots=True)
class CompareConfig:
    """Static context, naive interactive, calibrated interactive and oracle training, on equal budgets."""

    env: str = _help("Environment id: MathChat-v0 or MediumDocEditChat-v0.", "MathChat-v0")
    preset: str = _help("Size: tiny (CPU, minutes), small (CPU, hours), paper (GPUs), or a YAML file.", "tiny")
    seeds: int = _help("Training runs per arm, with seeds 0, 1, …; more can be added to a finished comparison.", 1)
    output: str = _help("Folder for everything. The same command on it goes on where it was.", "runs/compare")
    agent: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "A further agent to evaluate, without system prompt: NAME=SPEC."}
    )
    arms: str | None = _help(f"Arms, with commas between: {', '.join(ARMS)}; the default is the preset's.", None)
    steps: int | None = _help("Optimiser steps of each RL arm; the default is the preset's.", None)
    dialogues: int | None = _help("Dialogues per policy with held-out users; the default is the preset's.", None)
    dry_run: bool = _help("Print the stages and what they need, and do nothing.", False)

    def __post_init__(self) -> None:
        """Check what can be checked without loading anything.

        Raises:
            DuologueError: for a value that cannot work; the message names the field and the fix.
        """
        for name in ("seeds", "steps", "dialogues"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise DuologueError(f"{name} is {value}. Set it to 1 or more.")
        if self.arms is not None:
            checked_arms(self.arms.split(","))

    @property
    def env_name(self) -> str:
        """Return the environment's id without a module in front."""
        return self.env.rpartition(":")[2]


def checked_arms(names: list[str]) -> tuple[str, ...]:
    """Return arms in the order of reports.

    Raises:
        DuologueError: for an unknown arm, or none.
    """
    given = [name.strip() for name in names]
    for name in given:
        if name not in ARMS:
            raise DuologueError(f"There is no arm {name!r}. {did_you_mean(name, ARMS)}")
    return tuple(arm for arm in ARMS if arm in given)
