"""The document that the assistant handed over last, by a fixed rule.

Messages are read from the last to the first; the first that hands a document over decides. Within a message:

a. the last ``<document> … </document>`` block; one that is never closed runs to the end of the message;
b. else the last fenced block (lines that start with three backticks), likewise;
c. else what stands between the first and the last line that consists of ``---``, if there are two;
d. else the whole message if it has 30 words or more, without a first paragraph that ends with ``:`` (a lead-in) and
   without a last paragraph that ends with ``?`` (a follow-up), as long as another paragraph remains.

A block of a, b or c counts even when it is empty.
"""

import re
from collections.abc import Callable, Sequence

MIN_WORDS = 30
"""A message of fewer words is talk unless it marks a document."""

_OPEN = re.compile(r"<document>", re.IGNORECASE)
_CLOSE = re.compile(r"</document>", re.IGNORECASE)
_RULE = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n\s*\n")


def _tagged(text: str) -> str | None:
    """Return the last ``<document>`` block."""
    starts = [match.end() for match in _OPEN.finditer(text)]
    return _CLOSE.split(text[starts[-1] :], maxsplit=1)[0] if starts else None


def _fenced(text: str) -> str | None:
    """Return the last fenced block."""
    pieces = _FENCE.split(text)
    odd = (len(pieces) - 2) // 2 * 2 + 1
    return pieces[odd] if len(pieces) > 1 else None


def _ruled(text: str) -> str | None:
    """Return what stands between the outer ``---`` lines."""
    rules = list(_RULE.finditer(text))
    return text[rules[0].end() : rules[-1].start()] if len(rules) > 1 else None


def _whole(text: str) -> str | None:
    """Return a long message without its lead-in and follow-up."""
    if len(text.split()) < MIN_WORDS:
        return None
    paragraphs = _BLANK_LINE.split(text.strip())
    if len(paragraphs) > 1 and paragraphs[0].rstrip(" *").endswith(":"):
        paragraphs = paragraphs[1:]
    if len(paragraphs) > 1 and paragraphs[-1].rstrip(" *").endswith("?"):
        paragraphs = paragraphs[:-1]
    return "\n\n".join(paragraphs)


_RULES: tuple[Callable[[str], str | None], ...] = (_tagged, _fenced, _ruled, _whole)


def extract_document(assistant_texts: Sequence[str]) -> str | None:
    """Return the last document that the assistant handed over, None if there is none; the module states the rule.

    Args:
        assistant_texts: the assistant's messages, in order. User text never belongs here.
    """
    for text in reversed(assistant_texts):
        for rule in _RULES:
            document = rule(text)
            if document is not None:
                return document.strip()
    return None
