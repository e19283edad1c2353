"""Did the user say what only the assistant should have found?"""

import re
from collections.abc import Iterator, Sequence

from duologue.simulators._text import number_spans, numbers
from duologue.types import Message, Task

Span = tuple[int, int]
N_GRAM = 8
"""Words in a row shared with the goal document that count as copying it."""
LONGEST_ANSWER = 12
"""Words up to which a reference is an answer; a longer one is a document."""
_WORD = re.compile(r"\w+")
_TEX_NOISE = re.compile(r"\\(?:left|right|text|boxed|mathrm|displaystyle)\b|\\[(),\[\];! ]|[\s{}]")


def leaks(task: Task, messages: Sequence[Message], text: str) -> bool:
    """Return True if a user text gives away the task's reference before the assistant did.

    MathChat: the text holds the gold answer, no earlier assistant message does, and for a number neither the question
    nor a fact does. MediumDocEditChat: the text shares 8 words in a row with the goal document, which stand in no
    assistant message, and not in the instruction, the outline or a fact.

    Args:
        task: with the hidden reference. One of more than 12 words is taken for a document.
        messages: the dialogue before the text.
        text: what the user says.
    """
    return bool(leaked_spans(task, messages, text))


def leakable(task: Task, messages: Sequence[Message]) -> bool:
    """Return True if the reference is still there to be given away: a user who said it outright would leak."""
    is_document = len(task.reference.split()) > LONGEST_ANSWER
    return leaks(task, messages, task.reference if is_document else f"The answer is {task.reference}.")


def leaked_spans(task: Task, messages: Sequence[Message], text: str) -> list[Span]:
    """Return where a user text leaks, as character spans in order (see ``leaks``)."""
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    if len(task.reference.split()) > LONGEST_ANSWER:
        return _copied(task.reference, [*said, task.instruction, *task.facts, *task.outline], text)
    if _is_number(task.reference):
        return _spoken_number(task, said, text)
    return _spoken_expression(task, said, text)


def _is_number(reference: str) -> bool:
    return len(numbers(reference)) == 1 and re.search(r"[A-Za-z\\^=(]", reference.replace("\\$", "")) is None


def _spoken_number(task: Task, said: Sequence[str], text: str) -> list[Span]:
    gold = numbers(task.reference)
    if gold & numbers(" \n ".join([*said, task.instruction, *task.facts])):
        return []
    return [span for span, value in number_spans(text) if value in gold]


def _spoken_expression(task: Task, said: Sequence[str], text: str) -> list[Span]:
    gold = _bare(task.reference)
    if len(gold) == 1 and gold.isalpha():  # a letter of a choice, or a variable: too common to be a leak by itself
        pattern = re.compile(rf"\b(?:answer|choice|option)\s*(?:is|:|=)?\s*\(?{gold}\)?\b", re.IGNORECASE)
        return [] if any(map(pattern.search, said)) else [match.span() for match in pattern.finditer(text)]
    public = [*said, task.instruction, *task.facts]
    if not gold or any(_holds(known, gold) for known in public) or not _holds(text, gold):
        return []
    return [_narrowest(text, gold, len(task.reference.split()) + 4)]


def _bare(text: str) -> str:
    """Return a formula without TeX that only lays out; blanks between words and numbers become NUL."""
    text = re.sub(r"(?<=\w)\s+(?=\w)", "\0", re.sub(r"[dt]frac", "frac", text.replace("$", " ")))
    return _TEX_NOISE.sub("", text).lower().rstrip(".")


def _holds(text: str, gold: str) -> bool:
    """Return True if a text holds the bare gold formula, not as a part of a longer word or number."""
    left = r"(?<![a-z0-9])" if gold[0].isalnum() else ""
    right = r"(?![a-z0-9^])" if gold[-1].isalnum() else ""
    return re.search(left + re.escape(gold) + right, _bare(text)) is not None


def _narrowest(text: str, gold: str, most: int) -> Span:
    """Return the shortest run of at most ``most`` tokens that holds the gold formula, else the whole text."""
    tokens = list(re.finditer(r"\S+", text))
    runs = [(a.start(), b.end()) for i, a in enumerate(tokens) for b in tokens[i : i + most]]
    holding = (run for run in runs if _holds(text[run[0] : run[1]], gold))
    return min(holding, key=lambda run: run[1] - run[0], default=(0, len(text)))


def _copied(reference: str, public: Sequence[str], text: str) -> list[Span]:
    secret = set(_grams(reference)) - {gram for known in public for gram in _grams(known)}
    tokens = list(_WORD.finditer(text))
    hits = [i for i, gram in enumerate(_grams(text)) if gram in secret]
    spans = [(tokens[i].start(), tokens[i + N_GRAM - 1].end()) for i in hits]
    return _merged(spans)


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    tokens = _WORD.findall(text.lower())
    return (tuple(tokens[i : i + N_GRAM]) for i in range(len(tokens) - N_GRAM + 1))


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Join spans that touch or overlap."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
