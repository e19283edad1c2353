"""A vice of prompted users that scripted ones can have: they give the reference away."""

from collections.abc import Sequence
from dataclasses import replace

from duologue.simulators._voice import Voice
from duologue.simulators.leaks import LONGEST_ANSWER, leaks
from duologue.types import Dialogue, UserTurn

ANSWER_LEAKS = (
    "I think the answer is {}.",
    "The answer is {}, right?",
    "Is the answer {}?",
    "My sheet says the answer is {}.",
)
"""How the gold answer is said. Not in the phrase banks: the mixes share them, and signatures hash those."""
QUOTE_LEAKS = ("Something like this: {}", "Maybe put it this way: {}", "I'd write: {}")
"""How a stretch of the goal document is said."""
STRETCH = 25
"""Words of the goal document that a user quotes at once; a leak begins at 8 (``leaks.N_GRAM``)."""


def perhaps_leak(voice: Voice, dialogue: Dialogue, turn: UserTurn) -> UserTurn:
    """Add a leak to a turn, at the persona's rate.

    Turns that end the dialogue stay as they are, since no reply could use the leak. So do turns in which nothing is
    left to give away: the assistant said it, or the user may tell it anyway (``leaks`` decides both).
    """
    if turn.stop is not None or not voice.vice("leak"):
        return turn
    for text in _candidates(voice, dialogue.task.reference):
        if leaks(dialogue.task, dialogue.messages, text):
            return replace(turn, text=f"{turn.text} {text}", notes={**turn.notes, "leaked": 1.0})
    return turn


def _candidates(voice: Voice, reference: str) -> list[str]:
    """Return what the user could say: one sentence with the answer, or quotes in random order."""
    rng = voice.vice_rng("words of a leak")
    tokens = reference.split()
    short = len(tokens) <= LONGEST_ANSWER
    options = ANSWER_LEAKS if short else QUOTE_LEAKS
    lead = options[int(rng.integers(len(options)))]
    if short:
        return [lead.format(reference)]
    return [lead.format(_stretch(tokens, int(i))) for i in rng.permutation(range(0, len(tokens), STRETCH))]


def _stretch(tokens: Sequence[str], start: int) -> str:
    """Return a whole stretch; the last one reaches back, so that it is no shorter."""
    start = max(0, min(start, len(tokens) - STRETCH))
    return " ".join(tokens[start : start + STRETCH])
