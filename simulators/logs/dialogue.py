"""One logged dialogue: the row that calibration, cloning and static-context training share. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from duologue.types import Message, StopReason, Task


@dataclass(frozen=True, slots=True)
class LoggedDialogue:
    """A dialogue that took place, with the task that it was about. One JSONL line each."""

    dialogue_id: str
    """Unique within a file."""
    task: Task
    messages: tuple[Message, ...]
    """Hugging Face conversational messages: the user first, then in turn, no system message."""
    stop: StopReason | None = None
    """Why it ended; None = the log does not say."""
    person: str | None = None
    """Who the user was, so that splits can keep people apart; None = unknown."""
    source: str = "unknown"
    """Where it comes from: a data set's name, or the signatures of simulator and agent."""
    metadata: Mapping[str, str | int | float] = field(default_factory=dict)
    """Anything else that the source tells: ratings, model, document type."""

    @property
    def content_hash(self) -> str:
        """Return 16 hex digits that identify task and words, whatever the ids: equal hashes are leaked rows."""
        words = [self.task.instruction, self.task.reference, *(f"{m['role']}:{m['content']}" for m in self.messages)]
        return sha256(json.dumps(words, ensure_ascii=False).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; ``from_json`` reads it back."""
        return {
            "dialogue_id": self.dialogue_id,
            "task": self.task.to_json(),
            "messages": [dict(m) for m in self.messages],
            "stop_reason": self.stop.value if self.stop else None,
            "person": self.person,
            "source": self.source,
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> LoggedDialogue:
        """Build a dialogue from ``to_json``'s object.

        Raises:
            KeyError, TypeError, ValueError: if a field is missing or of a wrong kind. ``read_logs`` says it with the
                line number and the fix.
        """
        stop = row.get("stop_reason")
        return cls(
            dialogue_id=str(row["dialogue_id"]),
            task=Task.from_json(row["task"]),
            messages=tuple(Message(role=m["role"], content=m["content"]) for m in row["messages"]),
            stop=StopReason(stop) if stop else None,
            person=row.get("person"),
            source=str(row.get("source", "unknown")),
            metadata=dict(row.get("metadata", {})),
        )
