"""From logged dialogues to rows of tokens for calibration: which are held out, what is left out and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from duologue.errors import DuologueError
from duologue.simulators.calibrated_layout import DECISION, GIVEN, HumanTurn, UserRow, human_turns, training_row
from duologue.simulators.logs import LoggedDialogue, check_disjoint, read_logs, split_logs

if TYPE_CHECKING:
    from duologue.engines.chat import ChatFormat
    from duologue.trainers.supervised import Row

HELD_OUT_SHARE = 0.2
"""Of the dialogues, if no held-out file is given."""


@dataclass(frozen=True, slots=True)
class Division:
    """Training and held-out dialogues, and how they were told apart: ``given``, ``person`` or ``dialogue``."""

    training: list[LoggedDialogue]
    held_out: list[LoggedDialogue]
    by: str


@dataclass(slots=True)
class Prepared:
    """Dialogues as rows of the user's model."""

    dialogues: list[LoggedDialogue] = field(default_factory=list)
    rows: list[UserRow] = field(default_factory=list)
    humans: list[list[HumanTurn]] = field(default_factory=list)
    """The person's turns of each dialogue, with decisions."""
    dropped: list[str] = field(default_factory=list)
    """Ids of dialogues that were longer than the limit."""
    left_out: int = 0
    """Last user messages of logs that do not say why they ended."""

    @property
    def training_rows(self) -> list[Row]:
        """Return the rows for supervised training."""
        return [{"input_ids": row.ids, "completion_mask": row.mask} for row in self.rows]

    @property
    def text_bytes(self) -> list[int]:
        """Return the UTF-8 bytes of what the person wrote, by dialogue."""
        return [sum(len(turn.text.strip().encode()) for turn in turns) for turns in self.humans]

    @property
    def longest_turn(self) -> int:
        """Return the tokens of the longest user turn, decision and end of turn included."""
        return max(max(Counter(turn for turn in row.turns if turn >= 0).values()) for row in self.rows)

    def counts(self) -> dict[str, Any]:
        """Return how much there is of everything."""
        kinds = Counter(kind for row in self.rows for kind in row.kinds)
        persons = {dialogue.person for dialogue in self.dialogues}
        return {
            "dialogues": len(self.rows),
            "persons": None if None in persons else len(persons),
            "user_turns": sum(map(len, self.humans)),
            "user_tokens": sum(kinds.values()) - kinds[GIVEN],
            "decision_tokens": kinds[DECISION],
            "text_bytes": sum(self.text_bytes),
            "decisions": dict(Counter(turn.decision for turns in self.humans for turn in turns[1:])),
            "dropped_as_too_long": self.dropped,
            "last_messages_left_out": self.left_out,
        }


def divide(dialogues: Sequence[LoggedDialogue], held_out: Sequence[LoggedDialogue] | None, seed: int = 0) -> Division:
    """Return training and held-out dialogues.

    Args:
        dialogues: for training, and for holding out a fifth if ``held_out`` is None: by person if every dialogue has
            one and there are several, else by dialogue.
        held_out: dialogues to measure on.
        seed: of the split.

    Raises:
        DuologueError: if one of the two is empty, or a held-out dialogue (its id or its words) is among the others.
    """
    if held_out is not None:
        _refuse_empty(held_out, "held-out")
        check_disjoint(dialogues, held_out, tasks=False)
        return Division(list(dialogues), list(held_out), "given")
    _refuse_empty(dialogues, "training")
    persons = {dialogue.person for dialogue in dialogues}
    by: Any = "person" if None not in persons and len(persons) > 1 else "dialogue"
    parts = split_logs(dialogues, {"training": 1 - HELD_OUT_SHARE, "held_out": HELD_OUT_SHARE}, by, seed)
    return Division(parts["training"], parts["held_out"], by)


def read_parts(dialogues: str | None, held_out: str | None) -> tuple[list[LoggedDialogue], list[LoggedDialogue] | None]:
    """Read the files of a configuration.

    Raises:
        DuologueError: if no file of dialogues is named, or one cannot be used.
    """
    if not dialogues:
        raise DuologueError("There are no dialogues to calibrate on. Give --dialogues FILE.jsonl (see duologue logs).")
    return read_logs(dialogues), read_logs(held_out) if held_out else None


def prepare(
    dialogues: Sequence[LoggedDialogue], chat: ChatFormat, template: str, limit: int, *, drop_long: bool
) -> Prepared:
    """Lay dialogues out as rows.

    Args:
        dialogues: to lay out.
        chat: of the user's model.
        template: Jinja prompt of the oracle context.
        limit: most tokens of a row.
        drop_long: leave longer dialogues out and note their ids, instead of refusing them.

    Raises:
        DuologueError: if a dialogue is malformed or too long, or none is left.
    """
    made = Prepared()
    for dialogue in dialogues:
        row, left_out = training_row(dialogue, chat, template)
        if len(row.ids) <= limit:
            made.dialogues.append(dialogue)
            made.rows.append(row)
            made.humans.append(human_turns(dialogue)[0])
            made.left_out += left_out
        elif drop_long:
            made.dropped.append(dialogue.dialogue_id)
        else:
            raise DuologueError(
                f"Dialogue {dialogue.dialogue_id!r} has {len(row.ids)} tokens, over the {limit} that max_total_tokens "
                "and the model's context allow. Raise max_total_tokens, or set drop_long to leave such dialogues out."
            )
    if not made.rows:
        raise DuologueError(f"All {len(dialogues)} dialogues are longer than {limit} tokens. Raise max_total_tokens.")
    return made


def data_hash(dialogues: Sequence[LoggedDialogue]) -> str:
    """Return 16 hex digits that identify a set of dialogues by their words, whatever their order."""
    return sha256("\n".join(sorted(d.content_hash for d in dialogues)).encode()).hexdigest()[:16]


def _refuse_empty(dialogues: Sequence[LoggedDialogue], which: str) -> None:
    if not dialogues:
        raise DuologueError(f"There are no {which} dialogues. Give some: a file from duologue collect or logs import.")
