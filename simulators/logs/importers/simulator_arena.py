"""SimulatorArena (Dou et al., EMNLP 2025): people who are tutored in maths or write documents with an assistant.

Reads the published annotations (``user_queries``, ``ai_responses``) and rows with ``messages``. Tutoring: the published
file leaves the problems out; add columns ``problem`` and ``solution`` from MATH. Many people went on to a similar
second problem: ``problem_1_turns`` in the metadata says how many user turns are about the task.
"""

from __future__ import annotations

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.importers.building import build, final_answer, in_turn, optional, turns_of
from duologue.simulators.rows import Row
from duologue.types import StopReason, Task

NAME = "simulator-arena"
_SATISFIED = ("satified", "satisfied", "confident enough")
_MATH_DATA = (
    "level",
    "type",
    "model",
    "problem_1_turns",
    "problem_1_correctness",
    "turk_final_answer",
    "overall_rating",
)
_DOCUMENT_DATA = ("document_type", "model", "overall_interaction_rating", "overall_document_rating")


def adapt(row: Row, dialogue_id: str) -> LoggedDialogue | None:
    """Read a row of either kind: one with ``intent`` is a document, any other is tutoring."""
    document = "intent" in row.data
    return build(
        optional(row, "id") or dialogue_id,
        _document_task(row, dialogue_id) if document else _math_task(row, dialogue_id),
        _turns(row),
        source=f"{NAME}-{'documents' if document else 'math'}",
        person=row.data.get("workerId"),
        stop=_stop(optional(row, "why_stop").lower()),
        metadata={name: row.data.get(name) for name in (_DOCUMENT_DATA if document else _MATH_DATA)},
    )


def _turns(row: Row) -> list[tuple[str, object]]:
    if "messages" in row.data:
        return turns_of(row, "messages")
    users, assistants = row.get("user_queries"), row.get("ai_responses")
    if not isinstance(users, list) or not isinstance(assistants, list):
        raise row.error("'user_queries' and 'ai_responses' must be lists of texts. Correct this row.")
    return in_turn(users, assistants)


def _math_task(row: Row, dialogue_id: str) -> Task:
    for name in ("problem", "solution"):
        if name not in row.data:
            raise row.error(f"there is no column {name!r}. Add it from MATH: 'question_location' says where it stands.")
    solution = row.text("solution")
    answer = optional(row, "answer") or final_answer(row, solution)
    place = optional(row, "math_unique_id") or optional(row, "question_location") or dialogue_id
    return Task(place, row.text("problem"), answer, solution, metadata={"level": optional(row, "level")})


def _document_task(row: Row, dialogue_id: str) -> Task:
    """Outline: the questions about what the document should say; facts: the person's answers, if the row has them."""
    history = [text for text in row.data.get("document_history") or [] if isinstance(text, str) and text.strip()]
    return Task(
        task_id=f"task-{optional(row, 'id') or dialogue_id}",
        instruction=row.text("intent"),
        reference=optional(row, "final_document") or (history[-1].strip() if history else ""),
        facts=_texts(row.data.get("bullet_points_responses")),
        outline=_texts(row.data.get("bullet_points")),
        metadata={"document_type": optional(row, "document_type")},
    )


def _texts(values: object) -> tuple[str, ...]:
    listed = list(values.values()) if isinstance(values, dict) else values
    return tuple(v.strip() for v in listed if isinstance(v, str) and v.strip()) if isinstance(listed, list) else ()


def _stop(why: str) -> StopReason | None:
    """Read the answer to "Why did you end the session?"; technical trouble and other reasons are no reason of ours."""
    if "not helpful" in why:
        return StopReason.USER_GAVE_UP
    return StopReason.USER_SATISFIED if any(words in why for words in _SATISFIED) else None
