"""Who a scripted user is: personas, and the mixes that they are drawn from."""

from dataclasses import dataclass

import numpy as np

from duologue.errors import DuologueError, did_you_mean
from duologue.simulators._random import derive_seed, short_hash
from duologue.simulators.phrases import DEFAULT, HELD_OUT, PhraseBank

Range = tuple[float, float]


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

    @property
    def signature(self) -> str:
        """Return the name with a hash of all ranges and phrases."""
        return f"{self.name}@{short_hash(repr(self))}"


MIXES: dict[str, Mix] = {
    "default": Mix(
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
    ),
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
}
"""Named mixes: ``default`` for training; ``held-out`` with other ranges and no phrase in common, for evaluation."""


def find_mix(mix: str | Mix) -> Mix:
    """Return a mix by name, or the mix itself.

    Raises:
        DuologueError: if there is no mix of this name.
    """
    if isinstance(mix, Mix):
        return mix
    if mix not in MIXES:
        raise DuologueError(f"There is no mix of users named {mix!r}. {did_you_mean(mix, MIXES)}")
    return MIXES[mix]


def draw_persona(mix: str | Mix, seed: int) -> Persona:
    """Draw a persona. The same mix and seed give the same person, whatever the task.

    Raises:
        DuologueError: if there is no mix of this name.
    """
    m = find_mix(mix)
    rng = np.random.default_rng(derive_seed("persona", int(seed)))
    draws = iter([float(x) for x in rng.random(12)])

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
    )
