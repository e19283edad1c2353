"""What a user turn does, told by fixed rules; docs/fidelity.md says how far they can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.analysis.acts.reading import Reading
from duologue.analysis.acts.rules import RULES
from duologue.types import Act, Message, StopReason, Task

_TAKES_BACK = frozenset({Act.ASK, Act.CONFUSED, Act.CORRECT, Act.REJECT})


def label_acts(task: Task, history: Sequence[Message], text: str, stop: StopReason | None = None) -> frozenset[Act]:
    """Return the dialogue acts of a user turn, told by ``RULES``; none for small talk.

    Args:
        task: what the dialogue is about. With ``facts``, a turn reveals if it tells one; without, if it brings content.
        history: the messages before the turn; empty = it opens the dialogue.
        text: what the user says.
        stop: set if the user ends the dialogue with this turn.
    """
    turn = Reading(task, history, text, stop)
    return frozenset(rule.act for rule in RULES if rule.holds(turn))


def lets_pass(task: Task, history: Sequence[Message], text: str) -> bool:
    """Return True if a user turn accepts what was said and neither asks, objects, changes nor stays confused.

    Arguments as for ``label_acts``.
    """
    acts = label_acts(task, history, text)
    return Act.ACCEPT in acts and not acts & _TAKES_BACK
