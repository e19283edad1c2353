"""From a preset to a plan: all stages of a comparison, each after those that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duologue.analysis.compare.cells import Plan
from duologue.analysis.compare.config import ARMS, CompareConfig
from duologue.analysis.compare.measuring import Measuring
from duologue.analysis.compare.preset import Preset
from duologue.analysis.compare.training import Training


def plan(config: CompareConfig, preset: Preset) -> Plan:
    """Plan a comparison; nothing runs.

    Raises:
        DuologueError: if the preset has a field that a stage does not know, or a name of an agent is taken.
    """
    made = Training(config, preset)
    made.everything()
    measuring = Measuring(made, _named(config.agent))
    cells, axis, checkpoints = measuring.cells(), measuring.axis(), measuring.checkpoints()
    measuring.shifts()
    measuring.fidelity()
    return Plan(
        preset=preset,
        root=made.root,
        seeds=config.seeds,
        stages=tuple(made.stages),
        cells=cells,
        policies=measuring.policies,
        skipped=made.skipped(),
        axis=axis,
        checkpoints=checkpoints,
    )


def _named(agents: Mapping[str, Any]) -> dict[str, str]:
    """Return further agents by name, checked."""
    from duologue.trainers.named_agents import parse_named_agents

    return parse_named_agents([f"{name}={spec}" for name, spec in agents.items()], reserved=ARMS)
