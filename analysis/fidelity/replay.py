"""A user's turn beside the person's, at every history of a log. Turns are kept, so that a killed run goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from duologue.analysis.fidelity.turns import Talk, Turn, talk_of_log
from duologue.json_files import drop_cut_line, read_lines
from duologue.rewards import signature_of
from duologue.simulators.base import Simulator
from duologue.simulators.logs import LoggedDialogue
from duologue.simulators.reliable import answer_all
from duologue.types import Dialogue, StopReason, UserTurn

AT_ONCE = 16
"""Histories that go to the user in one call; a killed run loses no more."""
PADDED = 60_000
"""Characters that the histories of one call may come to, each counted as long as the longest."""
OnTurns = Callable[[int, int], None]
"""Called with turns done and turns in all."""


@dataclass(slots=True)
class Beside:
    """One speaker's dialogues, the people's at the same histories if it was replayed, and what failed."""

    talks: list[Talk] = field(default_factory=list)
    people: list[Talk] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    """How many turns (free: dialogues) could not be had, by reason."""


class TurnFile:
    """User turns as JSON lines, by a key of user, seed and history."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.turns = dict(_read(path)) if path.is_file() else {}

    def keep(self, key: str, turn: UserTurn) -> None:
        """Add a turn."""
        row = {"key": key, "text": turn.text, "stop_reason": turn.stop.value if turn.stop else None}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.turns[key] = turn


def replay(
    simulator: Simulator,
    dialogues: Sequence[LoggedDialogue],
    env: str,
    *,
    seed: int = 0,
    timeout: float | None = None,
    file: TurnFile | None = None,
    on_turns: OnTurns | None = None,
) -> Beside:
    """Ask a user for its turn at every history of people's dialogues, the opening included.

    A history at which the user fails twice is left out on both sides and counted.

    Args:
        simulator: the user.
        dialogues: people's.
        env: environment id.
        seed: of the users, one for each dialogue.
        timeout: seconds of a call.
        file: keeps turns, and knows those of an earlier run.
        on_turns: follows the turns.

    Raises:
        DuologueError: if a dialogue is malformed.
    """
    people = [talk_of_log(dialogue, env) for dialogue in dialogues]
    seeds = [_seed(seed, dialogue) for dialogue in dialogues]
    waiting = [Dialogue(u.task, s, u.history) for talk, s in zip(people, seeds, strict=True) for u in talk.turns]
    answers = iter(_ask(simulator, waiting, timeout, file, on_turns))
    found = Beside()
    for talk in people:
        pairs = [(turn, next(answers)) for turn in talk.turns]
        kept = [(turn, answer) for turn, answer in pairs if isinstance(answer, UserTurn)]
        found.failed.update(" ".join(str(answer).split()) for _, answer in pairs if isinstance(answer, Exception))
        if kept:
            found.people.append(replace(talk, turns=tuple(turn for turn, _ in kept)))
            found.talks.append(replace(talk, turns=tuple(_instead(turn, answer) for turn, answer in kept)))
    return found


def _ask(
    simulator: Simulator,
    waiting: Sequence[Dialogue],
    timeout: float | None,
    file: TurnFile | None,
    on_turns: OnTurns | None,
) -> list[UserTurn | Exception]:
    known = file.turns if file else {}
    keys = [_key(signature_of(simulator), dialogue) for dialogue in waiting]
    answers: dict[int, UserTurn | Exception] = {i: known[key] for i, key in enumerate(keys) if key in known}
    missing = [i for i in range(len(waiting)) if i not in answers]
    lengths = [sum(len(m["content"]) for m in dialogue.messages) for dialogue in waiting]
    for asked in calls(missing, lengths, _turns_of(waiting)):
        for i, turn in zip(asked, answer_all(simulator, [waiting[i] for i in asked], timeout), strict=True):
            answers[i] = turn
            if file and isinstance(turn, UserTurn):
                file.keep(keys[i], turn)
        if on_turns:
            on_turns(len(answers), len(waiting))
    return [answers[i] for i in range(len(waiting))]


def calls(rows: Sequence[int], lengths: Sequence[int], turns: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Group rows for calls: some dialogues side by side, turn by turn, so that each call goes on where the last was.

    A model then reads of each history only what the call before has not read. Dialogues of like length go together,
    as the others are padded.

    Args:
        rows: to be asked for.
        lengths: characters of the history of every row.
        turns: dialogue and turn of every row.

    Returns:
        Groups of at most ``AT_ONCE`` rows, whose number times their dialogues' longest history is at most ``PADDED``
        (or one row).
    """
    longest: dict[int, int] = {}
    for row in rows:
        longest[turns[row][0]] = max(lengths[row], longest.get(turns[row][0], 0))
    blocks: list[list[int]] = []
    for dialogue in sorted(longest, key=lambda d: longest[d]):
        last = blocks[-1] if blocks else []
        if not last or len(last) == AT_ONCE or (len(last) + 1) * longest[dialogue] > PADDED:
            blocks.append(last := [])
        last.append(dialogue)
    block_of = {dialogue: i for i, block in enumerate(blocks) for dialogue in block}
    groups: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        groups.setdefault((block_of[turns[row][0]], turns[row][1]), []).append(row)
    return [groups[key] for key in sorted(groups)]


def _turns_of(waiting: Sequence[Dialogue]) -> list[tuple[int, int]]:
    """Return dialogue and turn of each row; a dialogue's rows stand together, its opening first."""
    found, dialogue = [], -1
    for row in waiting:
        turn = len(row.messages) // 2
        dialogue += turn == 0
        found.append((dialogue, turn))
    return found


def _instead(turn: Turn, answer: UserTurn) -> Turn:
    return Turn(turn.env, turn.task, turn.history, answer.text, answer.stop, turn.person_stops)


def _seed(seed: int, dialogue: LoggedDialogue) -> int:
    return int.from_bytes(sha256(f"fidelity:{seed}:{dialogue.content_hash}".encode()).digest()[:4], "big") >> 1


def _key(signature: str, dialogue: Dialogue) -> str:
    said = [signature, dialogue.task.to_json(), dialogue.seed, dialogue.messages]
    return sha256(json.dumps(said, ensure_ascii=False).encode()).hexdigest()[:32]


def _read(path: Path) -> list[tuple[str, UserTurn]]:
    """Return the kept turns; a last line that was cut in writing is removed from the file."""
    drop_cut_line(path)
    return read_lines(path, _kept, "turn", "Remove the line.")


def _kept(row: Mapping[str, Any]) -> tuple[str, UserTurn]:
    stop = StopReason(row["stop_reason"]) if row["stop_reason"] else None
    return str(row["key"]), UserTurn(str(row["text"]), stop)
