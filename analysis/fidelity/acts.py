"""What a user turn does, told by fixed rules."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.types import Act, Message, StopReason, Task


def label_acts(task: Task, history: Sequence[Message], text: str, stop: StopReason | None = None) -> frozenset[Act]:
    """Return the dialogue acts of a user turn.

    Args:
        task: what the dialogue is about.
        history: the messages before the turn; empty = it opens the dialogue.
        text: what the user says.
        stop: set if the user ends the dialogue with this turn.
    """
    acts = {Act.OPEN} if not history else set()
    if "?" in text:
        acts.add(Act.ASK)
    if stop is not None:
        acts.add(Act.STOP)
    return frozenset(acts)
