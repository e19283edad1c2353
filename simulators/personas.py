"""Who a scripted user is: personas, and the mixes that they are drawn from."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from duologue.errors import DuologueError, did_you_mean
from duologue.simulators._random import derive_seed, short_hash
from duologue.simulators.phrases import DEFAULT, HELD_OUT, PhraseBank

Range = tuple[float, float]
VICES = ("sycophancy", "leak", "overtelling")
"""What prompted language models do as users, and people rarely: rates per occasion, 0 in ``default`` and ``held-out``.

They are drawn from streams of their own, so a vice that does not show changes no word.
"""


@dataclass(frozen=True, slots=True)
class Persona:
    """One user's habits. All rates are probabilities per occasion."""

    patience: int
    """User turns, the opening included, after which they give up instead of going on."""
    miss_error: float
    """Accepts a wrong answer, or a document that is not good enough."""
    doubt_right: float
    """Questions a right answer instead of accepting it."""
    confusion: float
    """Does not follow a question and says so instead of answering."""
    volunteers: float
    """Adds a fact unasked when rejecting or confused."""
    facts_per_turn: int
    """Facts that one question gets out of a user of MathChat."""
    points_per_turn: int
    """Facts or outline points that a user of MediumDocEditChat tells, or finds missing, in one turn."""
    good_enough: float
    """Share of the wanted points that a document must make to be accepted."""
    talkative: float
    """Starts a fact with a filler ("um,", "ok,")."""
    politeness: float
    """Greets at the start; thanks at the end."""
    typo_rate: float
    """Share of the longer words that are mistyped, never inside a fact."""
    lowercase: bool
    """Types without capitals."""
    sycophancy: float = 0.0
    """Accepts what they noticed to be wrong or not good enough, that is, on top of ``miss_error``."""
    leak: float = 0.0
    """Says the gold answer, or quotes the goal document, unasked; per turn that does not end the dialogue."""
    overtelling: float = 0.0
    """Tells all facts at once: in the opening, and at every question that they answer."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A population of users: a range for each habit (drawn evenly, both ends included) and the phrases they share."""

    name: str
    phrases: PhraseBank
    patience: tuple[int, int]
    miss_error: Range
    doubt_right: Range
    confusion: Range
    volunteers: Range
    talkative: Range
    politeness: Range
    typo_rate: Range
    good_enough: Range
    lowercase: float
    """Share of users who type without capitals."""
    facts_per_turn: tuple[int, int] = (1, 1)
    points_per_turn: tuple[int, int] = (1, 2)
    sycophancy: Range = field(default=(0.0, 0.0), repr=False)
    leak: Range = field(default=(0.0, 0.0), repr=False)
    overtelling: Range = field(default=(0.0, 0.0), repr=False)

    @property
    def signature(self) -> str:
        """Return the name with a hash of all other ranges and phrases, and the vices that are not 0 in words."""
        ranges = {name: getattr(self, name) for name in VICES}
        shown = [f",{name}={_shown(bounds)}" for name, bounds in ranges.items() if any(bounds)]
        return f"{self.name}@{short_hash(repr(self))}{''.join(shown)}"


_DEFAULT = Mix(
    name="default",
    phrases=DEFAULT,
    patience=(7, 12),
    miss_error=(0.05, 0.20),
    doubt_right=(0.0, 0.10),
    confusion=(0.0, 0.10),
    volunteers=(0.0, 0.10),
    talkative=(0.0, 0.5),
    politeness=(0.2, 1.0),
    typo_rate=(0.0, 0.03),
    good_enough=(0.6, 0.9),
    lowercase=0.4,
)

MIXES: dict[str, Mix] = {
    "default": _DEFAULT,
    "held-out": Mix(
        name="held-out",
        phrases=HELD_OUT,
        patience=(6, 10),
        miss_error=(0.10, 0.30),
        doubt_right=(0.02, 0.15),
        confusion=(0.02, 0.15),
        volunteers=(0.0, 0.05),
        talkative=(0.2, 0.8),
        politeness=(0.0, 0.6),
        typo_rate=(0.01, 0.05),
        good_enough=(0.7, 0.95),
        lowercase=0.6,
    ),
    "naive": replace(_DEFAULT, name="naive", sycophancy=(0.15, 0.15), leak=(0.2, 0.2), overtelling=(0.35, 0.35)),
}
"""Named mixes: ``default`` for training; ``held-out`` with other ranges and no phrase in common, for evaluation.

``naive`` is ``default`` with the vices of prompted users at rates measured on a prompted language model, rounded to
0.05 (24 dialogues of MathChat; docs/simulators.md has the measurement and its wide intervals). For documents the same
rates are an assumption. To set them to those of a model of yours, measure its dialogues with ``duologue user-rates``
and write ``"naive,sycophancy=0.3"``.
"""


def _shown(bounds: Range) -> str:
    return f"{bounds[0]:g}" if bounds[0] == bounds[1] else f"{bounds[0]:g}-{bounds[1]:g}"


def find_mix(mix: str | Mix) -> Mix:
    """Return a mix by name, or the mix itself.

    Args:
        mix: a mix; a name in ``MIXES``; or a name with rates for all its users: ``"default,sycophancy=0.5,leak=0.3"``.
            Every field that is a range of rates can be set, to one number from 0 to 1.

    Raises:
        DuologueError: if there is no mix of this name, no rate of this name, or the number is none or out of range.
    """
    if isinstance(mix, Mix):
        return mix
    name, *pieces = mix.split(",")
    if name not in MIXES:
        raise DuologueError(f"There is no mix of users named {name!r}. {did_you_mean(name, MIXES)}")
    rates: dict[str, Any] = dict(_rate(mix, piece) for piece in pieces)
    if len(rates) < len(pieces):
        raise DuologueError(f"The users {mix!r} have a rate twice. Give each rate once.")
    return replace(MIXES[name], **rates)


def _rate(mix: str, piece: str) -> tuple[str, Range]:
    """Read ``sycophancy=0.5``."""
    rates = [f.name for f in fields(Mix) if f.type is Range]
    name, equals, text = (part.strip() for part in piece.partition("="))
    if name not in rates:
        raise DuologueError(f"The users {mix!r} have no rate named {name!r}. {did_you_mean(name, rates)}")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not equals or not 0 <= value <= 1:
        raise DuologueError(f"The users {mix!r} need a number from 0 to 1 for {name}. Write {name}=0.5, for example.")
    return name, (value, value)


def draw_persona(mix: str | Mix, seed: int) -> Persona:
    """Draw a persona. The same mix and seed give the same person, whatever the task.

    Raises:
        DuologueError: if there is no mix of this name.
    """
    m = find_mix(mix)
    rng = np.random.default_rng(derive_seed("persona", int(seed)))
    vices = np.random.default_rng(derive_seed("vices", int(seed)))
    draws = iter([float(x) for x in (*rng.random(12), *vices.random(len(VICES)))])

    def between(bounds: Range) -> float:
        return bounds[0] + (bounds[1] - bounds[0]) * next(draws)

    def whole(bounds: tuple[int, int]) -> int:
        return bounds[0] + int((bounds[1] - bounds[0] + 1) * next(draws))

    return Persona(
        patience=whole(m.patience),
        miss_error=between(m.miss_error),
        doubt_right=between(m.doubt_right),
        confusion=between(m.confusion),
        volunteers=between(m.volunteers),
        facts_per_turn=whole(m.facts_per_turn),
        points_per_turn=whole(m.points_per_turn),
        good_enough=between(m.good_enough),
        talkative=between(m.talkative),
        politeness=between(m.politeness),
        typo_rate=between(m.typo_rate),
        lowercase=next(draws) < m.lowercase,
        sycophancy=between(m.sycophancy),
        leak=between(m.leak),
        overtelling=between(m.overtelling),
    )
