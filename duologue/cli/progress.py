"""A progress line on stderr: dialogues (or steps) done, running score (or loss). Silent when stderr is no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duologue.analysis.play import OnProgress


@contextmanager
def progress_line(title: str, measure: str = "score") -> Iterator[OnProgress]:
    """Yield a function of dialogues done, dialogues in all and mean score so far.

    Args:
        title: what is going on.
        measure: what the third number is called.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, TextColumn(f"{measure} {{task.fields[score]}}"), console=console, disable=not console.is_terminal
    ) as bar:
        line = bar.add_task(title, total=None, score="-")

        def show(done: int, total: int, score: float | None) -> None:
            bar.update(line, completed=done, total=total, score="-" if score is None else f"{score:.3f}")

        yield show
