"""The simulator contract: one batched method, a pure function of the dialogues that it is given."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from duologue.types import Dialogue, UserTurn


@runtime_checkable
class Simulator(Protocol):
    """A user. Keeps no state between calls: everything it needs is in the dialogue (task, seed, messages).

    A simulator may have a ``signature`` attribute, a short string that reported numbers carry.
    """

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the user's next turn for each dialogue, in order; the opening turn for an empty history."""
        ...
