"""How logged dialogues look in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from duologue.errors import DuologueError
from duologue.simulators.logs.dialogue import LoggedDialogue


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles (by linear interpolation) of n values; NaN where n is 0."""

    n: int
    median: float
    low: float
    """First quartile."""
    high: float
    """Third quartile; ``high - low`` is the interquartile range."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Measure values."""
        listed = list(values)
        low, median, high = np.percentile(listed, [25, 50, 75]) if listed else [float("nan")] * 3
        return cls(len(listed), float(median), float(low), float(high))


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Counts and spreads of a set of logged dialogues. Words are what blanks separate."""

    dialogues: int
    persons: int
    """Different persons, where they are known."""
    unknown_persons: int
    """Dialogues whose person is not known."""
    tasks: int
    """Different ``task_id``s."""
    user_turns: Spread
    """User turns per dialogue."""
    user_words: Spread
    """Words per user turn."""
    first_user_words: Spread
    """Words in the first user turn."""
    later_user_words: Spread
    """Words in each user turn after the first."""
    assistant_words: Spread
    """Words per assistant turn."""
    stop_reasons: Mapping[str, int]
    """How often each; ``unknown`` where the log does not say."""
    sources: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)


def summarise_logs(dialogues: Sequence[LoggedDialogue]) -> LogSummary:
    """Measure logged dialogues.

    Raises:
        DuologueError: if there are none.
    """
    if not dialogues:
        raise DuologueError("There are no dialogues to summarise. Give at least one.")
    users = [_words(dialogue, "user") for dialogue in dialogues]
    return LogSummary(
        dialogues=len(dialogues),
        persons=len({d.person for d in dialogues if d.person is not None}),
        unknown_persons=sum(d.person is None for d in dialogues),
        tasks=len({d.task.task_id for d in dialogues}),
        user_turns=Spread.of(map(len, users)),
        user_words=Spread.of(n for turns in users for n in turns),
        first_user_words=Spread.of(turns[0] for turns in users if turns),
        later_user_words=Spread.of(n for turns in users for n in turns[1:]),
        assistant_words=Spread.of(n for d in dialogues for n in _words(d, "assistant")),
        stop_reasons=_counts(d.stop.value if d.stop else "unknown" for d in dialogues),
        sources=_counts(d.source for d in dialogues),
    )


def _words(dialogue: LoggedDialogue, role: str) -> list[int]:
    return [len(m["content"].split()) for m in dialogue.messages if m["role"] == role]


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
