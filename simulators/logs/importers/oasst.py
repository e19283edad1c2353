"""OpenAssistant (Köpf et al., 2023): trees of messages, of which the best-ranked path becomes a dialogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.importers.building import build, optional
from duologue.simulators.rows import Row
from duologue.types import Task


def dialogues(rows: Iterable[Row], name: str) -> Iterator[LoggedDialogue | None]:
    """Read messages; from each opening, follow the reply with the least ``rank`` down to a leaf.

    Replies without a rank come last, in the order of the file. Deleted messages, and what hangs on them, are left out.
    The instruction is the opening; the person is known if one volunteer wrote all the user's turns.
    """
    openings: list[Row] = []
    replies: dict[str, list[Row]] = {}
    for row in rows:
        if row.data.get("deleted"):
            continue
        parent = row.data.get("parent_id")
        (replies.setdefault(str(parent), []) if parent else openings).append(row)
    return (_adapt(_best_path(opening, replies), name) for opening in openings)


def _best_path(opening: Row, replies: Mapping[str, Sequence[Row]]) -> list[Row]:
    path = [opening]
    while below := replies.get(path[-1].text("message_id")):
        path.append(min(below, key=_rank))
    return path


def _rank(row: Row) -> float:
    rank = row.data.get("rank")
    return rank if isinstance(rank, int | float) and rank == rank else float("inf")  # NaN: a rank left out in Parquet


def _adapt(path: Sequence[Row], name: str) -> LoggedDialogue | None:
    opening, key = path[0], path[0].text("message_id")
    persons = {optional(row, "user_id") for row in path if row.data.get("role") == "prompter"}
    return build(
        key,
        Task(f"{name}-{key}", opening.text("text"), ""),
        [(row.text("role"), row.data.get("text")) for row in path],
        source=name,
        person=persons.pop() if len(persons) == 1 else None,
        metadata={"language": optional(opening, "lang")},
    )
