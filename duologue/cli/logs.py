"""The commands ``duologue logs …`` (check, summary, split and import of logged dialogues) and ``duologue collect``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duologue.cli.flags import with_clean_errors
from duologue.disk import explained_full_disk
from duologue.errors import DuologueError

if TYPE_CHECKING:
    from rich.table import Table

    from duologue.analysis.config import CollectConfig
    from duologue.simulators.logs import LogSummary, Spread

logs = typer.Typer(
    help="Check, summarise, split and import logged dialogues.", no_args_is_help=True, rich_markup_mode=None
)
Files = Annotated[list[Path], typer.Argument(metavar="FILE…", help="JSONL files of logged dialogues.")]


def _examples(*lines: str) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


@logs.command("check", epilog=_examples("duologue logs check logs.jsonl", "duologue logs check train.jsonl test.jsonl"))
def check_command(files: Files) -> None:
    """List everything that is wrong with files of logs, with line and fix. Several files must also share nothing.

    Exits with 1 if there is an error; warnings alone exit with 0.
    """
    with_clean_errors(lambda: _check(files))


@logs.command("summary", epilog=_examples("duologue logs summary people.jsonl simulated.jsonl"))
def summary_command(files: Files) -> None:
    """Show turns, words, persons and stop reasons, a column per file: medians, and quartiles in brackets."""
    with_clean_errors(lambda: _summary(files))


@logs.command(
    "split",
    epilog=_examples(
        "duologue logs split logs.jsonl --shares train=0.8,test=0.2 --output splits",
        "duologue logs split logs.jsonl --by person --shares train=0.7,validation=0.1,test=0.2 --output splits",
    ),
)
def split_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSONL file of logged dialogues.")],
    output: Annotated[Path, typer.Option("--output", help="Folder for one file per part, such as train.jsonl.")],
    shares: Annotated[str, typer.Option("--shares", help="Part=share, with a sum of 1.")] = "train=0.8,test=0.2",
    by: Annotated[str, typer.Option("--by", help="What stays together: dialogue, person or task.")] = "dialogue",
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives another split.")] = 0,
) -> None:
    """Split a file by hash. The same words never stand in two parts, and a later row moves no other."""
    with_clean_errors(lambda: _split(file, output, shares, by, seed))


@logs.command(
    "import",
    epilog=_examples(
        "duologue logs import simulator-arena math_dialogues.jsonl --output people.jsonl",
        "duologue logs import bridge train.json --output pupils.jsonl",
        "duologue logs import OpenAssistant/oasst1 --limit 500 --output oasst.jsonl",
    ),
)
def import_command(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A data set's name, or its id on the hub.")],
    path: Annotated[Path | None, typer.Argument(metavar="[PATH]", help="Its file; else it comes from the hub.")] = None,
    output: Annotated[Path, typer.Option("--output", help="JSONL file for the logs; must not exist yet.")] = Path(
        "logs.jsonl"
    ),
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many dialogues, from the first on.")] = None,
) -> None:
    """Import a published set: simulator-arena, math-converse, halie or bridge from a file, others from the hub."""
    with_clean_errors(lambda: _import(source, path, output, limit))


def run_collect(config: CollectConfig) -> None:
    """Play dialogues and keep them as logs, each with its whole task: for cloning, calibration or static training.

    Stop it at any time; the same command goes on where it was.
    """
    from duologue.analysis.collect import collect_counted
    from duologue.cli.progress import progress_line

    with progress_line("collect") as show:
        found = collect_counted(config, on_progress=show)
    typer.echo(f"{len(found.dialogues)} of {config.episodes} dialogues are in {config.output}")
    _tell_left_out(found.left_out)


def _check(files: list[Path]) -> None:
    from duologue.simulators.logs import check_logs, overlaps, read_logs

    errors = 0
    for file in files:
        problems = check_logs(file)
        errors += sum(problem.level == "error" for problem in problems)
        for problem in problems:
            typer.echo(f"{problem.level}: {file}: {problem}")
        if not problems:
            typer.echo(f"ok: {file}: {len(read_logs(file))} dialogues")
    if errors:
        raise typer.Exit(1)
    sets = [(file, read_logs(file)) for file in files]
    shared = [(a, b, o) for i, (a, x) in enumerate(sets) for b, y in sets[i + 1 :] for o in overlaps(x, y)]
    for a, b, overlap in shared:
        level = "warning" if overlap.kind == "task" else "error"  # tasks recur where persons are kept apart
        typer.echo(f"{level}: {a} and {b}: {overlap}. Remove it from one of them.")
    if any(overlap.kind != "task" for _, _, overlap in shared):
        raise typer.Exit(1)


def _summary(files: list[Path]) -> None:
    from rich.console import Console

    from duologue.simulators.logs import read_logs, summarise_logs

    Console().print(summary_table({file.name: summarise_logs(read_logs(file)) for file in files}))


def summary_table(summaries: Mapping[str, LogSummary]) -> Table:
    """Return a table with a column per summary."""
    from rich.table import Table

    made = Table("", *summaries)
    columns = [_rows(summary) for summary in summaries.values()]
    for name in columns[0]:
        made.add_row(name, *(column[name] for column in columns))
    return made


def _rows(summary: LogSummary) -> dict[str, str]:
    unknown = f", {summary.unknown_persons} dialogues of unknown ones" if summary.unknown_persons else ""
    return {
        "dialogues": str(summary.dialogues),
        "persons": f"{summary.persons}{unknown}",
        "tasks": str(summary.tasks),
        "user turns a dialogue": _spread(summary.user_turns),
        "words a user turn": _spread(summary.user_words),
        "words of the first user turn": _spread(summary.first_user_words),
        "words of a later user turn": _spread(summary.later_user_words),
        "words an assistant turn": _spread(summary.assistant_words),
        "stop reasons": ", ".join(f"{name} {n}" for name, n in summary.stop_reasons.items()),
    }


def _spread(spread: Spread) -> str:
    return f"{spread.median:g} [{spread.low:g}, {spread.high:g}]" if spread.n else "none"


def _split(file: Path, output: Path, shares: str, by: str, seed: int) -> None:
    from duologue.simulators.logs import read_logs, split_logs, write_logs

    wanted = _shares(shares)
    targets = {name: output / f"{name}.jsonl" for name in wanted}
    for target in targets.values():
        _refuse_existing(target)
    parts = split_logs(read_logs(file), wanted, by, seed)  # type: ignore[arg-type]  # it refuses other words itself
    names = ", ".join(target.name for target in targets.values())
    with explained_full_disk(output, f"remove what is there of {names}, and run the same command: it splits anew."):
        for name, part in parts.items():
            typer.echo(f"{len(part)} dialogues are in {write_logs(targets[name], part)}")


def _shares(text: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for item in text.split(","):
        name, _, value = (part.strip() for part in item.partition("="))
        try:
            share = float(value)
        except ValueError:
            share = float("nan")
        if share != share or not name or Path(name).name != name or name in shares:
            raise DuologueError(f"--shares {text!r} is no list of shares. Write --shares train=0.8,test=0.2.")
        shares[name] = share
    return shares


def _import(source: str, path: Path | None, output: Path, limit: int | None) -> None:
    from duologue.simulators.logs import imported, write_logs

    _refuse_existing(output)
    found = imported(source, path, limit)
    with explained_full_disk(output, "run the same command again."):
        write_logs(output, found.dialogues)
    typer.echo(f"{len(found.dialogues)} dialogues are in {output}")
    _tell_left_out(found.left_out)


def _tell_left_out(left_out: Mapping[str, int]) -> None:
    if left_out:
        typer.echo(f"left out: {', '.join(f'{n} ({reason})' for reason, n in left_out.items())}")


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise DuologueError(f"{str(path)!r} exists already. Give another --output, or remove it.")
