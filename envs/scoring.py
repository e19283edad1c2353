"""Score finished dialogues with a reward that may break: one bad dialogue must not cost the others their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.rewards.base import Reward, Score, score
from duologue.types import Dialogue


@dataclass(frozen=True, slots=True)
class Unscored:
    """A dialogue that the reward could not score, which is not a score of 0."""

    error: str
    """What broke and how to fix it."""


def score_all(reward: Reward, dialogues: Sequence[Dialogue]) -> list[Score | Unscored]:
    """Score all dialogues in one call; those that it leaves without a proper score get a second call of their own."""
    if not dialogues:
        return []
    first = _attempt(reward, dialogues)
    return [
        _attempt(reward, [dialogue])[0] if isinstance(outcome, Unscored) else outcome
        for dialogue, outcome in zip(dialogues, first, strict=True)
    ]


def _attempt(reward: Reward, dialogues: Sequence[Dialogue]) -> list[Score | Unscored]:
    try:
        scores = list(score(reward, dialogues))
    except Exception as error:  # a reward is foreign code: whatever it raises becomes data
        return [_broken(f"raised {type(error).__name__}: {error}")] * len(dialogues)
    if len(scores) != len(dialogues):
        return [_broken(f"returned {len(scores)} scores for {len(dialogues)} dialogues")] * len(dialogues)
    return [_checked(outcome) for outcome in scores]


def _checked(outcome: object) -> Score | Unscored:
    if not isinstance(outcome, Score):
        return _broken(f"returned {type(outcome).__name__} where a Score belongs")
    try:
        finite = all(value is None or math.isfinite(value) for value in (outcome.value, *outcome.parts.values()))
    except TypeError:
        finite = False
    return outcome if finite else _broken(f"returned {outcome.value!r} with parts {dict(outcome.parts)!r}")


def _broken(what: str) -> Unscored:
    return Unscored(f"The reward {what}; the dialogue is not scored. Return one finite number or None per dialogue.")
