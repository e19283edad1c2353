"""What a user does: dialogue acts, what they let pass, give away, and when they leave."""

from __future__ import annotations

from collections import Counter

from duologue.analysis.fidelity.form import Count, rate
from duologue.analysis.fidelity.turns import Talk, Turn
from duologue.simulators.guards import MASK, flips_role
from duologue.simulators.leaks import leakable, leaks
from duologue.types import Act


def does(act: Act) -> Count:
    """Return how often a turn has an act."""
    return rate(lambda turn: act in turn.acts)


def leaves(talk: Talk) -> Counter[float]:
    """Return how often a turn ends the dialogue or says so; nothing if nobody knows how the dialogue ended."""
    return does(Act.STOP)(talk) if talk.end_known else Counter()


def accepts_wrong(turn: Turn) -> bool:
    """Return True if the user accepts what is wrong."""
    return turn.judged is not None and not turn.judged.right and turn.judged.accepted


def refuses_right(turn: Turn) -> bool:
    """Return True if the user does not accept what is right."""
    return turn.judged is not None and turn.judged.right and not turn.judged.accepted


def saw_wrong(turn: Turn) -> bool:
    """Return True if a wrong answer or a poor draft was offered."""
    return turn.judged is not None and not turn.judged.right


def saw_right(turn: Turn) -> bool:
    """Return True if a right answer or a good draft was offered."""
    return turn.judged is not None and turn.judged.right


def can_leak(turn: Turn) -> bool:
    """Return True if the turn ends nothing and the reference was there to be given away."""
    return turn.stop is None and leakable(turn.task, turn.history)


def gives_away(turn: Turn) -> bool:
    """Return True if the turn gives the reference away; a guard's mask counts."""
    return MASK in turn.text or leaks(turn.task, turn.history, turn.text)


def talks_like_assistant(turn: Turn) -> bool:
    """Return True if the turn offers help, states "The answer is …" or the like (see ``flips_role``)."""
    return flips_role(turn.text)


def stops(turn: Turn) -> bool:
    """Return True if the user leaves."""
    return turn.stop is not None


def person_stops(turn: Turn) -> bool:
    """Return True if the person whose history it is left here."""
    return bool(turn.person_stops)


def could_leave(turn: Turn) -> bool:
    """Return True if it is no opening."""
    return bool(turn.history)


def stops_with_the_person(talk: Talk) -> Counter[float]:
    """Return how often the person left too where the user leaves; nothing if nobody knows whether the person ever did.

    Such a dialogue holds only histories at which the person went on, so that every stop in it would count as wrong.
    """
    return rate(person_stops, known_stop)(talk) if talk.end_known else Counter()


def known_stop(turn: Turn) -> bool:
    """Return True if the user leaves, and it is known whether the person did."""
    return stops(turn) and turn.person_stops is not None
