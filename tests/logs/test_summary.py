"""Numbers worked out by hand."""

import math
from collections.abc import Callable

import pytest

from duologue.errors import DuologueError
from duologue.simulators.logs import LoggedDialogue, Spread, summarise_logs
from duologue.types import Message, StopReason

MakeDialogue = Callable[..., LoggedDialogue]


def test_spread_by_hand() -> None:
    assert Spread.of([1, 2, 3, 4]) == Spread(4, 2.5, 1.75, 3.25)
    assert Spread.of([7]) == Spread(1, 7, 7, 7)
    assert math.isnan(Spread.of([]).median)


def test_summary_by_hand(dialogue: MakeDialogue) -> None:
    short = (Message(role="user", content="one two three"),)
    logs = [
        dialogue(0, person="a", stop=StopReason.USER_SATISFIED),  # turns of 5 and 4 words; 4 words of the assistant
        dialogue(1, person="a", stop=StopReason.USER_SATISFIED, source="other"),
        dialogue(2, messages=short),
    ]
    found = summarise_logs(logs)
    assert (found.dialogues, found.persons, found.unknown_persons, found.tasks) == (3, 1, 1, 3)
    assert found.user_turns == Spread(3, 2, 1.5, 2)
    assert found.user_words == Spread(5, 4, 4, 5)
    assert found.first_user_words == Spread(3, 5, 4, 5)
    assert found.later_user_words == Spread(2, 4, 4, 4)
    assert found.assistant_words == Spread(2, 4, 4, 4)
    assert found.stop_reasons == {"user_satisfied": 2, "unknown": 1}
    assert found.sources == {"unknown": 2, "other": 1}
    assert found.to_json()["user_turns"] == {"n": 3, "median": 2, "low": 1.5, "high": 2}


def test_no_dialogues() -> None:
    with pytest.raises(DuologueError, match="Give at least one"):
        summarise_logs([])
