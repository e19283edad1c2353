"""How long dialogues are, and how many tokens a step of training samples, reads and computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.errors import DuologueError
from duologue.types import Episode


@dataclass(frozen=True, slots=True)
class Lengths:
    """Dialogues of one step. Lengths are of one dialogue, in tokens, and may be means."""

    dialogues: int
    group_size: int
    """Dialogues that share a task, a user seed and so an opening."""
    turns: float
    """Turns of the policy in a dialogue."""
    opening: float
    """Tokens before the policy's first turn."""
    said: float
    """Tokens that the policy samples in a turn."""
    heard: float
    """Tokens between two turns of the policy: the user's and the chat template's."""

    @property
    def sampled(self) -> float:
        """Return the tokens that the policy samples in a dialogue: turns said."""
        return self.turns * self.said

    @property
    def user(self) -> float:
        """Return the tokens of the other speaker in a dialogue: opening + (turns - 1) heard."""
        return self.opening + max(0.0, self.turns - 1) * self.heard

    @property
    def total(self) -> float:
        """Return all tokens of a dialogue, which training reads: sampled + user."""
        return self.sampled + self.user

    @property
    def prefill_plain(self) -> float:
        """Return the prompt tokens of a dialogue that an engine without a cache computes.

        The prompt of turn t is opening + (t - 1) (said + heard): turns opening + (said + heard) turns (turns - 1) / 2.
        """
        return self.turns * self.opening + (self.said + self.heard) * self.turns * max(0.0, self.turns - 1) / 2

    @property
    def prefill_cached(self) -> float:
        """Return the same with the dialogue's own keys and values kept: opening + (turns - 1) (heard + 1).

        The last token of a turn has no keys until the next turn reads it.
        """
        return self.opening + max(0.0, self.turns - 1) * (self.heard + 1)

    @property
    def prefill_shared(self) -> float:
        """Return the same with a radix cache that a whole group shares: its opening is computed once."""
        return self.prefill_cached - self.opening * (1 - 1 / self.group_size)


def longest(dialogues: int, group_size: int, turns: int, per_turn: int, total: int) -> Lengths:
    """Return the lengths of dialogues that use all that the limits allow.

    Args:
        dialogues: per step.
        group_size: dialogues per group.
        turns: most turns of the policy.
        per_turn: most tokens of a turn.
        total: most tokens of a dialogue. What the policy leaves of it is the other speaker's, in equal turns.
    """
    sampled = min(turns * per_turn, total)
    other = (total - sampled) / turns
    return Lengths(dialogues, group_size, turns, other, sampled / turns, other)


def expected(dialogues: int, group_size: int, episodes: Sequence[Episode]) -> Lengths:
    """Return the mean lengths of dialogues that were played.

    Args:
        dialogues: per step of the run that is planned.
        group_size: dialogues per group of that run.
        episodes: played by a token policy.

    Raises:
        DuologueError: if none of them has tokens.
    """
    played = [e for e in episodes if e.spans]
    if not played:
        raise DuologueError("No episode has tokens of a policy. Give episodes.jsonl of a training or evaluation run.")
    n, turns = len(played), sum(len(e.spans) for e in played)
    sampled = sum(sum(e.completion_mask) for e in played)
    heard = sum(len(e.completion_ids) for e in played) - sampled
    opening = sum(len(e.prompt_ids) for e in played) / n
    return Lengths(dialogues, group_size, turns / n, opening, sampled / turns, heard / max(1, turns - n))
