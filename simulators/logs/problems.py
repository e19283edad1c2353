"""What can be wrong with a row of logged dialogues: each fault with its fix. Pure functions of one JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from duologue.errors import did_you_mean
from duologue.types import StopReason, Task

MAX_MESSAGE_CHARS = 1_000_000
"""Longest message that a log may hold, in characters: far above what people and models write in one turn."""

Fault = tuple[str, str]
"""What is wrong, and the fix."""

_FIELDS = ("dialogue_id", "task", "messages", "stop_reason", "person", "source", "metadata")
_TASK_FIELDS = tuple(field.name for field in fields(Task))
_TURNS = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file of logs."""

    line: int | None
    """Line in the file, from 1; None = the whole file."""
    what: str
    fix: str
    level: Literal["error", "warning"] = "error"
    """A file with an error is not read; a warning is only shown by ``duologue logs check``."""

    def __str__(self) -> str:
        where = "the file" if self.line is None else f"line {self.line}"
        return f"{where}: {self.what} {self.fix}"


def faults_of(row: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield all faults of one row in the format of ``LoggedDialogue.to_json``."""
    if "env_id" in row and "task" not in row:
        yield (
            "this is an episode, which holds no task.",
            "Make logs with tasks: duologue collect ENV --agent SPEC --output logs.jsonl.",
        )
        return
    yield from _unknown(row, _FIELDS, "a row")
    yield from _filled(row, "dialogue_id", "'dialogue_id'")
    yield from _task_faults(row)
    yield from _messages_faults(row.get("messages"))
    yield from _ending_faults(row)
    yield from _metadata_faults(row, "'metadata'")


def _unknown(row: Mapping[str, Any], known: tuple[str, ...], what: str) -> Iterator[Fault]:
    for name in row:
        if name in _TASK_FIELDS and name not in known:
            yield f"{name!r} stands beside the task.", f'Put it inside: "task": {{"{name}": …}}.'
        elif name not in known:
            yield f"{what} has no field {name!r}.", f"{did_you_mean(name, known)} Other values belong in 'metadata'."


def _filled(row: Mapping[str, Any], name: str, called: str) -> Iterator[Fault]:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        yield f"{called} must be a text that is not blank, but is {value!r:.60}.", "Fill it in."
    elif not _encodable(value):
        yield f"{called} holds half a character (a lone surrogate).", "Write the file again in UTF-8."


def _task_faults(row: Mapping[str, Any]) -> Iterator[Fault]:
    task = row.get("task")
    if not isinstance(task, dict) or not task:
        yield "'task' is missing or empty.", 'Write "task": {"task_id": …, "instruction": …, "reference": …}.'
        return
    for name in task:
        if name not in _TASK_FIELDS:
            yield f"a task has no field {name!r}.", f"{did_you_mean(name, _TASK_FIELDS)} Correct or remove it."
    yield from _filled(task, "task_id", "the task's 'task_id'")
    yield from _filled(task, "instruction", "the task's 'instruction'")
    if not _is_text(task.get("reference")):
        yield "the task's 'reference' must be a text.", 'Write the gold answer, or "" if there is none.'
    if not _is_text(task.get("solution", "")):
        yield "the task's 'solution' must be a text.", "Correct it, or leave it out."
    for name in ("facts", "outline"):
        texts = task.get(name, [])
        if not isinstance(texts, list) or not all(map(_is_text, texts)):
            yield f"the task's {name!r} must be a list of texts.", "Correct it, or leave it out."
    yield from _metadata_faults(task, "the task's 'metadata'")


def _messages_faults(messages: object) -> Iterator[Fault]:
    if not isinstance(messages, list) or not messages:
        yield "'messages' must be a list with at least one message.", "Add the messages, or remove this row."
        return
    roles = [m.get("role") if isinstance(m, dict) else None for m in messages]
    for k, (message, role) in enumerate(zip(messages, roles, strict=True)):
        if not isinstance(message, dict):
            yield f"message {k} is no object with 'role' and 'content'.", "Write it as one."
            continue
        if role == "system":
            yield f"message {k} is a system message.", "Remove it: the log holds what both speakers said."
        elif role not in _TURNS:
            yield f"message {k} has the role {role!r:.40}.", "Write 'user' or 'assistant'."
        yield from _content_faults(k, message.get("content"))
    spoken = [role for role in roles if role in _TURNS]
    if spoken and spoken != [_TURNS[k % 2] for k in range(len(spoken))]:
        yield "the roles are out of order.", f"Start with the user and take turns ({_first_break(spoken)})."


def _first_break(roles: list[Any]) -> str:
    k = next(k for k, role in enumerate(roles) if role != _TURNS[k % 2])
    if k == 0:
        return "message 0 is the assistant's: remove it"
    return f"messages {k - 1} and {k} are both the {roles[k]}'s: merge them"


def _content_faults(k: int, content: object) -> Iterator[Fault]:
    if not isinstance(content, str):
        yield f"message {k} has no 'content' text.", "Write what was said as one text."
    elif not content.strip():
        yield f"message {k} is blank.", "Remove it, and merge what then stands side by side."
    elif len(content) > MAX_MESSAGE_CHARS:
        yield f"message {k} has {len(content):,} characters, over {MAX_MESSAGE_CHARS:,}.", "Shorten or remove it."
    elif not _encodable(content):
        yield f"message {k} holds half a character (a lone surrogate).", "Write the file again in UTF-8."


def _ending_faults(row: Mapping[str, Any]) -> Iterator[Fault]:
    stop, known = row.get("stop_reason"), [reason.value for reason in StopReason]
    if stop is not None and stop not in known:
        yield f"'stop_reason' is {stop!r:.60}.", f"{did_you_mean(str(stop), known)} Write null if it is not known."
    person = row.get("person")
    if person is not None and not (isinstance(person, str) and person.strip()):
        yield f"'person' is {person!r:.60}.", "Write an id as text, or null if it is not known."
    if not _is_text(row.get("source", "")):
        yield "'source' must be a text.", "Name the data set, or leave it out."


def _metadata_faults(row: Mapping[str, Any], called: str) -> Iterator[Fault]:
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str | int | float) for v in metadata.values()):
        yield f"{called} must be an object of texts and numbers.", "Correct it, or leave it out."


def _is_text(value: object) -> bool:
    return isinstance(value, str) and _encodable(value)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
