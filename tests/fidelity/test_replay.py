"""Replayed turns: beside the person's, kept, and counted where the user fails."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from duologue.analysis.fidelity.replay import AT_ONCE, TurnFile, calls, replay
from duologue.errors import DuologueError
from duologue.simulators import ScriptedMathUser
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Dialogue, StopReason, UserTurn

MATH = "MathChat-v0"


class Parrot:
    """Says how long the history is; leaves after two replies; fails where it is told to."""

    signature = "parrot"

    def __init__(self, fails_at: int | None = None) -> None:
        self.fails_at = fails_at
        self.asked: list[int] = []

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        self.asked.append(len(dialogues))
        if any(len(d.messages) == self.fails_at for d in dialogues):
            raise RuntimeError("no")
        return [
            UserTurn(str(len(d.messages)), StopReason.USER_GAVE_UP if len(d.messages) > 3 else None) for d in dialogues
        ]


def test_every_history_of_the_person_gets_a_turn_in_few_calls(people: list[LoggedDialogue]) -> None:
    user = Parrot()
    found = replay(user, people[:10], MATH)
    assert [t.dialogue_id for t in found.talks] == [d.dialogue_id for d in people[:10]]
    for talk, person in zip(found.talks, found.people, strict=True):
        assert [t.text for t in talk.turns] == [str(2 * i) for i in range(len(person.turns))]
        assert [t.history for t in talk.turns] == [t.history for t in person.turns]
        assert [t.person_stops for t in talk.turns] == [t.stop is not None for t in person.turns]
    assert sum(user.asked) == sum(len(t.turns) for t in found.people)
    assert max(user.asked) <= AT_ONCE
    assert len(user.asked) == max(len(t.turns) for t in found.people)
    assert not found.failed


def test_where_a_user_fails_both_sides_are_left_out_and_counted(people: list[LoggedDialogue]) -> None:
    found = replay(Parrot(fails_at=2), people[:4], MATH)
    whole = replay(Parrot(), people[:4], MATH)
    lengths = [len(t.turns) for t in whole.people]
    assert [len(t.turns) for t in found.talks] == [n - (n > 1) for n in lengths]
    assert [len(t.turns) for t in found.people] == [len(t.turns) for t in found.talks]
    assert sum(found.failed.values()) == sum(n > 1 for n in lengths)
    assert "no" in next(iter(found.failed))


def test_a_killed_run_goes_on_where_it_was(people: list[LoggedDialogue], tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    first = replay(ScriptedMathUser("default"), people[:6], MATH, file=TurnFile(path))
    path.write_text(path.read_text() + '{"key": "cut')
    user = Parrot()
    user.signature = ScriptedMathUser("default").signature  # it would answer otherwise if it were asked
    again = replay(user, people[:6], MATH, file=TurnFile(path))
    assert again.talks == first.talks
    assert user.asked == []
    assert path.read_text().endswith("}\n")
    seeded = replay(user, people[:6], MATH, seed=1, file=TurnFile(path))
    assert user.asked
    assert seeded.talks != first.talks


def test_a_damaged_file_says_where(tmp_path: Path) -> None:
    (tmp_path / "turns.jsonl").write_text("{}\n")
    with pytest.raises(DuologueError, match=r"Line 1 .* Remove the line"):
        TurnFile(tmp_path / "turns.jsonl")
    (tmp_path / "turns.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(DuologueError, match=r"Line 1 .* Remove the line"):
        TurnFile(tmp_path / "turns.jsonl")


def test_calls_go_on_where_the_last_was_and_long_histories_do_not_pad_short_ones() -> None:
    turns = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
    lengths = [0, 900, 40_000, 0, 800, 0, 29_000, 0]
    assert calls(range(8), lengths, turns) == [[3, 7], [4], [5], [6], [0], [1], [2]]
    assert calls([2, 4], lengths, turns) == [[4], [2]]  # the others are known
    even = [(d, t) for d in range(40) for t in range(2)]
    groups = calls(range(80), [1] * 80, even)
    assert [len(group) for group in groups] == [16, 16, 16, 16, 8, 8]
    assert groups[1] == [row + 1 for row in groups[0]]
    assert calls([], lengths, turns) == []
