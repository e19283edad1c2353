"""CollabLLM's multi-turn sets (Wu et al., ICML 2025): a simulated user, several scored replies at each turn.

A dialogue (``conv_id``) has many rows: each a history (``prompt``) with one reply (``completion``). The longest history
with its best-scored reply stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.importers.building import Values, build, final_answer, optional, turns_of
from duologue.simulators.rows import Row
from duologue.types import Task


def math_dialogues(rows: Iterable[Row], name: str) -> Iterator[LoggedDialogue | None]:
    """Read a set of problems; the reference is the answer of ``single_turn_completion``."""
    return (_adapt(row, name, math=True) for row in _whole(rows))


def document_dialogues(rows: Iterable[Row], name: str) -> Iterator[LoggedDialogue | None]:
    """Read a set of documents; the reference is ``single_turn_completion``."""
    return (_adapt(row, name, math=False) for row in _whole(rows))


def _whole(rows: Iterable[Row]) -> list[Row]:
    """Return one row per dialogue, in the order in which the dialogues begin."""
    best: dict[str, Row] = {}
    for row in rows:
        key = row.text("conv_id")
        if key not in best or _rank(row) > _rank(best[key]):
            best[key] = row
    return list(best.values())


def _rank(row: Row) -> tuple[int, float]:
    score = row.data.get("score")
    return len(turns_of(row, "prompt")), float(score) if isinstance(score, int | float) else 0.0


def _adapt(row: Row, name: str, *, math: bool) -> LoggedDialogue | None:
    key, target = row.text("conv_id"), row.text("single_turn_completion")
    reference, solution = (final_answer(row, target), target) if math else (target, "")
    metadata: Values = {"score": row.data.get("score")} if isinstance(row.data.get("score"), int | float) else {}
    return build(
        f"{name}-{key}",
        Task(f"{name}-task-{key}", row.text("single_turn_prompt"), reference, solution),
        [*turns_of(row, "prompt"), ("assistant", optional(row, "completion"))],
        source=name,
        metadata=metadata,
    )
