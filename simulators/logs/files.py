"""Logged dialogues as JSON lines: write them, check them, read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from duologue.disk import whole_file
from duologue.errors import DuologueError
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.language import other_scripts
from duologue.simulators.logs.problems import Fault, Problem, faults_of
from duologue.simulators.rows import existing

MAX_LINE_BYTES = 16 * 2**20
"""A longer line is skipped without being held in memory."""
_QUOTED = 3
_Line = tuple[int, bytes | None]
"""Number and bytes of a line; None if it is longer than ``MAX_LINE_BYTES``."""


def write_logs(path: str | Path, dialogues: Iterable[LoggedDialogue]) -> Path:
    """Write dialogues, one JSON object a line, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        for dialogue in dialogues:
            file.write(json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n")
    return path


def read_logs(path: str | Path) -> list[LoggedDialogue]:
    """Read dialogues. All or none: one bad row refuses the file. Warnings of ``check_logs`` do not.

    Raises:
        DuologueError: if the file is missing or has an error; quotes the first three, each with line and fix.
    """
    dialogues, problems = _scan(path)
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        quoted = "\n".join(f"  {error}" for error in errors[:_QUOTED])
        raise DuologueError(
            f"{Path(path).name} has {len(errors)} error{'s' * (len(errors) > 1)}:\n{quoted}\n"
            f"See all with: duologue logs check {path}"
        )
    return [dialogue for _, dialogue in dialogues]


def check_logs(path: str | Path) -> list[Problem]:
    """Return everything that is wrong with a file of logged dialogues, by line; empty = sound.

    Raises:
        DuologueError: if there is no such file.
    """
    return _scan(path)[1]


def _scan(path: str | Path) -> tuple[list[tuple[int, LoggedDialogue]], list[Problem]]:
    """Return the sound dialogues with their lines, and the problems."""
    path = existing(path)
    if not path.is_file():
        raise DuologueError(f"{str(path)!r} is no file. Give a JSONL file of logged dialogues.")
    dialogues: list[tuple[int, LoggedDialogue]] = []
    problems: list[Problem] = []
    with path.open("rb") as file:
        for number, line in _lines(file):
            row, faults = _parsed(line)
            faults = faults or list(faults_of(row))
            problems += [Problem(number, *fault) for fault in faults]
            if not faults:
                dialogues.append((number, LoggedDialogue.from_json(row)))
    if not dialogues and not problems:
        problems = [Problem(None, "holds no dialogues.", "Write one JSON object a line, as duologue collect does.")]
    problems += [*_repeats(dialogues), *_warnings(dialogues)]
    return dialogues, sorted(problems, key=lambda problem: problem.line or 0)


def _lines(file: IO[bytes]) -> Iterator[_Line]:
    """Yield the lines that are not blank; one that is too long is read away in pieces."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        whole = len(line) < MAX_LINE_BYTES or line.endswith(b"\n")
        while not whole:
            piece = file.readline(MAX_LINE_BYTES)
            whole = piece.endswith(b"\n") or not piece
            line = b""
        if line == b"":
            yield number, None
        elif line.strip():
            yield number, line


def _parsed(line: bytes | None) -> tuple[dict[str, Any], list[Fault]]:
    if line is None:
        return {}, [(f"the line is longer than {MAX_LINE_BYTES:,} bytes.", "Shorten its messages, or remove it.")]
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return {}, [(f"not UTF-8 (byte {error.start}).", "Save the file in UTF-8.")]
    except json.JSONDecodeError as error:
        cut = "" if line.endswith(b"\n") else " and no line end: it was cut in writing"
        return {}, [(f"not JSON ({error.msg}, column {error.colno}){cut}.", "Correct or remove the line.")]
    except (RecursionError, ValueError) as error:
        return {}, [(f"not readable as JSON ({error}).", "Correct or remove the line.")]
    if not isinstance(row, dict):
        return {}, [(f"no JSON object, but {row!r:.40}.", "Write one object with named fields a line.")]
    return row, []


def _repeats(dialogues: list[tuple[int, LoggedDialogue]]) -> Iterator[Problem]:
    ids: dict[str, int] = {}
    contents: dict[str, int] = {}
    for line, dialogue in dialogues:
        first = ids.setdefault(dialogue.dialogue_id, line)
        if first != line:
            yield Problem(
                line, f"dialogue_id {dialogue.dialogue_id!r} stands on line {first} too.", "Give it another id."
            )
        first = contents.setdefault(dialogue.content_hash, line)
        if first != line:
            yield Problem(line, f"the same task and words as line {first}.", "Remove one of them.")


def _warnings(dialogues: list[tuple[int, LoggedDialogue]]) -> Iterator[Problem]:
    usual, others = other_scripts([dialogue for _, dialogue in dialogues])
    for place, script in others.items():
        what = f"the user writes in {script.title()} letters, most others in {usual.title()}."
        yield Problem(dialogues[place][0], what, "Remove it if the language is wrong.", "warning")
    bare = [line for line, dialogue in dialogues if not dialogue.task.reference.strip()]
    if bare:
        what = f"{len(bare)} of {len(dialogues)} tasks have no reference, the first on line {bare[0]}."
        yield Problem(None, what, "They teach how users talk, but give no score: add references for that.", "warning")
