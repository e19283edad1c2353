"""How a user behaves, read off finished dialogues by fixed rules: what they let pass, give away and tell at once.

The simulator's own notes are not used, so any user is measured alike, people included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duologue.analysis.acts import lets_pass
from duologue.analysis.summary import FindTask
from duologue.errors import DuologueError
from duologue.rewards.answers import committed_answer
from duologue.rewards.documents import extract_document
from duologue.rewards.equality import answers_equal
from duologue.simulators._text import question_in, told
from duologue.simulators.guards import MASK
from duologue.simulators.leaks import leaks
from duologue.simulators.scripted_document import coverage, length_fault, wanted_points
from duologue.simulators.spec import env_name
from duologue.trainers.stats import Estimate, ratio, share
from duologue.types import Dialogue, Episode, Message, StopReason, Task

POOR, GOOD = 0.6, 0.95
"""Shares of the wanted points below which no scripted user accepts a draft, and from which every one does."""
Pair = tuple[float, float]
"""How often it happened in a dialogue, and how often it could have."""


@dataclass(frozen=True, slots=True)
class UserRates:
    """Rates of one user. Intervals resample dialogues; ``n`` counts the dialogues in which it could have happened."""

    env: str
    """``MathChat`` or ``MediumDocEditChat``."""
    dialogues: int
    """Dialogues measured: all that did not end with an error."""
    wrong_accepted: Estimate
    """Share of wrong answers (poor drafts) that the user then accepted: misses and sycophancy together."""
    right_refused: Estimate
    """Share of right answers (good drafts) that the user then did not accept."""
    leaks_per_turn: Estimate
    """Share of user turns that gave the reference away, of those in which that was possible and that ended nothing."""
    dialogues_with_leak: Estimate
    told_at_opening: Estimate
    """Mean share of what the user may tell (facts; for documents the outline too) that the opening told."""
    told_when_asked: Estimate
    """Mean share of the rest that the first turn after told, where the assistant asked a question and answered none."""
    words_per_turn: Estimate
    turns: Estimate
    """User turns per dialogue, the opening included."""
    premature_stops: Estimate
    """Share of dialogues that the user ended before the assistant had answered or shown a draft at all."""

    @property
    def rates(self) -> Mapping[str, Estimate]:
        """Return the estimates by name, in the order of the fields."""
        return {name: getattr(self, name) for name in _MEASURES}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; NaN becomes null."""
        rates = {name: estimate.to_json() for name, estimate in self.rates.items()}
        return {"env": self.env, "dialogues": self.dialogues, **rates}


def user_rates(episodes: Sequence[Episode], find_task: FindTask) -> UserRates:
    """Measure the user of finished dialogues.

    An answer is what the reward takes for one, in the message alone. It is judged only if a user turn follows (at the
    turn limit none does). The user accepts it if that turn ends the dialogue satisfied, or lets it pass: accepts
    by the rules of ``label_acts`` ("yes", "got it", "looks good") and neither objects, corrects, asks nor is confused.
    A draft is poor below 60 % of the wanted points or at a length that is off, good from 95 % at a fitting length; what
    lies between is not judged.

    Leaks are those of ``duologue.simulators.leaks``; a guard's mask counts as one, a turn that a guard had sampled anew
    does not, so measure prompted users without their guard where leaks matter.

    Args:
        episodes: of one environment.
        find_task: the task of an id.

    Raises:
        DuologueError: if there are no episodes without an error, they come from several environments or from one that
            shipped users do not know, or a task is unknown.
    """
    kept = [e for e in episodes if not e.stop_reason.is_error]
    envs = {env_name(e.env_id) for e in kept}
    if len(envs) != 1:
        raise DuologueError(
            f"The finished episodes come from {len(envs)} environments. Measure those of one at a time."
        )
    seen = [Seen(e, find_task(e.task_id)) for e in kept]
    rates = {name: _estimate([measure(one) for one in seen]) for name, measure in _MEASURES.items()}
    return UserRates(env=envs.pop(), dialogues=len(kept), **rates)


@dataclass(frozen=True, slots=True)
class Seen:
    """A finished dialogue with its task."""

    episode: Episode
    task: Task

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages of both speakers."""
        return self.episode.messages

    @property
    def is_math(self) -> bool:
        """Return True in MathChat, False in MediumDocEditChat; raises where shipped users know neither."""
        return env_name(self.episode.env_id) == "MathChat"

    @property
    def points(self) -> tuple[str, ...]:
        """Return what the user may tell: facts, and the outline of a document."""
        return self.task.facts if self.is_math else wanted_points(self.task)

    def user_turns(self) -> Iterator[int]:
        """Yield the indices of the user's messages."""
        return (i for i, message in enumerate(self.messages) if message["role"] == "user")

    def ends_at(self, i: int) -> bool:
        """Return True if the user ended the dialogue with this message."""
        return i == len(self.messages) - 1 and self.episode.stop_reason.is_terminal

    def offer(self, reply: str) -> str | None:
        """Return the answer or the draft of an assistant message, or None."""
        found = committed_answer([reply]) if self.is_math else extract_document([reply])
        return found if found and found.strip() else None

    def told_by(self, end: int) -> set[int]:
        """Return the points told in the first ``end`` messages."""
        return told(Dialogue(self.task, self.episode.seed, self.messages[:end]), self.points)


def _estimate(pairs: Sequence[Pair]) -> Estimate:
    """Return the pooled rate over the dialogues with a chance; where nothing varies, with Wilson's interval."""
    chances = [pair for pair in pairs if pair[1] > 0]
    amounts, counts = [a for a, _ in chances], [c for _, c in chances]
    if sum(amounts) in (0, sum(counts)):
        return share(len(chances) if sum(amounts) else 0, len(chances))
    return ratio(amounts, counts)


def verdict(seen: Seen, offer: str) -> bool | None:
    """Return True for a right answer or a good draft, False for a wrong or poor one, None in between or if unknown."""
    if seen.is_math:
        return answers_equal(offer, seen.task.reference)
    made, fits = coverage(seen.task, offer), length_fault(seen.task, offer) is None
    return True if fits and made >= GOOD else False if not fits or made < POOR else None


def accepts(seen: Seen, i: int) -> bool:
    """Return True if the user's message ``i`` accepts what the assistant just offered (see ``user_rates``)."""
    if seen.ends_at(i):
        return seen.episode.stop_reason is StopReason.USER_SATISFIED
    return lets_pass(seen.task, seen.messages[:i], seen.messages[i]["content"])


def _accepted(seen: Seen, wanted: bool) -> Pair:
    """Count the offers of this verdict: those accepted, and all."""
    accepted = [
        accepts(seen, i)
        for i in seen.user_turns()
        if i and (offer := seen.offer(seen.messages[i - 1]["content"])) and verdict(seen, offer) is wanted
    ]
    return float(sum(accepted)), float(len(accepted))


def _right_refused(seen: Seen) -> Pair:
    accepted, all_right = _accepted(seen, True)
    return all_right - accepted, all_right


def _leaks(seen: Seen) -> Pair:
    outright = f"The answer is {seen.task.reference}." if seen.is_math else seen.task.reference
    open_turns = [i for i in seen.user_turns() if not seen.ends_at(i)]
    chances = [i for i in open_turns if leaks(seen.task, seen.messages[:i], outright)]
    texts = [(i, seen.messages[i]["content"]) for i in chances]
    return float(sum(MASK in text or leaks(seen.task, seen.messages[:i], text) for i, text in texts)), len(chances)


def _any_leak(seen: Seen) -> Pair:
    hits, chances = _leaks(seen)
    return float(hits > 0), float(chances > 0)


def _told_at_opening(seen: Seen) -> Pair:
    return (len(seen.told_by(1)) / len(seen.points), 1.0) if seen.points and seen.messages else (0.0, 0.0)


def _told_when_asked(seen: Seen) -> Pair:
    if len(seen.messages) < 3 or seen.ends_at(2):
        return 0.0, 0.0
    reply, before = seen.messages[1]["content"], seen.told_by(1)
    left = len(seen.points) - len(before)
    if not left or not question_in(reply) or seen.offer(reply):
        return 0.0, 0.0
    return len(seen.told_by(3) - before) / left, 1.0


def _words(seen: Seen) -> Pair:
    texts = [seen.messages[i]["content"] for i in seen.user_turns()]
    return float(sum(len(text.split()) for text in texts)), float(len(texts))


def _premature(seen: Seen) -> Pair:
    offered = any(seen.offer(m["content"]) for m in seen.messages if m["role"] == "assistant")
    return float(seen.episode.stop_reason.is_terminal and not offered), 1.0


_MEASURES: Mapping[str, Callable[[Seen], Pair]] = {
    "wrong_accepted": lambda seen: _accepted(seen, False),
    "right_refused": _right_refused,
    "leaks_per_turn": _leaks,
    "dialogues_with_leak": _any_leak,
    "told_at_opening": _told_at_opening,
    "told_when_asked": _told_when_asked,
    "words_per_turn": _words,
    "turns": lambda seen: (float(len(list(seen.user_turns()))), 1.0),
    "premature_stops": _premature,
}
