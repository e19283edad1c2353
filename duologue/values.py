"""Values from YAML in the types of dataclass fields."""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args, get_origin

from duologue.errors import DuologueError


def plain_type(hint: Any) -> Any:
    """Return ``int`` for ``int | None`` and ``dict`` for ``dict[str, Any]``."""
    options = [o for o in get_args(hint) if o is not type(None)] if isinstance(hint, UnionType) else [hint]
    return get_origin(options[0]) or options[0]


def checked_value(hint: Any, value: object, where: str) -> Any:
    """Return a YAML value in its field's type; ``1e-5``, which YAML 1.1 reads as text, is a number here.

    Args:
        hint: the field's type, such as ``float`` or ``int | None``.
        value: what YAML holds.
        where: names the field in messages.

    Raises:
        DuologueError: for a value of a wrong type.
    """
    kind, optional = plain_type(hint), type(None) in get_args(hint)
    if (value is None and optional) or type(value) is kind:
        return value
    number = _number(value) if kind is float else None
    if number is None:
        wanted = f"{kind.__name__}{' or null' if optional else ''}"
        raise DuologueError(f"{where} is {value!r}. Give a value of type {wanted}.")
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
