"""Reports and transcripts for people: a table for the terminal, Markdown, plain text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duologue.analysis.summary import EvaluationReport
from duologue.trainers.stats import Estimate
from duologue.types import Episode

if TYPE_CHECKING:
    from rich.table import Table

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_ERRORS = 3


def rows(report: EvaluationReport) -> list[tuple[str, str]]:
    """Return a report as pairs of a name and a number with its 95 % interval."""
    return [
        (report.metric, str(report.score)),
        ("tasks", str(report.tasks)),
        ("scored / unscored dialogues", f"{report.scored} / {report.unscored}"),
        ("turns per dialogue", str(report.turns)),
        ("assistant tokens per dialogue", _known(report.assistant_tokens)),
        ("assistant words per dialogue", str(report.assistant_words)),
        ("user words per turn", str(report.user_words)),
        ("user leak rate per turn", _known(report.user_leaks)),
        *((f"ended: {reason}", str(estimate)) for reason, estimate in report.stop_reasons.items()),
        *((f"user note: {name}", f"{count:g}") for name, count in report.user_notes.items()),
    ]


def table(report: EvaluationReport) -> Table:
    """Return a report as a table for ``rich.print``."""
    from rich.markup import escape
    from rich.table import Table

    result = Table(
        "measure", escape("value [95 % interval] (n)"), caption=escape(report.signature), caption_justify="left"
    )
    for name, value in rows(report):
        result.add_row(escape(name), escape(value))
    for line in _error_lines(report):
        result.add_row("[red]error[/red]", escape(visible(line)))
    return result


def markdown(report: EvaluationReport) -> str:
    """Return a report as Markdown."""
    lines = ["| measure | value [95 % interval] (n) |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows(report)]
    lines += ["", f"Signature: `{report.signature}`"]
    errors = [f"- {visible(line)}" for line in _error_lines(report)]
    return "\n".join([*lines, *(["", "Errors:", "", *errors] if errors else [])])


def transcript(episode: Episode) -> str:
    """Return an episode as text: what it was, one paragraph a message, how it ended. Control characters are shown."""
    score = "not scored" if episode.reward is None else f"score {episode.reward:.2f}"
    paragraphs = [f"--- {episode.env_id}, {episode.task_id}, seed {episode.seed}: {score} ---"]
    paragraphs += [f"{message['role']}: {visible(message['content'])}" for message in episode.messages]
    paragraphs.append(f"[{episode.stop_reason.value}] {episode.stop_reason.sentence}")
    return "\n\n".join([*paragraphs, *([visible(episode.error)] if episode.error else [])])


def visible(text: str) -> str:
    """Show control characters instead of obeying them: a model's words must not steer the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _error_lines(report: EvaluationReport) -> list[str]:
    shown = list(report.errors.items())[:_MOST_ERRORS]
    more = len(report.errors) - len(shown)
    return [*(f"{n} x {error}" for error, n in shown), *([f"and {more} more kinds of error"] if more else [])]


def _known(estimate: Estimate | None) -> str:
    return "unknown" if estimate is None else str(estimate)
