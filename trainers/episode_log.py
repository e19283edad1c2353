"""JSON-lines files that survive interruption: appended line by line, cut back to a checkpoint on resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from duologue.types import Episode


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
        """
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            whole = takewhile(lambda line: line.endswith(b"\n") and wanted(json.loads(line)), file)
            file.truncate(sum(map(len, whole)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the complete rows."""
        if not self.path.exists():
            return
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    yield json.loads(line)


class EpisodeLog(JsonLines):
    """The episodes of a training run, each with the optimiser step that it was played for."""

    def write(self, episodes: Sequence[Episode], step: int) -> None:
        """Append a batch."""
        self.append([{"step": step, **episode.to_json()} for episode in episodes])

    def read(self) -> list[Episode]:
        """Return all episodes."""
        return [Episode.from_json({k: v for k, v in row.items() if k != "step"}) for row in self]
