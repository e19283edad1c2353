"""The reward contract: finished dialogues in, one number (or None) each out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from duologue.types import Dialogue


class Reward(Protocol):
    """Any callable from finished dialogues to scores; None = not scored. Only the assistant's words may count."""

    def __call__(self, dialogues: Sequence[Dialogue], /) -> list[float | None]:
        """Return one score per dialogue, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Score:
    """A reward with the parts that it was composed of."""

    value: float | None
    parts: Mapping[str, float | None] = field(default_factory=dict)


@runtime_checkable
class ScoredInParts(Protocol):
    """A reward that can also say what its score was made of."""

    def score(self, dialogues: Sequence[Dialogue], /) -> list[Score]:
        """Return one score with its parts per dialogue, in order."""
        ...


def score(reward: Reward, dialogues: Sequence[Dialogue]) -> list[Score]:
    """Score dialogues with any reward, with parts where the reward offers them."""
    if isinstance(reward, ScoredInParts):
        return reward.score(dialogues)
    return [Score(value) for value in reward(dialogues)]


def signature_of(part: object) -> str:
    """Return the ``signature`` of a reward, simulator, task source or agent, or else its type's name."""
    return str(getattr(part, "signature", None) or getattr(part, "__qualname__", None) or type(part).__qualname__)
