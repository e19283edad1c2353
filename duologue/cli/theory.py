"""The command ``duologue theory``."""

from __future__ import annotations

from pathlib import Path

import typer

from duologue.analysis.theory.config import TheoryConfig
from duologue.cli.progress import progress_line

EXAMPLES = ("duologue theory", "duologue theory --horizons 2,4,8,16,32,64 --seeds 50 --output runs/longer")


def run_theory(config: TheoryConfig) -> None:
    """Work the theorems out on finite dialogues: gaps, bounds, rates, and learning from logged and own contexts.

    Writes theory.json, table.md and theory.png.
    """
    from rich.console import Console

    from duologue.analysis.theory.figure import figure
    from duologue.analysis.theory.run import theory
    from duologue.analysis.theory.table import tables

    with progress_line("theory", "gap") as show:
        found = theory(config, show)
    Console().print(*tables(found), sep="\n\n")
    figure(found, Path(config.output, "theory.png"))
    typer.echo(f"\nEverything is in {config.output}")
