"""Plain text tests that scripted users and guards share: words, numbers, questions, which facts were told."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from duologue.errors import DuologueError
from duologue.types import Dialogue

_WORD = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NUMBER = re.compile(r"(?<![\w.])[-\u2212]?\$?\d[\d,]*(?:\.\d+)?(?:/\d+)?|(?<=\w)\d+(?:\.\d+)?")
_SENTENCE = re.compile(r"[^.?!\n]+(?:\.(?=\d)[^.?!\n]*)*[.?!]*")
_ASKS = re.compile(
    r"^\W*(?:(?:what|which|how (?:many|much|long|old|far|often)|who|when|where)\b)"
    r"|\b(?:tell me|let me know|give me|share (?:with )?|please (?:provide|tell|give|share|list|specify|state)"
    r"|(?:i|we) need to know|could you|can you|would you)\b",
    re.IGNORECASE,
)
_UNITS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_WORD_NUMBERS = {word: value for value, word in enumerate(_UNITS.split(), start=2)}
_WORD_NUMBERS |= {word: 10 * value for value, word in enumerate(_TENS.split(), start=3)}
_STOP_WORDS = """
a about all also am an and any anything are as at be been both but by can could detail did do does each else every for
from get gets got had has have he her his how i if in is it its just know let like many me more much must my need of
on one or other our out per please say she should so some something tell than that the their them then there they
thing this to total up us use was we were what when where which who will with would you your yours
"""
_STOP = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=2048)
def words(text: str) -> tuple[str, ...]:
    """Return the lower-cased words and digit groups of a text; ``1,000`` reads ``1000``."""
    return tuple(word.replace(",", "").replace("\u2019", "'") for word in _WORD.findall(text.lower()))


@lru_cache(maxsize=2048)
def content_words(text: str) -> frozenset[str]:
    """Return the words that carry meaning, without plural endings, number words as digits."""
    return frozenset(_stem(word) for word in words(text)) - _STOP


def _stem(word: str) -> str:
    if word in _WORD_NUMBERS:
        return str(_WORD_NUMBERS[word])
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def starts_with_function_word(text: str) -> bool:
    """Return True if the first word would lose its capital after a filler: "The", not "I" and not a name."""
    first = text.split(maxsplit=1)[:1]
    return bool(first) and first[0] != "I" and first[0].lower() in _STOP


def number_spans(text: str) -> list[tuple[tuple[int, int], Fraction]]:
    """Return the numbers of a text, digits and the words two to ninety, as spans with exact values."""
    digits = [(match.span(), _fraction(match[0])) for match in _NUMBER.finditer(text)]
    spelled = [
        (match.span(), Fraction(_WORD_NUMBERS[match[0].lower()]))
        for match in re.finditer(r"[A-Za-z]+", text)
        if match[0].lower() in _WORD_NUMBERS
    ]
    return sorted([(span, value) for span, value in digits if value is not None] + spelled)


@lru_cache(maxsize=2048)
def numbers(text: str) -> frozenset[Fraction]:
    """Return the values of ``number_spans``."""
    return frozenset(value for _, value in number_spans(text))


def _fraction(text: str) -> Fraction | None:
    top, _, bottom = text.replace(",", "").replace("$", "").replace("\u2212", "-").partition("/")
    return None if bottom and int(bottom) == 0 else Fraction(top) / (int(bottom) if bottom else 1)


def question_in(text: str) -> str:
    """Return the sentences of a text that ask for something ("" if none does)."""
    sentences = (sentence.strip() for sentence in _SENTENCE.findall(text))
    return " ".join(s for s in sentences if (s.endswith("?") and words(s)) or _ASKS.search(s))


def last_reply(dialogue: Dialogue) -> str:
    """Return the assistant message that the user is to answer.

    Raises:
        DuologueError: if the last message is not the assistant's.
    """
    if dialogue.messages[-1]["role"] != "assistant":
        raise DuologueError(
            f"The user cannot answer their own message (task {dialogue.task.task_id!r}). "
            "Append the assistant's reply to `messages` before calling respond()."
        )
    return dialogue.messages[-1]["content"]


def told(dialogue: Dialogue, points: Sequence[str]) -> set[int]:
    """Return the indices of the points that the user has told, in whoever's words.

    A turn that quotes a point word for word (as scripted users do) tells that point alone. Any other turn (a person's,
    a model's) is read loosely: it must hold all numbers of the point, and, with the question it answers, most of its
    words.
    """
    found: set[int] = set()
    question = ""
    for message in dialogue.messages:
        if message["role"] == "user":
            found |= _quoted(message["content"], points) or _paraphrased(message["content"], question, points)
        question = message["content"]
    return found


def _quoted(text: str, points: Sequence[str]) -> set[int]:
    said = f" {' '.join(words(text))} "
    return {i for i, point in enumerate(points) if f" {' '.join(words(point))} " in said}


def _paraphrased(text: str, question: str, points: Sequence[str]) -> set[int]:
    said, asked, values = content_words(text), content_words(question), numbers(text)
    found = set()
    for i, point in enumerate(points):
        wanted = content_words(point)
        if numbers(point):
            enough = numbers(point) <= values and len(wanted & (said | asked)) >= 0.6 * len(wanted)
        else:
            enough = bool(wanted) and len(wanted & said) >= 0.8 * len(wanted)
        if enough:
            found.add(i)
    return found


def by_relevance(points: Sequence[str], indices: Sequence[int], question: str) -> list[int]:
    """Return the indices ordered by how many content words the point shares with the question, then by position."""
    asked = content_words(question)
    return sorted(indices, key=lambda i: (-len(content_words(points[i]) & asked), i))


def covered(point: str, document: str, goal: str) -> bool | None:
    """Return True if a document makes a point as the goal document makes it; None if that cannot be told by words.

    Only what the point shares with the goal counts, so the goal itself makes every point: all shared numbers and 60 %
    of the shared content words.
    """
    wanted = content_words(point) & content_words(goal)
    if not wanted:
        return None
    values = numbers(point) & numbers(goal)
    return values <= numbers(document) and len(wanted & content_words(document)) >= 0.6 * len(wanted)
