"""The command ``duologue shift``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from duologue.analysis.shift.config import ShiftConfig
from duologue.cli.flags import configured

if TYPE_CHECKING:
    from duologue.analysis.play import OnProgress
    from duologue.analysis.shift.run import OnStage

_EXAMPLES = (
    "duologue shift MathChat-v0 --logs logs.jsonl --agent runs/interactive/final --simulator scripted:naive",
    "duologue shift MathChat-v0 --logs logs.jsonl --agent scripted:hasty-math,haste=0.2 --simulator scripted:naive",
    "duologue shift MediumDocEditChat-v0 --logs logs.jsonl --agent default --simulator prompted:default --episodes 50",
    "duologue shift MathChat-v0 --logs logs.jsonl --agent my_module:reply --reference default --output runs/shift",
)


def add_shift(app: typer.Typer) -> None:
    """Add the command to an app."""
    epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in _EXAMPLES)])
    app.command("shift", epilog=epilog)(configured(ShiftConfig)(run_shift))


def run_shift(config: ShiftConfig) -> None:
    """Measure, turn by turn, how far contexts of training are from those that a policy meets.

    Compares logged contexts, the policy's own with the human, and its own with the simulator. Stop it at any time; the
    same command plays only what is missing.
    """
    from rich.console import Console

    from duologue.analysis.shift.report import table
    from duologue.analysis.shift.run import shift

    with stage_bars() as begin:
        report = shift(config, on_stage=begin)
    Console().print(table(report))
    typer.echo(f"Dialogues, shift.json, table.md and the figure are in {config.output}")


@contextmanager
def stage_bars() -> Iterator[OnStage]:
    """Yield a function that begins a progress line of its own for each stage; silent when stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def begin(name: str) -> OnProgress:
            line = bars.add_task(name, total=None)
            return lambda done, total, _: bars.update(line, completed=done, total=total)

        yield begin
