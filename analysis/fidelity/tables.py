"""The table for people: Markdown, and for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from duologue.analysis.fidelity.config import PEOPLE
from duologue.analysis.fidelity.measures import MODES
from duologue.analysis.fidelity.report import Cell, FidelityReport
from duologue.trainers.stats import Estimate

if TYPE_CHECKING:
    from rich.table import Table

KEY = (
    "Cells: value [95 % interval]; d = distance from the reference people, 0 to 1 (for people: the floor that chance "
    "leaves). * = differs from people at the same place beyond chance (5 % per column after Holm's correction)."
)
_TITLES = {
    "replayed": "Replayed: at people's own histories",
    "free": "Free: talking with the agent; people: their logs",
}


def markdown(report: FidelityReport) -> str:
    """Return the table as Markdown, a section per mode."""
    lines = ["# How human are these users?", ""]
    for title, rows in sections(report):
        lines += [
            f"## {title}",
            "",
            f"| measure | {' | '.join(report.columns)} |",
            f"|---{'|---' * len(report.columns)}|",
        ]
        lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
        lines += [""]
    lines += [KEY, "", *_failures(report), f"Signature: `{report.signature}`"]
    return "\n".join(lines)


def table(report: FidelityReport) -> Table:
    """Return the table for ``rich.print``."""
    from rich.markup import escape
    from rich.table import Table

    made = Table("measure", *map(escape, report.columns), caption=escape(KEY), caption_justify="left")
    for title, rows in sections(report):
        made.add_section()
        made.add_row(f"[bold]{escape(title)}[/bold]")
        for row in rows:
            made.add_row(*map(escape, row))
    return made


def sections(report: FidelityReport) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each section's title and rows of text, first the score and then the measures."""
    for mode in MODES:
        score = ["score", *(shown(report.score(name, mode)) for name in report.columns)]
        measured = [
            [f"{row.measure.name} ({row.measure.unit})", *(_cell(row.cells[name]) for name in report.columns)]
            for row in report.rows
            if row.mode == mode
        ]
        yield _TITLES[mode], [score, *measured]
    yield "Held-out NLL of people's words", [_foretold(report, key) for key in ("per_token", "bits_per_byte")]


def shown(estimate: Estimate) -> str:
    """Return a number with its interval; n/a if there is none."""
    if math.isnan(estimate.value):
        return "n/a"
    bounds = "" if math.isnan(estimate.low) else f" [{estimate.low:.3g}, {estimate.high:.3g}]"
    return f"{estimate.value:.3g}{bounds}"


def _cell(cell: Cell) -> str:
    far = cell.distance.share if cell.distance else None
    distance = "" if far is None or math.isnan(far.value) else f"; d {far.value:.2f}"
    return f"{shown(cell.value)}{distance}{' *' if cell.differs else ''}"


def _foretold(report: FidelityReport, key: str) -> list[str]:
    unit = {"per_token": "nats per token", "bits_per_byte": "bits per byte"}[key]
    return [unit, *("n/a" if name == PEOPLE else _nll(report.foretold.get(name), key) for name in report.columns)]


def _nll(found: dict[str, Any] | None, key: str) -> str:
    if found is None or found[key]["value"] is None:
        return "n/a"
    numbers = [math.nan if found[key][x] is None else found[key][x] for x in ("value", "low", "high")]
    return shown(Estimate(numbers[0], numbers[1], numbers[2], found[key]["n"]))


def _failures(report: FidelityReport) -> list[str]:
    lines = [
        f"- {name}, {mode}: {sum(failed.values())} failed, such as: {next(iter(failed))}"
        for name, user in report.about["users"].items()
        for mode, failed in user["failed"].items()
        if failed
    ]
    return [*lines, ""] if lines else []
