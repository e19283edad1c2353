"""What a set of episodes says, as numbers with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duologue.errors import DuologueError
from duologue.simulators.leaks import leaks
from duologue.trainers.stats import Estimate, clustered_mean, mean, ratio, score_mean, share
from duologue.types import Episode, Task

METRICS = {"MathChat-v0": "accuracy", "MediumDocEditChat-v0": "BLEU"}
"""What the reward of a shipped environment measures, in [0, 1]."""
FindTask = Callable[[str], Task]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Numbers of one measurement. Error episodes are unscored, which is not 0, and count only among the reasons."""

    metric: str
    """``accuracy``, ``BLEU`` (both in [0, 1]) or ``reward``."""
    score: Estimate
    tasks: int
    """Different tasks among the scored dialogues. If fewer than dialogues, the score's interval resamples tasks."""
    scored: int
    unscored: int
    turns: Estimate
    """Assistant messages per dialogue."""
    assistant_words: Estimate
    """Words of the assistant per dialogue."""
    assistant_tokens: Estimate | None
    """Sampled tokens per dialogue; None if unknown."""
    user_words: Estimate
    """Words per user turn."""
    user_leaks: Estimate | None
    """Share of user turns that gave the reference away (``duologue.simulators.leaks``); None if tasks are unknown."""
    user_notes: Mapping[str, float]
    """The simulator's own counts, such as ``guard_leak``, summed over dialogues."""
    stop_reasons: Mapping[str, Estimate]
    """Share of all dialogues that ended for each reason, most frequent first."""
    errors: Mapping[str, int]
    """What broke, and in how many dialogues."""
    signature: str
    """How all this was measured."""
    episodes: tuple[Episode, ...] = ()

    @property
    def scores(self) -> dict[int, float]:
        """Return the score of each scored seed, for ``difference``."""
        return {e.seed: e.reward for e in self.episodes if e.reward is not None}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without the episodes."""
        row: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if name == "stop_reasons":
                value = {reason: estimate.to_json() for reason, estimate in value.items()}
            row[name] = value.to_json() if isinstance(value, Estimate) else value
        del row["episodes"]
        return row


def summarise(episodes: Sequence[Episode], signature: str, find_task: FindTask | None = None) -> EvaluationReport:
    """Measure episodes of one environment.

    Args:
        episodes: finished dialogues; the order matters only to the last digit of bootstrapped intervals.
        signature: how they were made; kept as it is.
        find_task: task of an id, to look for leaks; None = do not.

    Raises:
        DuologueError: if there are no episodes, or they come from several environments.
    """
    envs = {e.env_id for e in episodes}
    if len(envs) != 1:
        raise DuologueError(f"The episodes come from {len(envs)} environments. Summarise those of one at a time.")
    kept = [e for e in episodes if e.reward is not None]
    reasons = Counter(e.stop_reason.value for e in episodes)
    return EvaluationReport(
        metric=METRICS.get(episodes[0].env_id, "reward"),
        score=_score(kept, METRICS.get(episodes[0].env_id, "reward")),
        tasks=len({e.task_id for e in kept}),
        scored=len(kept),
        unscored=len(episodes) - len(kept),
        turns=mean([e.n_turns for e in kept]),
        assistant_words=mean([_words(e, "assistant") for e in kept]),
        assistant_tokens=mean([sum(e.completion_mask) for e in kept]) if any(e.completion_mask for e in kept) else None,
        user_words=ratio([_words(e, "user") for e in kept], [_turns(e, "user") for e in kept]),
        user_leaks=_leak_rate(kept, find_task) if find_task else None,
        user_notes=_notes(kept),
        stop_reasons={reason: share(n, len(episodes)) for reason, n in reasons.most_common()},
        errors=dict(Counter(e.error for e in episodes if e.error).most_common()),
        signature=signature,
        episodes=tuple(episodes),
    )


def _score(episodes: Sequence[Episode], metric: str) -> Estimate:
    values = [e.reward for e in episodes if e.reward is not None]
    tasks = [e.task_id for e in episodes]
    if len(set(tasks)) < len(tasks):
        return clustered_mean(values, tasks)
    return mean(values) if metric == "BLEU" else score_mean(values)


def _leak_rate(episodes: Sequence[Episode], find_task: FindTask) -> Estimate:
    counts, turns = [leak_count(e, find_task) for e in episodes], [_turns(e, "user") for e in episodes]
    if sum(counts) in (0, sum(turns)):  # nothing varies, so there is nothing to resample
        return share(sum(counts), sum(turns))
    return ratio(counts, turns)


def leak_count(episode: Episode, find_task: FindTask) -> int:
    """Return in how many turns of an episode the user gave the reference away; 0 if the task is unknown."""
    try:
        task = find_task(episode.task_id)
    except DuologueError:  # an environment may give ids that its task source does not know
        return 0
    said = episode.messages
    new = range(episode.given, len(said))
    return sum(leaks(task, said[:i], said[i]["content"]) for i in new if said[i]["role"] == "user")


def _notes(episodes: Sequence[Episode]) -> dict[str, float]:
    names = sorted({name for e in episodes for name in e.user_notes})
    return {name: sum(e.user_notes.get(name, 0.0) for e in episodes) for name in names}


def _words(episode: Episode, role: str) -> int:
    return sum(len(m["content"].split()) for m in episode.played if m["role"] == role)


def _turns(episode: Episode, role: str) -> int:
    return sum(m["role"] == role for m in episode.played)
