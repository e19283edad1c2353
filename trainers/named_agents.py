"""Agents with names, for tables: ``NAME=SPEC`` on a command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from duologue.errors import DuologueError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def parse_named_agents(given: Sequence[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Return specs by name, in the order given.

    Args:
        given: texts such as ``sft=runs/sft``, ``ppo=module:function``, ``gpt=http://localhost:8000/v1``. Only the first
            ``=`` parts name and spec, so a spec may hold more of them.
        reserved: names that the table has already, in any case.

    Raises:
        DuologueError: if a name or spec is missing, or a name is malformed, reserved or there twice. Names that differ
            in case alone count as the same, because they name folders.
    """
    taken = {name.lower() for name in reserved}
    named: dict[str, str] = {}
    for text in given:
        name, spec = _split(text)
        if name.lower() in taken:
            raise DuologueError(f"The name {name!r} is taken by an arm of the comparison. Choose another for {spec!r}.")
        if name.lower() in {other.lower() for other in named}:
            raise DuologueError(f"Two agents are named {name!r}. Give each a name of its own.")
        named[name] = spec
    return named


def _split(text: str) -> tuple[str, str]:
    name, equals, spec = (part.strip() for part in text.partition("="))
    if not equals or not spec:
        raise DuologueError(f"The agent {text!r} lacks its {'spec' if equals else 'name'}. Write NAME=SPEC.")
    if not _NAME.fullmatch(name):
        raise DuologueError(
            f"The agent {text!r} has no usable name before '='. Write NAME=SPEC with letters, digits, '_', '.' or '-' "
            "in NAME."
        )
    return name, spec
