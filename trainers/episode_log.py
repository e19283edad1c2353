"""JSON-lines files that survive interruption: appended line by line, cut back to a checkpoint on resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from duologue.json_files import Make, read_line, read_lines
from duologue.types import Episode

T = TypeVar("T")
_FIX = "Correct or remove the line."


class JsonLines:
    """An append-only file of JSON objects. A half-written last line, from a process that died, is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows and flush them."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def keep(self, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Cut the file before the first row that a resumed run will write again, or that was half written.

        In place, since a full disk has no room for a copy.

        Raises:
            DuologueError: for a whole line before that which is no JSON object, or none that ``wanted`` can judge; then
                the file is left as it was.
        """
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            lines = enumerate(file, start=1)
            whole = takewhile(lambda line: line[1].endswith(b"\n") and self._made(*line, wanted), lines)
            file.truncate(sum(len(line) for _, line in whole))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the complete rows.

        Raises:
            DuologueError: for a whole line that is no JSON object.
        """
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield self._made(number, line, dict)

    def _made(self, number: int, line: bytes, make: Make[T]) -> T:
        return read_line(self.path, number, line, make, "row of this log", _FIX)


class EpisodeLog(JsonLines):
    """The episodes of a training run, each with the optimiser step that it was played for."""

    def write(self, episodes: Sequence[Episode], step: int) -> None:
        """Append a batch."""
        self.append([{"step": step, **episode.to_json()} for episode in episodes])

    def read(self) -> list[Episode]:
        """Return all episodes.

        Raises:
            DuologueError: for a whole line that is no episode.
        """
        return read_lines(self.path, Episode.from_json, "episode", _FIX) if self.path.exists() else []
