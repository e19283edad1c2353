"""transcripts.md: the same task and user, played by every policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent

from duologue.analysis.report import transcript
from duologue.types import Episode


def transcripts(played: Mapping[str, Sequence[Episode]]) -> str:
    """Return one dialogue of each policy, on the first start for which policies differ most in score.

    Args:
        played: dialogues of each policy with held-out users of one seed, in the order of their starts.
    """
    chosen = max(range(min(map(len, played.values()))), key=lambda i: _spread([e[i] for e in played.values()]))
    parts = [f"# Dialogue {chosen} with a held-out user, by policy"]
    parts += ["It is one dialogue of each, chosen because the policies' scores differ most on it: no average."]
    for policy, episodes in played.items():
        parts += [f"## {policy}", indent(transcript(episodes[chosen]), "    ", lambda line: True)]
    return "\n\n".join(parts)


def _spread(episodes: Sequence[Episode]) -> float:
    scores = [e.reward for e in episodes if e.reward is not None]
    return max(scores) - min(scores) if scores else 0.0
