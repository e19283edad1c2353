"""Files of JSON that programs append to or people edit: what is wrong with one is said with file, line and fix."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from duologue.errors import DuologueError

T = TypeVar("T")
Make = Callable[[Mapping[str, Any]], T]
"""From a JSON object to what it stands for; may raise ``ValueError``, ``LookupError``, ``TypeError``, …"""
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What bad JSON, bad UTF-8 and a missing or odd field raise."""


def read_lines(path: str | Path, make: Make[T], what: str, fix: str) -> list[T]:
    """Return what the lines of a file stand for, an object each.

    Blank lines are left out, as is a last line without its line end that holds no whole object: it was cut in writing,
    or is being written.

    Args:
        path: of the file.
        make: makes the result out of a line's object.
        what: a line ought to be, such as "episode".
        fix: what to do about a line that is none.

    Raises:
        DuologueError: for the first line that is none.
    """
    *lines, last = Path(path).read_bytes().split(b"\n")
    lines += [last] if _is_whole(last) else []
    return [read_line(path, n, line, make, what, fix) for n, line in enumerate(lines, start=1) if line.strip()]


def read_line(path: str | Path, number: int, line: str | bytes, make: Make[T], what: str, fix: str) -> T:
    """Return what one line stands for; ``number`` counts from 1, the rest is as for ``read_lines``."""
    try:
        return make(_object(line))
    except _FAULTS as error:
        raise DuologueError(f"Line {number} of {str(path)!r} is no {what} ({_said(error)}). {fix}") from error


def read_object(path: str | Path, fix: str) -> dict[str, Any]:
    """Return the one JSON object that a file holds.

    Raises:
        DuologueError: if it holds something else; the message ends with ``fix``.
    """
    try:
        return _object(Path(path).read_bytes())
    except _FAULTS as error:
        raise DuologueError(f"{str(path)!r} holds no JSON object ({_said(error)}). {fix}") from error


def drop_cut_line(path: Path) -> None:
    """Remove a last line without its line end, so that the next one is not appended to half a line."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def _is_whole(line: bytes) -> bool:
    try:
        return bool(_object(line))
    except _FAULTS:
        return False


def _object(text: str | bytes) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError(f"it is {found!r:.40}")
    return found


def _said(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
