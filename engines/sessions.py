"""Which dialogue a prompt goes on with, by its tokens alone, so that its turns can be sent to the same worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from uuid import uuid4

_REMEMBERED = 8192
"""Rows whose next turn is recognised; older ones are forgotten first."""


class Sessions:
    """Names dialogues. A prompt that begins with a row seen before (a dialogue's next turn) bears that row's name."""

    def __init__(self) -> None:
        self._prefix = uuid4().hex[:8]  # names only; no sample depends on it
        self._numbers = count()
        self._rows: OrderedDict[tuple[int, int], str] = OrderedDict()

    def of(self, prompt: Sequence[int]) -> str:
        """Return the name of the dialogue that a prompt goes on with, or a new name.

        The longest row counts. Equal rows share a name, which does no harm: they share their keys and values too.
        """
        found, state = None, 0
        for length, token in enumerate(prompt, 1):
            state = hash((state, token))
            found = self._rows.get((length, state), found)
        return found or f"{self._prefix}-{next(self._numbers)}"

    def keep(self, name: str, row: Sequence[int]) -> None:
        """Remember a dialogue's row, prompt and completion, for its next turn."""
        state = 0
        for token in row:
            state = hash((state, token))
        self._rows[len(row), state] = name
        while len(self._rows) > _REMEMBERED:
            self._rows.popitem(last=False)
