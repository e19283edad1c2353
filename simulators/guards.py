"""Guards around any user: what an LLM that plays a person must not do is caught, mended where possible, and counted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from duologue.simulators._text import words
from duologue.simulators.base import Simulator
from duologue.simulators.leaks import leaked_spans
from duologue.simulators.parsing import BLANK, without_reasoning
from duologue.types import Dialogue, UserTurn

MASK = "[...]"
_RESAMPLE_OFFSET = 1_000_003
_CONTROL = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:eos|bos|pad|unk)>|<(?:start|end)_of_turn>", re.IGNORECASE
)
_ROLE_LABEL = re.compile(r"\A\s*\**(?:user|assistant|human|ai|student|tutor|author|system)\**\s*:\**\s*", re.IGNORECASE)
_OTHER_SPEAKER = re.compile(r"\n\s*\**(?:assistant|tutor|ai|user|student|author|human)\**\s*:.*\Z", re.DOTALL | re.I)
_FLIP = re.compile(
    r"\bhow (?:can|may) i (?:help|assist)\b"
    r"|\bi(?:'d| would|'ll| will|'m| am) (?:be )?(?:happy|glad|here) to (?:help|assist)\b"
    r"|\b(?:let me|i can|i'll|i will) (?:help|assist|guide|walk) you\b"
    r"|\blet me know if you (?:have|need)\b"
    r"|\bis there anything else (?:i can|you)\b"
    r"|\bas an ai\b|\byou're (?:on the right track|welcome)\b"
    r"|(?:\A|[.!\n]\s*)(?:so,? |therefore,? |thus,? )?the (?:final |correct )?answer is\b(?![^.\n]*\?)"
    r"|\\boxed\s*\{|\A\s*(?:certainly|of course|sure)!? here(?:'s| is| are)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Finding:
    """A user turn with what is wrong with it."""

    turn: UserTurn
    faults: tuple[str, ...]
    """``role_flip``, ``restart``, ``repeat``, ``leak``: worth another sample."""
    control: bool
    """Control tokens, labels or reasoning were stripped."""


class GuardedUser:
    """Wraps a user. Harmful turns are sampled once more, what still leaks is masked, everything is counted.

    | note | what it counts |
    |---|---|
    | ``guard_role_flip`` | the user talked like the assistant: offered help, stated "The answer is …" |
    | ``guard_restart`` | the opening came again in the middle of the dialogue |
    | ``guard_repeat`` | an earlier turn of the user's own came again |
    | ``guard_leak`` | the reference was given away (see ``leaks``); masked with "[...]" if it stays |
    | ``guard_control`` | control tokens, role labels, invented further turns or reasoning were stripped |
    | ``guard_resampled`` | the user was asked once more, with another seed |

    A fault of either sample counts once. Where both samples have faults, the one with fewer is kept.

    Args:
        user: the user to guard.
        resample: False measures and masks without asking again.
        mend: False only counts: every turn stays as it was said, so that the user's distribution does too.
    """

    def __init__(self, user: Simulator, resample: bool = True, *, mend: bool = True) -> None:
        self.user = user
        self.resample = resample and mend
        self.mend = mend

    @property
    def signature(self) -> str:
        """Return the wrapped user's signature, marked as guarded."""
        inner = getattr(self.user, "signature", None) or type(self.user).__qualname__
        if not self.mend:
            return f"{inner}|watched"
        return f"{inner}|guarded{'' if self.resample else '-no-resample'}"

    def respond(self, dialogues: Sequence[Dialogue]) -> list[UserTurn]:
        """Return the wrapped user's next turns, guarded; faulty ones are sampled again in one further call."""
        turns = self.user.respond(dialogues)
        first = [_inspect(dialogue, turn) for dialogue, turn in zip(dialogues, turns, strict=True)]
        if not self.mend:
            pairs = zip(turns, first, strict=True)
            return [replace(turn, notes={**turn.notes, **_notes([finding])}) for turn, finding in pairs]
        again = [i for i, finding in enumerate(first) if finding.faults and self.resample]
        retried = [replace(dialogues[i], seed=dialogues[i].seed + _RESAMPLE_OFFSET) for i in again]
        turns = self.user.respond(retried) if retried else []
        second = {i: _inspect(dialogues[i], turn) for i, turn in zip(again, turns, strict=True)}
        return [_settle(dialogue, first[i], second.get(i)) for i, dialogue in enumerate(dialogues)]


def strip_control(text: str) -> str:
    """Return a user text without reasoning, control tokens, role labels and turns invented for the other speaker."""
    text = _CONTROL.sub("", without_reasoning(text))
    return _OTHER_SPEAKER.sub("", _ROLE_LABEL.sub("", text)).strip()


def flips_role(text: str) -> bool:
    """Return True if a user text talks like the assistant."""
    return _FLIP.search(text) is not None


def _inspect(dialogue: Dialogue, turn: UserTurn) -> _Finding:
    text = strip_control(turn.text)
    control = text != turn.text.strip()
    if not text and turn.stop is None:
        text = BLANK
    return _Finding(replace(turn, text=text), tuple(_faults(dialogue, text)), control)


def _faults(dialogue: Dialogue, text: str) -> list[str]:
    own = dialogue.said_by("user")
    restart = bool(own) and _same(text, own[0])
    tests = {
        "role_flip": flips_role(text),
        "restart": restart,
        "repeat": not restart and any(_same(text, earlier) for earlier in own[1:]),
        "leak": bool(leaked_spans(dialogue.task, dialogue.messages, text)),
    }
    return [name for name, hit in tests.items() if hit]


def _same(text: str, earlier: str) -> bool:
    """Return True if two texts of at least four words share four fifths of their words."""
    a, b = set(words(text)), set(words(earlier))
    return len(words(text)) >= 4 and len(a & b) >= 0.8 * len(a | b)


def _settle(dialogue: Dialogue, first: _Finding, second: _Finding | None) -> UserTurn:
    """Return the better of the samples, its leaks masked, with the notes of both."""
    kept = second if second is not None and len(second.faults) <= len(first.faults) else first
    notes = _notes([first, *([second] if second else [])]) | ({"guard_resampled": 1.0} if second else {})
    return replace(kept.turn, text=_masked(dialogue, kept.turn.text), notes={**kept.turn.notes, **notes})


def _notes(seen: Sequence[_Finding]) -> dict[str, float]:
    notes = dict.fromkeys((f"guard_{fault}" for finding in seen for fault in finding.faults), 1.0)
    return notes | ({"guard_control": 1.0} if any(finding.control for finding in seen) else {})


def _masked(dialogue: Dialogue, text: str) -> str:
    for start, end in reversed(leaked_spans(dialogue.task, dialogue.messages, text)):
        text = text[:start] + MASK + text[end:]
    return text
