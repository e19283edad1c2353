"""What replies to a logged history are worth, and the pair of the best and the worst: rows of DPO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from duologue.types import Message


@dataclass(frozen=True, slots=True)
class ValuedReply:
    """A reply, and what the dialogues earned that went on from it."""

    text: str
    token_ids: tuple[int, ...]
    """As the policy sampled them; without an end of turn if the limit cut it."""
    rewards: tuple[float | None, ...]
    """Of each continuation; None = not scored, which is not 0."""

    @property
    def scored(self) -> tuple[float, ...]:
        """Return the rewards of the continuations that could be scored."""
        return tuple(reward for reward in self.rewards if reward is not None)

    @property
    def value(self) -> float:
        """Return the mean reward of the scored continuations, of which there must be some."""
        return sum(self.scored) / len(self.scored)


@dataclass(frozen=True, slots=True)
class ValuedContext:
    """A logged history with the replies that the policy sampled to it."""

    context_id: str
    task_id: str
    messages: tuple[Message, ...]
    """The history; the user has the last word."""
    replies: tuple[ValuedReply, ...]
    sampled_tokens: int
    """By the policy, in replies (once each) and what followed."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """What broke in continuations that were not scored, and how often."""

    def distinct(self) -> list[ValuedReply]:
        """Return the replies that have a value, with those of one text as one: its continuations are more of them."""
        by_text: dict[str, ValuedReply] = {}
        for reply in self.replies:
            if reply.scored:  # one that failed has no tokens to learn
                first = by_text.get(reply.text, replace(reply, rewards=()))
                by_text[reply.text] = replace(first, rewards=(*first.rewards, *reply.rewards))
        return list(by_text.values())

    def pair(self) -> PreferencePair | None:
        """Return the best and the worst reply (the first of equals); None if no two differ in value."""
        valued = self.distinct()
        if not valued:
            return None
        best, worst = max(valued, key=lambda r: r.value), min(valued, key=lambda r: r.value)
        if best.value == worst.value:
            return None
        return PreferencePair(self.context_id, self.task_id, self.messages, best, worst)

    @property
    def unscored(self) -> int:
        """Return how many continuations could not be scored."""
        return sum(len(reply.rewards) - len(reply.scored) for reply in self.replies)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; ``from_json`` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ValuedContext:
        """Build a context from ``to_json``'s object."""
        replies = tuple(ValuedReply(r["text"], tuple(r["token_ids"]), tuple(r["rewards"])) for r in row["replies"])
        return cls(**{**row, "messages": tuple(row["messages"]), "replies": replies})


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two replies to one history, the chosen one with the higher value."""

    context_id: str
    task_id: str
    prompt: tuple[Message, ...]
    chosen: ValuedReply
    rejected: ValuedReply

    def to_json(self) -> dict[str, Any]:
        """Return a row of TRL's conversational preference format, with values, their n, and ids beside it."""
        sides = {"chosen": self.chosen, "rejected": self.rejected}
        row: dict[str, Any] = {"prompt": [dict(m) for m in self.prompt]}
        row |= {side: [{"role": "assistant", "content": reply.text}] for side, reply in sides.items()}
        row |= {f"{side}_value": reply.value for side, reply in sides.items()}
        row |= {f"{side}_n": len(reply.scored) for side, reply in sides.items()}
        return {**row, "context_id": self.context_id, "task_id": self.task_id}


@dataclass(frozen=True, slots=True)
class PairCounts:
    """What came of the histories."""

    contexts: int
    pairs: int
    ties: int
    """Histories whose replies all have one value."""
    too_few: int
    """Histories with fewer than two different replies that have a value."""
    continuations: int
    unscored: int
    """Continuations that could not be scored; they count in no value."""
    sampled_tokens: int

    def __str__(self) -> str:
        """Say it."""
        return (
            f"{self.contexts:,} histories gave {self.pairs:,} pairs; in {self.ties:,} all replies were worth the same, "
            f"in {self.too_few:,} fewer than two different replies could be valued. {self.unscored:,} of "
            f"{self.continuations:,} continuations could not be scored."
        )


def count_pairs(contexts: Iterable[ValuedContext]) -> PairCounts:
    """Count what came of histories."""
    found: Counter[str] = Counter()
    for context in contexts:
        outcome = "too_few" if len(context.distinct()) < 2 else "pairs" if context.pair() else "ties"
        found.update({"contexts": 1, outcome: 1, "unscored": context.unscored})
        found["continuations"] += sum(len(reply.rewards) for reply in context.replies)
        found["sampled_tokens"] += context.sampled_tokens
    return PairCounts(**{name: found[name] for name in PairCounts.__dataclass_fields__})
