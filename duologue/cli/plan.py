"""``duologue plan``: what a training run needs, on paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duologue.cli.flags import flag_pairs, read_fields, with_clean_errors
from duologue.errors import DuologueError

if TYPE_CHECKING:
    from duologue.analysis.plan.run import Run

EXAMPLES = """\b
Examples:
  duologue plan --config train.yaml --machine gpus=8 --machine memory_gb=80 --machine tflops=989
  duologue plan --config train.yaml --episodes runs/interactive/episodes.jsonl --json plan.json
  duologue plan --preset paper --env MathChat-v0 --method calibrated
"""
_PAIRS = "KEY=VALUE"
_SECTION = "KEY=VALUE (repeat it) or a JSON object; wins over the file's section of that name."


def add_plan(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("plan", epilog=EXAMPLES)(plan_command)


def plan_command(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE.yaml", help="Configuration of duologue train, machine and shape in it."),
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Instead: a preset of duologue compare, or a YAML file.")] = None,
    env: Annotated[str, typer.Option(help="Environment of the preset.")] = "MathChat-v0",
    method: Annotated[
        str | None, typer.Option(help="interactive, static or calibrated. [default: the file's, or interactive]")
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(metavar=_PAIRS, help=f"gpus, memory_gb and tflops of each, utilisations, network_gbs. {_SECTION}"),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(metavar=_PAIRS, help=f"Numbers of the policy's model; without, they are read from it. {_SECTION}"),
    ] = None,
    user_shape: Annotated[
        list[str] | None,
        typer.Option(metavar=_PAIRS, help=f"The same of the user's model; without, it costs nothing. {_SECTION}"),
    ] = None,
    episodes: Annotated[
        Path | None,
        typer.Option(metavar="EPISODES.jsonl", help="Dialogues whose lengths are expected; without, the limits are."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers here.")] = None,
) -> None:
    """Plan a training run on paper: tokens, memory, network and time of a step, each number with its formula.

    Nothing is trained, and no weights are loaded. docs/plan.md says how far the formulas are off.
    """

    def work() -> None:
        given = {
            "method": method,
            "machine": flag_pairs("--machine", machine or []),
            "shape": flag_pairs("--shape", shape or []),
            "user_shape": flag_pairs("--user-shape", user_shape or []),
        }
        _show(_run(config, preset, env, given, episodes), json_file)

    with_clean_errors(work)


def _run(config: Path | None, preset: str | None, env: str, given: Mapping[str, Any], episodes: Path | None) -> Run:
    from duologue.analysis.plan.run import run_of_file, run_of_preset
    from duologue.cli.user_rates import read_episodes

    played = read_episodes(episodes) if episodes else None
    if (config is None) == (preset is None):
        raise DuologueError("Give one of both: --config FILE.yaml, or --preset tiny, small or paper.")
    if preset is not None:
        return run_of_preset(env, preset, given, played)
    assert config is not None
    return run_of_file(read_fields(config), given, played)


def _show(run: Run, json_file: Path | None) -> None:
    from rich.console import Console

    from duologue.analysis.plan.relief import bottleneck, findings
    from duologue.analysis.plan.sections import plan
    from duologue.analysis.plan.table import table, to_json

    made = plan(run)
    said = findings(run, made)
    console = Console()
    for section in made.sections:
        console.print(table(section), "")
    for sentence in said:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    if json_file:
        found = {"sections": to_json(made.sections), "bottleneck": bottleneck(made), "findings": said}
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        console.print(f"The numbers are in {json_file}", markup=False, highlight=False, soft_wrap=True)
