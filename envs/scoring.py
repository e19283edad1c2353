"""Score finished dialogues with a reward that may break: one bad dialogue must not cost the others their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.deadline import call_within
from duologue.rewards.base import Reward, Score, score
from duologue.types import Dialogue


@dataclass(frozen=True, slots=True)
class Unscored:
    """A dialogue that the reward could not score, which is not a score of 0."""

    error: str
    """What broke and how to fix it."""
    hung: bool = False
    """True if the reward did not come back in time."""


_MAX_HANGS = 3


def score_all(reward: Reward, dialogues: Sequence[Dialogue], timeout: float | None = None) -> list[Score | Unscored]:
    """Score all dialogues in one call; those that it leaves without a proper score get a second call of their own.

    Args:
        reward: any reward.
        dialogues: finished ones.
        timeout: seconds that each call may take, None = no limit. After three single calls that hang, the rest are not
            tried, which bounds the wait at four time-outs.
    """
    if not dialogues:
        return []
    outcomes, hangs = _attempt(reward, dialogues, timeout), 0
    for i, outcome in enumerate(outcomes):
        if isinstance(outcome, Unscored) and hangs < _MAX_HANGS:
            outcomes[i] = again = _attempt(reward, [dialogues[i]], timeout)[0]
            hangs += isinstance(again, Unscored) and again.hung
    return outcomes


def _attempt(reward: Reward, dialogues: Sequence[Dialogue], timeout: float | None) -> list[Score | Unscored]:
    try:
        scores = list(call_within(lambda: score(reward, dialogues), timeout))
    except TimeoutError as error:
        return [Unscored(f"The reward hangs: {error} The dialogue is not scored.", hung=True)] * len(dialogues)
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
