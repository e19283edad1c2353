"""In which script the users of a file write: cheap, deterministic, and blind to languages of one script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from unicodedata import name

from duologue.simulators.logs.dialogue import LoggedDialogue

_FEWEST_LETTERS = 10
_READ_CHARS = 2_000
_HAN_AND_KANA = ("CJK", "HIRAGANA", "KATAKANA")
_NO_SCRIPT = (
    "MATHEMATICAL",
    "FULLWIDTH",
    "HALFWIDTH",
    "MODIFIER",
    "FEMININE",
    "MASCULINE",
    "MICRO",
    "DOUBLE",
)


def user_script(dialogue: LoggedDialogue) -> str | None:
    """Return the script of most letters that the user wrote, such as ``LATIN``; None below ten letters.

    Only the first 2,000 characters count. It tells Russian from English, but not French from English, nor Chinese from
    Japanese.
    """
    text = " ".join(m["content"] for m in dialogue.messages if m["role"] == "user")[:_READ_CHARS]
    counts = Counter(script for script in map(_script_of, text) if script)
    if counts.total() < _FEWEST_LETTERS:
        return None
    return max(sorted(counts), key=counts.__getitem__)


def other_scripts(dialogues: Sequence[LoggedDialogue]) -> tuple[str, dict[int, str]]:
    """Return the script of most dialogues, and for each dialogue in another one, by its place, that script."""
    scripts = [user_script(dialogue) for dialogue in dialogues]
    counts = Counter(script for script in scripts if script)
    if not counts:
        return "", {}
    usual = max(sorted(counts), key=counts.__getitem__)
    return usual, {i: script for i, script in enumerate(scripts) if script and script != usual}


@lru_cache(maxsize=4096)
def _script_of(character: str) -> str | None:
    """Return the first word of a letter's Unicode name, which is its script; None for all other characters."""
    script = name(character, "").partition(" ")[0] if character.isalpha() else ""
    if script in _HAN_AND_KANA:
        return "HAN AND KANA"
    return script if script and script not in _NO_SCRIPT else None
