"""From what speakers said, in whatever order, to a logged dialogue; what was changed is counted in its metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from duologue.rewards import extract_answer
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.rows import Row
from duologue.types import Message, Role, StopReason, Task

Values = Mapping[str, str | int | float | bool | None]
_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "student": "user",
    "prompter": "user",
    "assistant": "assistant",
    "tutor": "assistant",
}


def said(turns: Iterable[tuple[str, object]]) -> tuple[tuple[Message, ...], dict[str, int]]:
    """Return messages that start with the user and take turns, and how many were changed for that.

    Args:
        turns: speaker and text; ``system`` messages are dropped, and so are texts that are blank or no texts.

    Returns:
        The messages (none if no user spoke), and counts that are not 0: ``system_dropped``, ``blank_dropped``,
        ``leading_dropped`` (assistant turns before the first user turn), ``merged`` (turns joined to the one before
        them by the same speaker, with a line end between).
    """
    counts = {"system_dropped": 0, "blank_dropped": 0, "leading_dropped": 0, "merged": 0}
    messages: list[Message] = []
    for speaker, text in turns:
        role = _ROLES.get(speaker)
        if role is None:
            counts["system_dropped"] += 1
        elif not isinstance(text, str) or not text.strip():
            counts["blank_dropped"] += 1
        elif not messages and role == "assistant":
            counts["leading_dropped"] += 1
        elif messages and messages[-1]["role"] == role:
            counts["merged"] += 1
            messages[-1] = Message(role=role, content=f"{messages[-1]['content']}\n{text}")
        else:
            messages.append(Message(role=role, content=text))
    return tuple(messages), {name: count for name, count in counts.items() if count}


def build(
    dialogue_id: str,
    task: Task,
    turns: Iterable[tuple[str, object]],
    *,
    source: str,
    person: object = None,
    stop: StopReason | None = None,
    metadata: Values | None = None,
) -> LoggedDialogue | None:
    """Return a dialogue, or None if no user said anything. Metadata without a value is left out."""
    messages, counts = said(turns)
    if not messages:
        return None
    known = {name: value for name, value in (metadata or {}).items() if value is not None and value != ""}
    who = str(person).strip() if person is not None else ""
    return LoggedDialogue(dialogue_id, task, messages, stop, who or None, source, {**known, **counts})


def turns_of(row: Row, column: str) -> list[tuple[str, object]]:
    """Return the turns in a column of messages with ``role`` and ``content``.

    Raises:
        DuologueError: if the row lacks the column, or it is something else.
    """
    messages = row.get(column)
    if not isinstance(messages, list) or not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages
    ):
        raise row.error(f"column {column!r} must be a list of messages with 'role' and 'content'. Correct this row.")
    return [(m["role"], m.get("content")) for m in messages]


def in_turn(users: Sequence[object], assistants: Sequence[object]) -> list[tuple[str, object]]:
    """Return the turns of two columns, one per speaker, the user first."""
    turns: list[tuple[str, object]] = []
    for k in range(max(len(users), len(assistants))):
        turns += [("user", users[k])] if k < len(users) else []
        turns += [("assistant", assistants[k])] if k < len(assistants) else []
    return turns


def optional(row: Row, column: str) -> str:
    """Return a column as text, "" if the row lacks it or it holds no text or number."""
    value = row.data.get(column)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def final_answer(row: Row, solution: str) -> str:
    r"""Return what a worked solution comes to, read as the reward reads an assistant (``\boxed{…}``, ``#### …``).

    Raises:
        DuologueError: if it holds none.
    """
    options = extract_answer([solution]).options
    if options:
        return " or ".join(options)
    if len(solution) <= 60 and "\n" not in solution:
        return solution
    raise row.error(r"the solution holds neither '\boxed{…}' nor '#### RESULT'. Correct or remove this row.")
