"""Logged dialogues as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from duologue.simulators.logs.dialogue import LoggedDialogue


def write_logs(path: str | Path, dialogues: Iterable[LoggedDialogue]) -> Path:
    """Write dialogues, one JSON object a line, whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        for dialogue in dialogues:
            file.write(json.dumps(dialogue.to_json(), ensure_ascii=False) + "\n")
    partial.replace(path)
    return path


def read_logs(path: str | Path) -> list[LoggedDialogue]:
    """Read dialogues.

    Raises:
        DuologueError: if the file is missing or a line cannot be used.
    """
    lines = Path(path).read_text(encoding="utf-8").split("\n")  # not splitlines(): texts may hold U+2028
    return [LoggedDialogue.from_json(json.loads(line)) for line in lines if line.strip()]
