"""What one speaker said: dialogues as clusters of user turns, each with the history that it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from duologue.analysis.acts import label_acts
from duologue.analysis.user_rates import Seen, accepts, verdict
from duologue.simulators.calibrated_layout import DECISIONS, human_turns
from duologue.simulators.logs import LoggedDialogue
from duologue.types import Act, Episode, Message, StopReason, Task

USER_STOPS = (StopReason.USER_SATISFIED, StopReason.USER_GAVE_UP)


class Judged(NamedTuple):
    """What the assistant had offered just before a turn, and what the user made of it."""

    right: bool
    accepted: bool


@dataclass(frozen=True)
class Turn:
    """One user turn. What is read off it is worked out once."""

    env: str
    """Environment id."""
    task: Task
    history: tuple[Message, ...]
    """The messages before it; empty for an opening."""
    text: str
    """May be empty when the user just leaves."""
    stop: StopReason | None = None
    """Set if the user ended the dialogue with it."""
    person_stops: bool | None = None
    """Whether the person whose history it is left here; None where nobody can know."""

    @cached_property
    def acts(self) -> frozenset[Act]:
        """Return its dialogue acts, by the rules of ``label_acts``."""
        return label_acts(self.task, self.history, self.text, self.stop)

    @cached_property
    def judged(self) -> Judged | None:
        """Return what the user made of an answer or draft, by the rules of ``user_rates``.

        None if the last message offered none, or none that can be called right or wrong.
        """
        seen = Seen(self._as_episode(), self.task)
        offer = seen.offer(self.history[-1]["content"]) if self.history else None
        right = verdict(seen, offer) if offer else None
        return None if right is None else Judged(right, accepts(seen, len(self.history)))

    def _as_episode(self) -> Episode:
        messages = (*self.history, Message(role="user", content=self.text))
        return Episode(self.env, self.task.task_id, 0, messages, self.stop or StopReason.TURN_LIMIT, None)


@dataclass(frozen=True, slots=True)
class Talk:
    """One speaker's turns of one dialogue: the unit that is resampled, as its turns are not independent."""

    dialogue_id: str
    turns: tuple[Turn, ...]
    end_known: bool = True
    """False if the log does not say why the dialogue ended, so that nobody knows whether the person left."""
    left_out: int = 0
    """Turns that were said but cannot be judged: the last message of a dialogue whose end is not known."""

    @property
    def texts(self) -> list[str]:
        """Return the texts that say something."""
        return [turn.text for turn in self.turns if turn.text.strip()]


def talk_of_log(dialogue: LoggedDialogue, env: str) -> Talk:
    """Return a person's turns.

    Who left without a word has a last turn of no text. A last message of a log that does not say why it ended is left
    out, as in calibration: nobody knows whether it was a farewell.

    Raises:
        DuologueError: if the dialogue is malformed (see ``human_turns``).
    """
    humans, left_out = human_turns(dialogue)
    turns = []
    for i, human in enumerate(humans):
        stop = DECISIONS[human.decision]
        history = dialogue.messages[: 2 * i]
        turns.append(Turn(env, dialogue.task, history, human.text, stop, person_stops=stop is not None))
    return Talk(dialogue.dialogue_id, tuple(turns), dialogue.stop is not None, int(left_out))


def talk_of_episode(episode: Episode, task: Task) -> Talk:
    """Return the user's turns of a finished dialogue."""
    last = len(episode.messages) - 1
    turns = tuple(
        Turn(episode.env_id, task, episode.messages[:i], message["content"], _stop_at(episode, at_end=i == last))
        for i, message in enumerate(episode.messages)
        if message["role"] == "user"
    )
    return Talk(f"{episode.task_id}-seed-{episode.seed}", turns)


def unprompted(talks: Sequence[Talk]) -> list[Talk]:
    """Return the talks as they stand in free dialogues: without the knowledge of where a person stopped."""
    return [replace(t, turns=tuple(Turn(u.env, u.task, u.history, u.text, u.stop) for u in t.turns)) for t in talks]


def _stop_at(episode: Episode, *, at_end: bool) -> StopReason | None:
    return episode.stop_reason if at_end and episode.stop_reason in USER_STOPS else None
