"""The comparison, from configuration to files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from duologue.analysis.compare.cells import Cell, Plan
from duologue.analysis.compare.config import CompareConfig
from duologue.analysis.compare.plan import plan
from duologue.analysis.compare.preset import load_preset
from duologue.analysis.compare.stages import OnStage, run_stages, write_json
from duologue.analysis.plan.shape import Machine
from duologue.disk import explains_full_disk, write_whole
from duologue.envs.tasks.spec import make_tasks
from duologue.errors import DuologueError, MissingExtraError
from duologue.simulators.spec import env_name, make_simulator
from duologue.trainers.agent_spec import make_agent
from duologue.trainers.agents import Limits
from duologue.trainers.processes import refuse_processes
from duologue.types import Episode


def planned(config: CompareConfig) -> Plan:
    """Read the preset and plan the stages; nothing runs.

    Raises:
        DuologueError: if preset, arms or names cannot work.
    """
    return plan(config, load_preset(config))


@explains_full_disk("run the same command: finished stages are kept, and it goes on with the one that was begun.")
def compare(config: CompareConfig, on_stage: OnStage | None = None) -> dict[str, Any]:
    """Run every arm on equal budgets, evaluate every policy with every user, and write what came of it.

    Interrupted at any point, the same call goes on, and the numbers are those of a run without interruption (on a CPU).
    It writes ``results.json``, ``table.md``, ``figures/*.png`` and ``transcripts.md`` into ``config.output``.

    Args:
        config: what to compare.
        on_stage: follows the stages.

    Returns:
        The content of ``results.json``.

    Raises:
        DuologueError: in several processes; if something cannot work, the machine is not enough, or the folder holds
            other settings.
        MissingExtraError: if training or figures lack their libraries.
    """
    refuse_processes("duologue compare", "Start it without a launcher.")
    made = planned(config)
    check_machine(config.preset, made.preset.machine)
    check_parts(made, config)
    done = run_stages(made.root, made.stages, on_stage)
    return report(made, done)


def report(made: Plan, done: Any) -> dict[str, Any]:
    """Write the reports of a comparison whose stages are done, and return the results."""
    from duologue.analysis.compare.pictures import pictures
    from duologue.analysis.compare.results import read_cell, results
    from duologue.analysis.compare.table import table
    from duologue.analysis.compare.transcripts import transcripts

    found = results(made, done)
    write_json(made.root / "results.json", found)
    _write(made.root / "table.md", table(found))
    pictures(found, made.root / "figures")
    played: dict[str, Sequence[Episode]] = {p: read_cell(made, Cell(0, p, "held_out")) for p in made.policies}
    _write(made.root / "transcripts.md", transcripts(played))
    return found


def check_machine(name: str, machine: Machine) -> None:
    """Refuse what cannot end well, before hours are spent.

    Raises:
        DuologueError: if the preset needs more GPUs than there are.
        MissingExtraError: if a library is missing.
    """
    for library, extra in (("trl", "train"), ("matplotlib", "plots"), ("sklearn", "fidelity")):
        if find_spec(library) is None:
            raise MissingExtraError("The comparison", extra)
    if machine.gpus:
        import torch

        if (there := torch.cuda.device_count()) < machine.gpus:
            raise DuologueError(
                f"The preset {name!r} needs {machine.gpus} GPUs with {machine.memory_gb:g} GB each, and this machine "
                f"has {there}. Run it where they are, choose --preset tiny or small, or see its needs with --dry-run."
            )


def check_parts(made: Plan, config: CompareConfig) -> None:
    """Make, once and before hours are spent, what the last stages need: tasks, scripted users, further agents.

    Raises:
        DuologueError: if one cannot be made.
    """
    preset, limits = made.preset, made.preset.limits
    for tasks in (preset.tasks.train, preset.tasks.test):
        make_tasks(tasks, env_name(preset.env))
    for user in (preset.users.human, preset.users.held_out, preset.users.naive):
        if user.partition(":")[0] == "scripted":
            make_simulator(user, preset.env)
    for spec in config.agent.values():
        make_agent(str(spec), Limits(limits.max_tokens_per_turn, limits.max_total_tokens), 1.0, None)


def _write(path: Path, text: str) -> None:
    write_whole(path, text + "\n")
