"""What OpenAI-compatible servers differ in: fields of a request that some refuse, and where an answer's words are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from duologue.engines.http import RefusedError

_SCHEMA_REFUSED = (400, 404, 422, 501)
"""Statuses of a refusal that may mean the schema, if it is named too."""
_SCHEMA_NAMES = re.compile(r"response[_ ]format|schema|grammar|guided|structured", re.IGNORECASE)
"""What servers call a schema when they refuse it: the field, or the part that turns it into a constraint."""


def with_schema(body: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request that asks for JSON of this schema, as OpenAI's structured outputs do."""
    wanted = {"name": "reply", "strict": True, "schema": schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": wanted}}


def blamed(error: RefusedError, body: Mapping[str, Any]) -> str | None:
    """Return the field of a refused request that the refusal names and that can be done without; None if there is none.

    It is ``max_tokens`` (OpenAI's newer models want ``max_completion_tokens``), ``seed``, or ``response_format``.
    """
    if "max_tokens" in body and "max_completion_tokens" in error.said:
        return "max_tokens"
    if "seed" in body and re.search(r"\bseed\b", error.said):
        return "seed"
    named = error.status in _SCHEMA_REFUSED and _SCHEMA_NAMES.search(error.said)
    return "response_format" if named and "response_format" in body else None


def refusable(body: Mapping[str, Any], field: str) -> str:
    """Return what a server that refuses a field has refused: the field, whatever it holds, or one schema."""
    return f"{field} {json.dumps(body[field], sort_keys=True)}" if field == "response_format" else field


def without(body: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return a request without a field; the cap on tokens goes by its newer name instead."""
    left = {name: value for name, value in body.items() if name != field}
    return {**left, "max_completion_tokens": body[field]} if field == "max_tokens" else left


def rows(answer: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects that an answer lists under a name; none if it has no such list."""
    found = answer.get(name) if isinstance(answer, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def words_in(answer: Any) -> str | None:
    """Return what the model said in an answer, or else its refusal to say it; None if the answer is of another form."""
    message = _message(answer)
    said = [message[name] for name in ("content", "refusal") if isinstance(message.get(name), str)]
    if said:
        return next(filter(None, said), "")
    return "" if message.get("content", 0) is None else None


def only_thought(answer: Any) -> bool:
    """Return True if the model thought and then said nothing, as one does whose thought takes up the cap on tokens."""
    message = _message(answer)
    if message.get("content") or message.get("refusal"):
        return False
    return bool(message.get("reasoning_content") or message.get("reasoning") or _thought_tokens(answer))


def _message(answer: Any) -> dict[str, Any]:
    choices = rows(answer, "choices")
    message = choices[0].get("message") if choices else None
    return message if isinstance(message, dict) else {}


def _thought_tokens(answer: Any) -> Any:
    """Return how many tokens went into thought that the server does not show; 0 if it does not say."""
    try:
        return answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
    except (KeyError, TypeError):
        return 0
