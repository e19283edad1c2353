"""``duologue user-rates``: how the users of finished dialogues behaved, a column per file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from duologue.analysis.user_rates import UserRates, user_rates
from duologue.errors import DuologueError
from duologue.json_files import read_lines
from duologue.types import Episode

if TYPE_CHECKING:
    from rich.table import Table

_FIX = "Give a file that `duologue evaluate` or `duologue rollout` wrote."


def print_user_rates(paths: Sequence[Path], tasks: str | None = None) -> None:
    """Measure files and print the table (arguments and errors: see ``measure_files``)."""
    from rich.console import Console

    Console().print(rates_table(measure_files(paths, tasks)))


def measure_files(paths: Sequence[Path], tasks: str | None = None) -> dict[str, UserRates]:
    """Return the rates of each file of episodes.

    Args:
        paths: JSONL files of episodes.
        tasks: where the tasks come from; None = what ``run.json`` beside the file says, else the environment's test
            split.

    Raises:
        DuologueError: if a file is missing or holds something else, or the tasks are not the ones that were played.
    """
    return {str(path): _measure(path, tasks) for path in paths}


def rates_table(measured: Mapping[str, UserRates]) -> Table:
    """Return a table for ``rich.print``: a row per rate, a column per file."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(escape("rate [95 % interval] (dialogues)"), *map(escape, measured))
    table.add_row("dialogues", *(f"{one.dialogues} ({one.env})" for one in measured.values()))
    names = list(next(iter(measured.values())).rates)
    for name in names:
        table.add_row(name.replace("_", " "), *(escape(str(one.rates[name])) for one in measured.values()))
    return table


def _measure(path: Path, tasks: str | None) -> UserRates:
    from duologue.analysis.evaluation import TEST_TASKS
    from duologue.envs.tasks import make_tasks
    from duologue.simulators.spec import plain_name

    episodes = read_episodes(path)
    env = plain_name(episodes[0].env_id)
    source = make_tasks(tasks or _played(path) or TEST_TASKS.get(env), env)
    try:
        return user_rates(episodes, source.find)
    except DuologueError as error:
        raise DuologueError(f"{str(path)!r}: {error} The tasks that were played go into --tasks.") from error


def read_episodes(path: Path) -> list[Episode]:
    """Return a file's episodes without touching it; a last line that is still being written is left out.

    Raises:
        DuologueError: if the file is missing or empty, or a line is no episode.
    """
    if not path.is_file():
        raise DuologueError(f"There is no file {str(path)!r}. {_FIX}")
    episodes = read_lines(path, Episode.from_json, "episode", _FIX)
    if not episodes:
        raise DuologueError(f"{str(path)!r} holds no whole line. {_FIX}")
    return episodes


def _played(path: Path) -> str | None:
    """Return the tasks of the evaluation that a file belongs to."""
    try:
        tasks = json.loads((path.parent / "run.json").read_text(encoding="utf-8"))["config"]["tasks"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return tasks if isinstance(tasks, str) else None
