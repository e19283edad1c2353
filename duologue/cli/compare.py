"""The command ``duologue compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from duologue.analysis.compare.config import CompareConfig

if TYPE_CHECKING:
    from duologue.analysis.compare.stages import Done, OnStage, Stage

EXAMPLES = (
    "duologue compare MathChat-v0 --preset tiny --dry-run",
    "duologue compare MathChat-v0 --preset tiny --seeds 3 --output runs/compare",
    "duologue compare MathChat-v0 --preset tiny --seeds 3 --output runs/compare --agent ppo=my_module:reply",
    "duologue compare MediumDocEditChat-v0 --preset small --arms base,static,naive --steps 20",
    "duologue compare MathChat-v0 --preset my-preset.yaml --output runs/mine",
)


def run_compare(config: CompareConfig) -> None:
    """Run every way to train on equal budgets, and evaluate every policy with every user.

    Writes results.json, table.md with a verdict, figures and transcripts. Stop it at any time; the same command goes on
    where it was, and comes to the same numbers.
    """
    from duologue.analysis.compare.needs import needs
    from duologue.analysis.compare.run import compare, planned
    from duologue.analysis.compare.table import table

    made = planned(config)
    if config.dry_run:
        typer.echo(needs(made))
        return
    with stage_line(made.stages) as show:
        found = compare(config, show)
    typer.echo(table(found))
    typer.echo(f"\nEverything is in {config.output}")


@contextmanager
def stage_line(stages: Sequence[Stage]) -> Iterator[OnStage]:
    """Yield a follower of stages: a moving line on a terminal, and one line on stderr for each that is finished."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from duologue.analysis.compare.stages import seconds_left

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        line = bar.add_task("", total=len(stages))
        places = {stage.name: place for place, stage in enumerate(stages, start=1)}

        def show(stage: Stage, ended: Done | None, done: Mapping[str, Done]) -> None:
            seconds = seconds_left(stages, done)
            left = "time left unknown" if seconds is None else f"at least {duration(seconds)} left"
            bar.update(line, completed=len(done), description=f"{stage.name} ({left})")
            if ended:
                text = f"[{places[stage.name]}/{len(stages)}] {stage.name}: {duration(ended.seconds)}, {left}"
                console.print(text, markup=False, highlight=False, soft_wrap=True)

        yield show


def duration(seconds: float) -> str:
    """Return a time in the unit that a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
