"""``duologue fidelity``: how human users are, a column each beside people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from duologue.cli.flags import with_clean_errors

if TYPE_CHECKING:
    from duologue.analysis.fidelity.config import FidelityConfig
    from duologue.analysis.fidelity.replay import OnTurns

EXAMPLES = """\b
Examples:
  duologue fidelity MathChat-v0 --dialogues people.jsonl --simulator scripted --simulator prompted:default
  duologue fidelity MathChat-v0 --dialogues train.jsonl --held-out test.jsonl --simulator calibrated:runs/user
"""


def add_fidelity(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("fidelity", epilog=EXAMPLES)(fidelity_command)


def fidelity_command(
    env: Annotated[str, typer.Argument(help="Environment id, for instance MathChat-v0.")],
    dialogues: Annotated[str, typer.Option("--dialogues", help="People's dialogues (JSONL), to compare with.")],
    simulator: Annotated[
        list[str], typer.Option("--simulator", help="A user: scripted, prompted:MODEL, calibrated:FOLDER, … Repeat it.")
    ],
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out",
            help="People's dialogues (JSONL) whose histories are replayed; without, half of the others: by person if "
            "all are known, else by dialogue.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="The assistant of free dialogues; the default is the environment's hasty one."),
    ] = None,
    dialogues_per_simulator: Annotated[
        int | None,
        typer.Option("--dialogues-per-simulator", help="Free dialogues of each user. [default: as many as held out]"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seeds the split, users, agent and resamples.")] = 0,
    output: Annotated[str, typer.Option("--output", help="Folder for table, figure and numbers.")] = "runs/fidelity",
) -> None:
    """Measure how human users are: how they write, what they do, whether they can be told from people.

    Stop it at any time; the same command goes on where it was.
    """

    def run() -> None:
        from duologue.analysis.fidelity.config import FidelityConfig

        users = tuple(simulator)
        _measure(FidelityConfig(env, dialogues, users, held_out, agent, dialogues_per_simulator, seed, output))

    with_clean_errors(run)


def _measure(config: FidelityConfig) -> None:
    from rich.console import Console

    from duologue.analysis.fidelity.run import fidelity
    from duologue.analysis.fidelity.tables import table

    report = fidelity(config, follow=_follow)
    Console().print(table(report))
    for name, user in report.about["users"].items():
        failed = sum(sum(reasons.values()) for reasons in user["failed"].values())
        if failed:
            typer.echo(f"{name} failed {failed} times; the reasons are in {config.output}/table.md")
    typer.echo(f"Table, figure and numbers are in {config.output}")


@contextmanager
def _follow(title: str) -> Iterator[OnTurns]:
    from duologue.cli.progress import progress_line

    with progress_line(title) as show:
        yield lambda done, total: show(done, total, None)
