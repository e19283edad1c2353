"""What a SGLang server says, read with suspicion: an answer is used whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duologue.engines.http import GarbledError

_ROUNDING = 1e-3
"""How far above 0 a log-probability may lie, in nats; bfloat16 rounds upwards now and then."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of ``/generate``."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    labels: tuple[str, ...]
    """The weights that sampled the tokens, under the server's names for them; none if the server does not say."""
    prompt_tokens: int
    cached_tokens: int
    """How many of the prompt's tokens came out of the prefix cache."""


def read_answer(sent: Any, request_id: str, most: int, stop_ids: Sequence[int]) -> Answer:
    """Check and unpack an answer.

    Args:
        sent: its JSON.
        request_id: of the request that it should answer.
        most: tokens that were asked for at most.
        stop_ids: tokens after which nothing may come.

    Raises:
        GarbledError: if it answers another request, was aborted, or is not whole.
    """
    info = sent.get("meta_info") if isinstance(sent, dict) else None
    if not isinstance(info, dict):
        raise GarbledError(f"no meta_info in {sent!r}")
    if info.get("id", request_id) != request_id:
        raise GarbledError(f"an answer to request {info['id']!r} instead of {request_id!r}")
    finish = info.get("finish_reason")
    if not isinstance(finish, dict) or finish.get("type") not in ("stop", "length"):
        raise GarbledError(f"finish_reason {finish!r}")
    ids, logprobs = _tokens(info.get("output_token_logprobs"))
    if len(ids) > most or any(token in stop_ids for token in ids[:-1]):
        raise GarbledError(f"{len(ids)} tokens where at most {most} up to a stop token were asked for")
    return Answer(ids, logprobs, _labels(info), _whole(info, "prompt_tokens"), _whole(info, "cached_tokens"))


def top_gap(sent: Any) -> float | None:
    """Return by how many nats the likeliest first token leads the second, or None if the answer does not tell."""
    try:
        first, second = sorted((float(row[0]) for row in sent["meta_info"]["output_top_logprobs"][0]), reverse=True)[:2]
    except (LookupError, TypeError, ValueError):
        return None
    return first - second if math.isfinite(first - second) else None


def _tokens(pairs: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Unpack rows of (log-probability, token id, text), so that tokens and log-probabilities cannot fall apart."""
    try:
        ids = tuple(int(row[1]) for row in pairs)
        logprobs = tuple(float(row[0]) for row in pairs)
    except (LookupError, TypeError, ValueError):
        raise GarbledError("no output_token_logprobs") from None
    if not ids or not all(math.isfinite(value) and value <= _ROUNDING for value in logprobs):
        raise GarbledError("no tokens, or log-probabilities that are none")
    return ids, tuple(min(value, 0.0) for value in logprobs)


def _labels(info: dict[str, Any]) -> tuple[str, ...]:
    """Return all weights that took part: they can change while a request runs."""
    spans = info.get("weight_versions")
    found = [span.get("version") for span in spans if isinstance(span, dict)] if isinstance(spans, list) else []
    return tuple(str(label) for label in (found or [info.get("weight_version")]) if label is not None)


def _whole(info: dict[str, Any], name: str) -> int:
    value = info.get(name)
    return value if isinstance(value, int) else 0
