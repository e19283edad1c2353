"""Published chats of one row each: MathConverse, HALIE, Bridge and WildChat."""

from __future__ import annotations

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.disjoint import task_hash
from duologue.simulators.logs.importers.building import build, optional, turns_of
from duologue.simulators.rows import Row
from duologue.types import Task


def math_converse(row: Row, dialogue_id: str) -> LoggedDialogue | None:
    """Read a trace of MathConverse (Collins et al., PNAS 2024): people asking an assistant about proofs.

    The instruction is the name of the problem; there is no reference.
    """
    name = row.text("problem").removesuffix(".html")
    return build(
        optional(row, "id") or dialogue_id,
        Task(f"math-converse-{name}", name.replace("_", " "), ""),
        turns_of(row, "messages"),
        source="math-converse",
        person=row.data.get("uid"),
        metadata={"model": optional(row, "model"), "background": optional(row, "background")},
    )


def halie(row: Row, dialogue_id: str) -> LoggedDialogue | None:
    """Read a session of HALIE's social chats (Lee et al., 2022). The instruction is the scenario; no reference."""
    return build(
        optional(row, "id") or dialogue_id,
        _bare_task("halie", row.text("scenario")),
        turns_of(row, "messages"),
        source="halie",
        person=row.data.get("worker"),
        metadata={"model": optional(row, "model")},
    )


def bridge(row: Row, dialogue_id: str) -> LoggedDialogue | None:
    """Read a snippet of Bridge (Wang et al., NAACL 2024): the pupil is the user, the tutor the assistant.

    The messages are the history ``c_h`` and the tutor's own reply ``c_r``, not the expert's revision. The instruction
    is the lesson's topic; there is no reference.
    """
    turns = [*_chat(row, "c_h"), *_chat(row, "c_r")]
    labels = {name: optional(row, name) for name in ("e", "z_what", "z_why")}
    task = _bare_task("bridge", row.text("lesson_topic"))
    return build(optional(row, "c_id") or dialogue_id, task, turns, source="bridge", metadata=labels)


def wildchat(row: Row, dialogue_id: str) -> LoggedDialogue | None:
    """Read a row of WildChat (Zhao et al., 2024). The person is the hashed IP address; the instruction, the first turn.

    Toxic rows are kept: ``toxic`` is 1 in their metadata.
    """
    turns = turns_of(row, "conversation")
    first = next((str(text) for role, text in turns if role == "user" and isinstance(text, str) and text.strip()), "")
    address = row.data.get("hashed_ip") or next((m.get("hashed_ip") for m in row.get("conversation")), None)
    return build(
        optional(row, "conversation_hash") or dialogue_id,
        _bare_task("wildchat", first),
        turns,
        source="allenai/WildChat-1M",
        person=address,
        metadata={
            "model": optional(row, "model"),
            "language": optional(row, "language"),
            "toxic": int(bool(row.data.get("toxic"))),
        },
    )


def _bare_task(name: str, instruction: str) -> Task:
    """Return a task without a reference; its id follows from what it says."""
    task = Task(name, instruction, "")
    return Task(f"{name}-{task_hash(task)[:8]}", instruction, "")


def _chat(row: Row, column: str) -> list[tuple[str, object]]:
    lines = row.get(column)
    if not isinstance(lines, list) or not all(isinstance(line, dict) and "user" in line for line in lines):
        raise row.error(f"column {column!r} must be a list of lines with 'user' and 'text'. Correct this row.")
    return [(str(line["user"]), line.get("text")) for line in lines]
