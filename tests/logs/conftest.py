"""Rows and dialogues made by hand, and the real data beside the repository."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duologue.simulators.logs import LoggedDialogue
from duologue.types import Message, Task

MakeRow = Callable[..., dict[str, Any]]
MakeDialogue = Callable[..., LoggedDialogue]
WriteRows = Callable[..., Path]


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data beside the repository."""
    folder = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}")
    return folder


@pytest.fixture
def dialogue() -> MakeDialogue:
    """Make a dialogue whose words follow from its number."""

    def make(i: int = 0, **fields: Any) -> LoggedDialogue:
        said = (
            Message(role="user", content=f"what is half of {2 * i}?"),
            Message(role="assistant", content=f"The answer is {i}."),
            Message(role="user", content="thank you very much"),
        )
        task = Task(f"t-{i}", f"What is half of {2 * i}?", str(i))
        return LoggedDialogue(**{"dialogue_id": f"d-{i}", "task": task, "messages": said, **fields})

    return make


@pytest.fixture
def row(dialogue: MakeDialogue) -> MakeRow:
    """Make a sound row; keywords replace its fields."""

    def make(i: int = 0, **fields: Any) -> dict[str, Any]:
        return {**dialogue(i).to_json(), **fields}

    return make


@pytest.fixture
def write(tmp_path: Path) -> WriteRows:
    """Write rows: objects as JSON, texts and bytes as they are, each with a line end."""

    def make(*rows: object, name: str = "logs.jsonl") -> Path:
        lines = [r if isinstance(r, bytes) else (r if isinstance(r, str) else json.dumps(r)).encode() for r in rows]
        path = tmp_path / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return make
