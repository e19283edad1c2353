"""The data sets that can be imported, by name, and the import itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from duologue.errors import DuologueError, MissingExtraError, did_you_mean
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.simulators.logs.importers import chats, collabllm, oasst, simulator_arena
from duologue.simulators.rows import Row, read_rows

Read = Callable[[Iterable[Row], str], Iterator[LoggedDialogue | None]]
"""From rows and the source's name to dialogues; None for one in which no user spoke."""


def _each(adapt: Callable[[Row, str], LoggedDialogue | None]) -> Read:
    """Return a reader of sets with one dialogue a row."""

    def read(rows: Iterable[Row], name: str) -> Iterator[LoggedDialogue | None]:
        return (adapt(row, f"{name}-{number:06d}") for number, row in enumerate(rows))

    return read


FILE_SOURCES: Mapping[str, Read] = {
    "simulator-arena": _each(simulator_arena.adapt),
    "math-converse": _each(chats.math_converse),
    "halie": _each(chats.halie),
    "bridge": _each(chats.bridge),
}
"""Sets that are read from a file."""

HUB_SOURCES: Mapping[str, Read] = {
    "collabllm/collabllm-multiturn-math-hard": collabllm.math_dialogues,
    "collabllm/collabllm-multiturn-medium": collabllm.document_dialogues,
    "OpenAssistant/oasst1": oasst.dialogues,
    "allenai/WildChat-1M": _each(chats.wildchat),
}
"""Sets of the Hugging Face hub, also read from a file that was downloaded."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought."""

    dialogues: list[LoggedDialogue]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many dialogues were left out, by reason."""


def import_logs(source: str, path: str | Path | None = None, limit: int | None = None) -> list[LoggedDialogue]:
    """Import a published data set; ``imported`` also says what was left out.

    Args:
        source: a name in ``FILE_SOURCES`` or ``HUB_SOURCES``.
        path: JSONL, JSON or Parquet; None = load from the hub (``train`` split, needs the extra ``hub``).
        limit: at most so many dialogues, from the first on; None = all.

    Raises:
        DuologueError: for an unknown source, a missing or broken file or row, or if the hub cannot be reached.
        MissingExtraError: without ``datasets``, or for Parquet without pyarrow.
    """
    return imported(source, path, limit).dialogues


def imported(source: str, path: str | Path | None = None, limit: int | None = None) -> Imported:
    """Import like ``import_logs``, and count what was left out: dialogues without a user, and repeated ones.

    Raises:
        DuologueError: as ``import_logs``; also if no dialogue is left.
    """
    known = {**FILE_SOURCES, **HUB_SOURCES}
    if source not in known:
        raise DuologueError(f"No importer for {source!r}. {did_you_mean(source, known)}")
    if limit is not None and limit < 1:
        raise DuologueError(f"limit must be 1 or more, got {limit}. Leave it out to import everything.")
    if path is None and source in FILE_SOURCES:
        raise DuologueError(f"{source!r} is read from a file. Give its path: duologue logs import {source} PATH.")
    rows = _hub_rows(source) if path is None else read_rows(path)
    return _collected(known[source](rows, source), source, limit)


def _collected(found: Iterable[LoggedDialogue | None], source: str, limit: int | None) -> Imported:
    dialogues: list[LoggedDialogue] = []
    ids: dict[str, int] = {}
    contents: set[str] = set()
    left_out = {"no user turn": 0, "the same task and words as another": 0}
    for dialogue in found:
        if dialogue is None:
            left_out["no user turn"] += 1
        elif dialogue.content_hash in contents:
            left_out["the same task and words as another"] += 1
        else:
            contents.add(dialogue.content_hash)
            ids[dialogue.dialogue_id] = ids.get(dialogue.dialogue_id, 0) + 1
            dialogues.append(_renamed(dialogue, ids[dialogue.dialogue_id]))
        if len(dialogues) == limit:
            break
    if not dialogues:
        raise DuologueError(f"{source!r} held no dialogue in which a user spoke. Check the file.")
    return Imported(dialogues, {reason: count for reason, count in left_out.items() if count})


def _renamed(dialogue: LoggedDialogue, times: int) -> LoggedDialogue:
    """Return the dialogue under an id of its own: some sets use an id for several dialogues."""
    return dialogue if times == 1 else replace(dialogue, dialogue_id=f"{dialogue.dialogue_id}#{times}")


def _hub_rows(dataset_id: str) -> Iterator[Row]:
    """Stream rows, so that a limit also limits what is downloaded."""
    load = _load_dataset()
    try:
        for number, values in enumerate(load(dataset_id, split="train", streaming=True)):
            yield Row(f"{dataset_id}, row {number}", values)
    except Exception as error:  # whatever went wrong below (network, hub, cache, access): what to do is the same
        raise DuologueError(
            f"Could not load {dataset_id!r} from the hub ({type(error).__name__}: {error}). Check the network and your "
            "access, or download its files and give the path of one: duologue logs import SOURCE PATH."
        ) from error


def _load_dataset() -> Callable[..., Iterable[Mapping[str, Any]]]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise MissingExtraError("Importing logs from the hub", "hub") from error
    function: Callable[..., Iterable[Mapping[str, Any]]] = load_dataset
    return function
