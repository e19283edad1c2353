"""Scripted agents from short strings, such as ``scripted:hasty-math,haste=0.5``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.agents import FunctionAgent

PREFIX = "scripted:"
_RATE, _WHOLE = "a number from 0 to 1", "a whole number from 0"


def make_scripted_agent(spec: str) -> FunctionAgent:
    """Return the scripted agent that a spec names.

    Args:
        spec: ``scripted:hasty-math`` (keys ``haste``, ``slips``, ``seed``) or ``scripted:hasty-writer`` (``haste``,
            ``seed``), each key as ``,KEY=VALUE``.

    Raises:
        DuologueError: for an unknown agent or key, or a value out of range.
    """
    name, *pieces = spec.removeprefix(PREFIX).split(",")
    if name not in _MAKERS:
        raise DuologueError(f"There is no scripted agent {name!r}. {did_you_mean(name, _MAKERS)}")
    make, keys = _MAKERS[name]
    return FunctionAgent(make(**_values(spec, pieces, keys)))


def _values(spec: str, pieces: list[str], keys: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for piece in pieces:
        key, _, text = piece.partition("=")
        if key not in keys:
            raise DuologueError(f"The agent {spec!r} has no option {key!r}. {did_you_mean(key, keys)}")
        if key in values:
            raise DuologueError(f"The agent {spec!r} names {key!r} twice. Leave one out.")
        values[key] = _number(text, keys[key])
        if values[key] is None:
            raise DuologueError(f"The agent {spec!r} has {key} {text!r}. Give {keys[key]}.")
    return values


def _number(text: str, kind: str) -> float | int | None:
    try:
        value = int(text) if kind == _WHOLE else float(text)
    except ValueError:
        return None
    highest = math.inf if kind == _WHOLE else 1
    return value if 0 <= value <= highest else None


def _hasty_math(haste: float = 0.5, slips: float = 0.05, seed: int = 0) -> Callable[..., str]:
    from duologue.trainers.scripted_agent import HastyMathAgent

    return HastyMathAgent(haste, slips, seed)


def _hasty_writer(haste: float = 0.5, seed: int = 0) -> Callable[..., str]:
    from duologue.trainers.hasty_writer import HastyWriterAgent

    return HastyWriterAgent(haste, seed)


_MAKERS: Mapping[str, tuple[Callable[..., Callable[..., str]], Mapping[str, str]]] = {
    "hasty-math": (_hasty_math, {"haste": _RATE, "slips": _RATE, "seed": _WHOLE}),
    "hasty-writer": (_hasty_writer, {"haste": _RATE, "seed": _WHOLE}),
}
