"""Errors that end with their fix."""

from collections.abc import Iterable
from difflib import get_close_matches


class DuologueError(ValueError):
    """A mistake in what duologue was given; the message says what to do about it."""


class MissingExtraError(DuologueError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}. Install it: pip install 'duologue[{extra}]'")


def did_you_mean(given: str, options: Iterable[str]) -> str:
    """Return a sentence with the closest of ``options`` to ``given``, or all of them if none is close."""
    known = sorted(options)
    close = get_close_matches(given, known, n=1, cutoff=0.6)
    close = close or [name for name in known if given and given.lower() in name.lower()][:1]
    return f"Did you mean {close[0]!r}?" if close else f"Choose one of: {', '.join(map(repr, known))}."
