"""How a user writes: counts of one dialogue's turns, each by its value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from duologue.analysis.fidelity.turns import Talk, Turn
from duologue.simulators._text import question_in
from duologue.simulators.logs import LoggedDialogue

Count = Callable[[Talk], Counter[float]]
"""From one dialogue to how often each value occurred in it; rates have the values 0.0 and 1.0."""
_SHORTEST = 3
_TOKEN = re.compile(r"[^\W\d_]+")
_NEGATION = re.compile(
    r"\b(?:no|not|nope|never|nothing|none|nobody|nowhere|neither|nor|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)


def rate(happens: Callable[[Turn], bool], chance: Callable[[Turn], bool] = lambda turn: True) -> Count:
    """Return how often something happened in a turn, of the turns that had a chance of it."""
    return lambda talk: Counter(float(happens(turn)) for turn in talk.turns if chance(turn))


def says(turn: Turn) -> bool:
    """Return True unless the user left without a word."""
    return bool(turn.text.strip())


def words_per_turn(talk: Talk) -> Counter[float]:
    """Count the words, by blanks, of each turn that says something."""
    return Counter(float(len(text.split())) for text in talk.texts)


def turns_per_dialogue(talk: Talk) -> Counter[float]:
    """Count the turns that say something, once for the dialogue."""
    return Counter([float(len(talk.texts) + talk.left_out)])


def asks(turn: Turn) -> bool:
    """Return True if a sentence asks for something, in form."""
    return bool(question_in(turn.text))


def negates(turn: Turn) -> bool:
    """Return True if a turn holds a word of negation (English)."""
    return bool(_NEGATION.search(turn.text))


def word_list(dialogues: Iterable[LoggedDialogue]) -> frozenset[str]:
    """Return the words that the assistant and the tasks spell, which stand for those that are spelled well."""
    texts = (text for d in dialogues for text in _spelled(d))
    return frozenset(word.lower() for text in texts for word in _TOKEN.findall(text))


def unlisted(listed: frozenset[str]) -> Count:
    """Return how many words of three letters or more stand in no list: typos, and words that the list lacks."""

    def count(talk: Talk) -> Counter[float]:
        tokens = [token.lower() for text in talk.texts for token in _TOKEN.findall(text)]
        return Counter(float(token not in listed) for token in tokens if len(token) >= _SHORTEST)

    return count


def _spelled(dialogue: LoggedDialogue) -> list[str]:
    task = dialogue.task
    said = [m["content"] for m in dialogue.messages if m["role"] == "assistant"]
    return [*said, task.instruction, task.reference, task.solution, *task.facts, *task.outline]
