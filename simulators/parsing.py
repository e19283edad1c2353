"""Read an LLM user's structured reply, however untidy."""

import json
import re
from collections.abc import Mapping
from typing import Any

from duologue.types import Act, StopReason, UserTurn

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```\w*\n?|\n?```")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(.))', re.DOTALL)
_EATEN_TEX = {"\f": "\\f", "\b": "\\b", "\r": "\\r"}
_CUT_MESSAGE = re.compile(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)')
REPLY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {"type": "string"},
        "message": {"type": "string"},
        "done": {"type": "boolean"},
        "satisfied": {"type": "boolean"},
    },
    "required": ["thought", "message", "done", "satisfied"],
    "additionalProperties": False,
}
"""JSON schema of the reply that ``parse_turn`` reads, in the order in which the prompts ask for it."""
BLANK = "..."
"""What a user says who said nothing but goes on."""


def without_reasoning(text: str) -> str:
    """Return the text without reasoning blocks, also unclosed ones and ones whose start the template held."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text)).strip()


def parse_turn(text: str, opening: bool = False) -> UserTurn:
    """Return the user turn in a model's reply ``{"message": str, "done": bool, "satisfied": bool}``.

    Reasoning blocks and code fences are dropped, the first JSON object with a ``message`` is taken. Without one, the
    message is what can be saved of a cut-off object, or else the plain text, with the note ``unparsed``. A user who
    says nothing and goes on says "..." (note ``blank``).

    Args:
        text: the model's reply.
        opening: True for the first turn, which cannot end the dialogue.
    """
    text = without_reasoning(text)
    row = _first_object(text)
    notes = {} if row else {"unparsed": 1.0}
    row = row or {"message": _salvage(text)}
    done = not opening and _is_true(row.get("done"))
    satisfied = _is_true(row.get("satisfied", True))
    message = _mend_tex(str(row["message"] or "").strip())
    if not message and not done:
        message, notes = BLANK, {**notes, "blank": 1.0}
    if not done:
        return UserTurn(message, acts=(Act.OPEN,) if opening else (), notes=notes)
    stop = StopReason.USER_SATISFIED if satisfied else StopReason.USER_GAVE_UP
    return UserTurn(message, stop, (Act.ACCEPT, Act.STOP) if satisfied else (Act.STOP,), notes)


def _first_object(text: str) -> Mapping[str, Any] | None:
    """Return the first JSON object that has a message, or None."""
    decoder = json.JSONDecoder(strict=False)
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            row, _ = decoder.raw_decode(_mend_escapes(text[start:]))
        except ValueError:
            continue
        if isinstance(row, dict) and "message" in row:
            return row
    return None


def _mend_escapes(text: str) -> str:
    """Double the backslashes that start no JSON escape, as TeX that was not escaped has them."""
    return _ESCAPE.sub(lambda match: rf"\\{match[1]}" if match[1] else match[0], text)


def _mend_tex(text: str) -> str:
    """Undo what JSON made of TeX that was not escaped: its ``frac`` command reads as a form feed and "rac"."""
    for eaten, meant in _EATEN_TEX.items():
        text = text.replace(eaten, meant)
    return re.sub(r"\t(?=imes|ext|heta|an\b)", r"\\t", text)


def _salvage(text: str) -> str:
    """Return the message of an object that was cut off, or the text without fences."""
    cut = _CUT_MESSAGE.search(text)
    if cut is None:
        return _FENCE.sub("", text)
    return cut.group(1).replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def _is_true(value: object) -> bool:
    """Read true, "true", "yes" and 1 as true."""
    return value is True or str(value).strip().lower() in ("true", "yes", "1")
