"""The folder of an evaluation: which episodes it has, of which measurement."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from duologue.disk import write_whole
from duologue.errors import DuologueError
from duologue.json_files import drop_cut_line, read_lines
from duologue.types import Episode

_FIX = "Remove the line, or start over with --overwrite."


class EpisodeFile:
    """Episodes as JSON lines, appended and flushed one by one, so that a killed run loses at most one line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Episode]:
        """Return the episodes; a last line without its line end was cut in writing, and is removed from the file.

        Raises:
            DuologueError: if a line is no episode.
        """
        if not self.path.is_file():
            return []
        drop_cut_line(self.path)
        return read_lines(self.path, Episode.from_json, "episode", _FIX)

    def append(self, episode: Episode) -> None:
        """Add an episode."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(episode.to_json(), ensure_ascii=False) + "\n")


class EvaluationFolder:
    """``run.json`` (what is measured), ``episodes.jsonl``, ``report.json`` and ``report.md``."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.episodes = EpisodeFile(self.path / "episodes.jsonl")

    def read(self, resume: bool) -> list[Episode]:
        """Return the episodes that are there already.

        Raises:
            DuologueError: if there are some and ``resume`` is False, or the file is damaged.
        """
        found = self.episodes.read()
        if found and not resume:
            raise DuologueError(
                f"{str(self.path)!r} has {len(found)} episodes. Give another output folder, --resume or --overwrite."
            )
        return found

    def claim(self, identity: str, config: dict[str, Any], *, afresh: bool) -> None:
        """Make the folder the one of this measurement.

        Args:
            identity: signature without the number of episodes: with it, an evaluation can be continued or extended.
            config: kept beside it for readers.
            afresh: remove what is there.

        Raises:
            DuologueError: if the episodes that are there belong to another measurement.
        """
        marker = self.path / "run.json"
        if afresh:
            self.episodes.path.unlink(missing_ok=True)
        elif self.episodes.path.is_file() and (theirs := _identity(marker)) != identity:
            raise DuologueError(
                f"{str(self.path)!r} holds another evaluation: {_differences(theirs, identity)}. Give another output "
                "folder, or throw that one away with --overwrite."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.write("run.json", json.dumps({"identity": identity, "config": config}, indent=2))

    def write(self, name: str, text: str) -> None:
        """Write a file whole or not at all."""
        write_whole(self.path / name, text + "\n")


def _identity(marker: Path) -> str:
    try:
        return str(json.loads(marker.read_text(encoding="utf-8"))["identity"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"


def _differences(theirs: str, ours: str) -> str:
    """Name the fields that differ, since signatures are long."""
    there, here = theirs.split("|"), ours.split("|")
    return f"{_joined(x for x in there if x not in here)} there, {_joined(x for x in here if x not in there)} here"


def _joined(fields: Iterable[str]) -> str:
    return "|".join(fields) or "nothing else"
