"""Numbers about a batch of dialogues, under the names that logs carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duologue.types import Episode


def dialogue_metrics(episodes: Sequence[Episode], group_size: int) -> dict[str, float]:
    """Return means over a batch: turns, tokens, words of the user, stop reasons, unscored and flat groups as shares.

    Seconds are those of the episode that took longest: with several processes, of the one that the others wait for.

    Args:
        episodes: one batch in group order.
        group_size: consecutive episodes that form a group.
    """
    n = len(episodes)
    flat = flat_groups([e.reward for e in episodes], group_size)
    words = [len(m["content"].split()) for e in episodes for m in e.played if m["role"] == "user"]
    metrics = {
        "dialogue/turns": sum(e.n_turns for e in episodes) / n,
        "dialogue/policy_tokens": sum(sum(e.completion_mask) for e in episodes) / n,
        "dialogue/total_tokens": sum(len(e.prompt_ids) + len(e.completion_ids) for e in episodes) / n,
        "dialogue/user_words_per_turn": sum(words) / max(1, len(words)),
        "dialogue/unscored": sum(e.reward is None for e in episodes) / n,
        "dialogue/flat_groups": sum(flat) / max(1, len(flat)),
        "dialogue/distinct_replies": _distinct(episodes),
    }
    reasons = Counter(e.stop_reason.value for e in episodes)
    metrics |= {f"stop/{reason}": count / n for reason, count in reasons.items()}
    phases = episodes[0].seconds if n else {}
    metrics |= {f"seconds/{phase}": max(e.seconds.get(phase, 0.0) for e in episodes) for phase in phases}
    return metrics


def flat_groups(rewards: Sequence[float | None], group_size: int) -> list[bool]:
    """Return, per group, whether its scored episodes all have one reward (or none is scored)."""
    groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
    return [len({reward for reward in group if reward is not None}) <= 1 for group in groups]


def _distinct(episodes: Sequence[Episode]) -> float:
    """Share of distinct texts among all replies: a collapse of the policy shows here first."""
    replies = [m["content"] for e in episodes for m in e.played if m["role"] == "assistant"]
    return len(set(replies)) / max(1, len(replies))
