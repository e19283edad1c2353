r"""The assistant's last committed final answer, by a fixed rule.

1. Messages are read from the last to the first. The first that commits to an answer decides; the others are not read.
2. Within a message, an answer is committed in one of three forms:

   - boxed: ``\boxed{X}``, with balanced braces;
   - hashed: ``#### X`` to the end of the line, if it is the message's last line or X is a number (others are headings);
   - said: ``Answer: X``, ``Final answer: X``, ``The (final) answer is X``, in any case, bold or not, up to the end of
     the line or sentence.

   The form that comes last decides, and all answers of the message in that form are taken.
3. Not committed: an empty answer; a question ("Is the answer 5?", "The answer is 5, right?"); a condition ("if the
   answer is 5"); a denial ("the answer is not 5"); a verdict ("the answer is correct"); another's answer ("your
   answer: 5").
4. Two different answers in the deciding form, or one that offers a choice ("3 or 4"), are ambiguous. Different ways to
   write one number (``1/2``, ``0.5``) are not.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from duologue.rewards.notation import plain, strip_bold
from duologue.rewards.quantities import MAX_CHARS, parse_quantity, quick_equal


class AnswerStatus(StrEnum):
    """Whether the assistant committed to one answer."""

    COMMITTED = "committed"
    MISSING = "missing"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the assistant committed to."""

    options: tuple[str, ...] = ()
    """One text if committed, none if missing, several if ambiguous."""

    @property
    def status(self) -> AnswerStatus:
        """Return whether there is one answer, none, or a choice."""
        if len(self.options) == 1:
            return AnswerStatus.COMMITTED
        return AnswerStatus.AMBIGUOUS if self.options else AnswerStatus.MISSING

    @property
    def text(self) -> str | None:
        """Return the one answer, or None."""
        return self.options[0] if len(self.options) == 1 else None


_Found = tuple[int, str]
"""Where a form starts in the message, and its answer."""

_BLANKS = re.compile(r"[^\S\n]+")
_BOXED = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"(?<!\\)[{}]")
_HASHED = re.compile(r"(?<!#)####(?!#)[ \t]*(.+)$", re.MULTILINE)
_SAID = re.compile(
    r"(?:(?P<states>\b(?:the|my|our)\s(?:(?:final|correct|exact)\s)?answer\s(?:is\b|=))"
    r"|(?<!your\s)(?<!'s\s)\b(?:final\s)?answer(?=\s?:))\s*:?\s*",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|whether|unless|suppose|when|until|once)\b[^.!?\n]*$", re.IGNORECASE)
_DISPLAYED = re.compile(rf"(?:\$\$|\\\[)(.{{1,{MAX_CHARS}}}?)(?:\$\$|\\\])", re.DOTALL)
_CONDITION_REACH = 200
_MAX_OPTIONS = 8
_SENTENCE_END = re.compile(r"[.!](?=\s|$)|\?|\n|$")
_TAIL = re.compile(
    r"[;,]?\s+(?:because|since|which|as|so)\b.*|,\s+(?:and|but|not|right|thus|with|where)\b.*|;\s.*|\s+[\u2013\u2014]\s.*",
    re.IGNORECASE | re.DOTALL,
)
_NO_ANSWER = re.compile(
    r"(?:not|indeed|wrong|right|correct|incorrect|close|unclear|unknown|simple|easy|there|here|in|based|"
    r"still|also|going|found|given|obtained|yours)\b|(?:the same|what|how|when|that)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\s*(?:,\s*)?(?:\s+or(?:\s+|$)|\\text\s*\{\s*or\s*\}|\\(?:lor|vee)(?![a-zA-Z]))\s*", re.IGNORECASE
)


def _closing_braces(text: str) -> dict[int, int]:
    """Return, for each opening brace that is closed, the index of the brace that closes it."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            waiting.append(match.start())
        elif waiting:
            closing[waiting.pop()] = match.start()
    return closing


def _boxed(text: str) -> Iterator[_Found]:
    """Find boxed answers."""
    closing = _closing_braces(text)
    for match in _BOXED.finditer(text):
        end = closing.get(match.end() - 1)
        if end is not None:
            yield match.start(), text[match.end() : end]


def _hashed(text: str) -> Iterator[_Found]:
    """Find ``####`` answers; a heading of level four is none."""
    for match in _HASHED.finditer(text):
        value = _SAID.sub("", match.group(1))
        if not text[match.end() :].strip() or parse_quantity(plain(value)):
            yield match.start(), value


def _value_at(text: str, start: int) -> str | None:
    """Return the answer that starts here, read up to ``MAX_CHARS``; None if its sentence is a question."""
    if displayed := _DISPLAYED.match(text, start):
        return displayed.group(1)
    end = _SENTENCE_END.search(text, start, min(len(text), start + MAX_CHARS))
    if not end or end.group() == "?":
        return None
    value = text[start : end.start()]
    following = _SAID.search(value)
    return _TAIL.sub("", value[: following.start()] if following else value)


def _said(text: str) -> Iterator[_Found]:
    """Find answers in words."""
    for match in _SAID.finditer(text):
        value = _value_at(text, match.end())
        before = text[max(0, match.start() - _CONDITION_REACH) : match.start()]
        verdict = match["states"] and _NO_ANSWER.match(value or "")
        if value is not None and not verdict and not _CONDITION.search(before):
            yield match.start(), value


def _tidy(answer: str) -> str:
    """Trim an answer and its trailing full stop; empty if nothing is left in plain notation."""
    return answer.strip().rstrip(".").strip(" :`") if plain(answer) else ""


def _distinct(answers: Sequence[str]) -> tuple[str, ...]:
    """Split choices and drop repetitions, also those written in another way."""
    kept: list[str] = []
    for option in (_tidy(part) for answer in answers for part in _CHOICE.split(" ".join(answer.split()))):
        if option and not any(quick_equal(option, known) for known in kept):
            kept.append(option)
        if len(kept) == _MAX_OPTIONS:
            break
    return tuple(kept)


def _in_message(text: str) -> tuple[str, ...]:
    """Return the distinct answers of the form that comes last in one message."""
    text = _BLANKS.sub(" ", strip_bold(text))
    forms = [[f for f in find(text) if _tidy(f[1])] for find in (_boxed, _hashed, _said)]
    found = max((form for form in forms if form), key=lambda form: form[-1][0], default=[])
    return _distinct([answer for _, answer in found])


def extract_answer(assistant_texts: Sequence[str]) -> Answer:
    """Return the assistant's last committed final answer; the module's docstring states the rule.

    Args:
        assistant_texts: the assistant's messages, in order. User text never belongs here.
    """
    for text in reversed(assistant_texts):
        if options := _in_message(text):
            return Answer(options)
    return Answer()


def committed_answer(assistant_texts: Sequence[str]) -> str | None:
    """Return the last committed final answer, None if it is missing or ambiguous."""
    return extract_answer(assistant_texts).text
