"""The transition function of every dialogue environment: pure, batched, the only place where a dialogue moves on.

One call of the simulator serves all dialogues that need a user turn, one call of the reward all dialogues that end.

=============================  ==================  =======================  ===================
what happened                  observation         reward                   stop reason
=============================  ==================  =======================  ===================
the user goes on               next user message   0.0                      none
the user ends it               closing message     outcome                  the user's
reply number ``max_turns``     "" (no user turn)   outcome                  ``turn_limit``
reply over ``max_chars``       "" (no user turn)   outcome                  ``message_limit``
a limit outside the env        ""                  outcome                  the caller's
the simulator failed twice     ""                  0.0, and not scored      ``simulator_error``
the policy failed              ""                  0.0, and not scored      ``policy_error``
=============================  ==================  =======================  ===================

A dialogue may begin with a given history (``Dialogue.given``): the simulator reads it, the reward never sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from duologue.envs.scoring import Unscored, score_all
from duologue.envs.spaces import without_surrogates
from duologue.errors import DuologueError
from duologue.rewards.base import Reward, Score
from duologue.simulators.base import Simulator
from duologue.simulators.human import HumanUser
from duologue.simulators.reliable import answer_all
from duologue.types import Dialogue, StopReason, Task, UserTurn


@dataclass(frozen=True, slots=True)
class Transition:
    """One dialogue after one step."""

    dialogue: Dialogue
    """The dialogue as it is now; ``dialogue.stop`` is set if it is over."""
    observation: str = ""
    """What the user just said; "" if no user turn was taken."""
    reward: float = 0.0
    """The outcome if the dialogue is over and scored, else 0.0."""
    score: Score | None = None
    """The outcome with its parts; None if the dialogue goes on or could not be scored."""
    user_turn: UserTurn | None = None
    """The user's turn, if one was taken."""
    error: str | None = None
    """What broke and how to fix it."""
    context_id: str | None = None
    """Which logged context this dialogue was just begun with, if any."""

    @property
    def terminated(self) -> bool:
        """True if the user ended the dialogue."""
        return self.dialogue.stop is not None and self.dialogue.stop.is_terminal

    @property
    def truncated(self) -> bool:
        """True if a limit or an error ended the dialogue."""
        return self.dialogue.stop is not None and not self.dialogue.stop.is_terminal

    @property
    def scored(self) -> bool:
        """True if ``reward`` is an outcome; False while the dialogue goes on, and if it could not be scored."""
        return self.score is not None and self.score.value is not None


@dataclass(frozen=True, slots=True)
class DialogueDynamics:
    """Opens dialogues, answers replies, ends dialogues. Holds no dialogue itself."""

    simulator: Simulator
    """Who answers."""
    reward: Reward
    """Scores finished dialogues."""
    max_turns: int
    """Most replies of the assistant in a dialogue; those of a logged history that it began with do not count."""
    max_chars: int
    """Most characters in a message. A longer reply ends the dialogue; a longer user message is cut to it."""
    call_timeout: float | None
    """Seconds for one call of the simulator or the reward; None = no limit. People take the time that they need."""

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            DuologueError: if one of them cannot work.
        """
        for name in ("max_turns", "max_chars"):
            if getattr(self, name) < 1:
                raise DuologueError(f"{name} is {getattr(self, name)}. Pass at least 1.")
        if self.call_timeout is not None and self.call_timeout <= 0:
            raise DuologueError(f"call_timeout is {self.call_timeout}. Pass seconds above 0, or None.")
        if not isinstance(self.simulator, Simulator):
            raise DuologueError(f"{self.simulator!r} is no simulator: it has no respond(dialogues). Add that method.")
        if not callable(self.reward):
            raise DuologueError(f"{self.reward!r} is no reward. Pass a function from dialogues to a list of scores.")

    def open(self, tasks: Sequence[Task], seeds: Sequence[int]) -> list[Transition]:
        """Return new dialogues in which the user has spoken first, one per task and seed, in order."""
        opened = self._ask([Dialogue(task, seed) for task, seed in zip(tasks, seeds, strict=True)])
        return [_checked_opening(t) for t in opened]

    def reply(self, dialogues: Sequence[Dialogue], replies: Sequence[str]) -> list[Transition]:
        """Return the dialogues after the assistant's replies and, where no limit bit, the user's answers.

        Raises:
            DuologueError: if a dialogue is over, or a reply is no string.
        """
        said = [self._said(dialogue, text) for dialogue, text in zip(dialogues, replies, strict=True)]
        answers = iter(self._ask([dialogue for dialogue in said if dialogue.stop is None]))
        return self._scored([Transition(d) if d.stop is not None else next(answers) for d in said])

    def cut(self, dialogues: Sequence[Dialogue], reason: StopReason) -> list[Transition]:
        """End dialogues because a limit outside the environment bit, or because the policy failed.

        The outcome of what was said so far is still scored, unless ``reason`` is an error.

        Raises:
            DuologueError: if a dialogue is over, or ``reason`` is one that only the user can have.
        """
        if reason.is_terminal:
            raise DuologueError(f"{reason.value!r} is the user's to decide. Cut with a limit, such as 'token_limit'.")
        return self._scored([Transition(_open(dialogue).ended(reason)) for dialogue in dialogues])

    def _said(self, dialogue: Dialogue, text: str) -> Dialogue:
        if not isinstance(text, str):
            raise DuologueError(f"A reply is {type(text).__name__}, not str. Pass the assistant's text.")
        dialogue = _open(dialogue).then("assistant", without_surrogates(text))
        if len(text) > self.max_chars:
            return dialogue.ended(StopReason.MESSAGE_LIMIT)
        if len(dialogue.own.said_by("assistant")) >= self.max_turns:
            return dialogue.ended(StopReason.TURN_LIMIT)
        return dialogue

    def _ask(self, dialogues: Sequence[Dialogue]) -> list[Transition]:
        if not dialogues:
            return []
        timeout = None if isinstance(self.simulator, HumanUser) else self.call_timeout
        turns = answer_all(self.simulator, dialogues, timeout)
        return [self._answered(dialogue, turn) for dialogue, turn in zip(dialogues, turns, strict=True)]

    def _answered(self, dialogue: Dialogue, turn: UserTurn | Exception) -> Transition:
        if isinstance(turn, Exception):
            return _failed(dialogue, str(turn) or repr(turn))
        try:
            turn = self._fitted(turn)
        except (AttributeError, TypeError, ValueError) as error:
            return _failed(dialogue, f"A user turn is malformed ({error}). Run check_simulator to find out which.")
        if turn.text or turn.stop is None:
            dialogue = dialogue.then("user", turn.text)
        return Transition(replace(dialogue, stop=turn.stop), turn.text, user_turn=turn)

    def _fitted(self, turn: UserTurn) -> UserTurn:
        """Return the turn with a text that fits the observation space and fields of the promised types."""
        text = without_surrogates(turn.text)
        cut = {"user_text_cut": 1.0} if len(text) > self.max_chars else {}
        notes = {str(name): float(count) for name, count in turn.notes.items()} | cut
        stop = None if turn.stop is None else StopReason(turn.stop)
        return UserTurn(text[: self.max_chars], stop, tuple(turn.acts), notes)

    def _scored(self, transitions: list[Transition]) -> list[Transition]:
        over = [t.dialogue.own for t in transitions if t.dialogue.stop is not None and not t.dialogue.stop.is_error]
        scores = iter(score_all(self.reward, over, self.call_timeout))
        ends = (t.dialogue.stop is not None and not t.dialogue.stop.is_error for t in transitions)
        return [_with_score(t, next(scores)) if end else t for t, end in zip(transitions, ends, strict=True)]


def _open(dialogue: Dialogue) -> Dialogue:
    if dialogue.stop is not None:
        raise DuologueError(f"The dialogue is over ({dialogue.stop.value}). Call reset() to start another.")
    return dialogue


def _failed(dialogue: Dialogue, error: str) -> Transition:
    return Transition(dialogue.ended(StopReason.SIMULATOR_ERROR), error=error)


def _checked_opening(opening: Transition) -> Transition:
    """Refuse an opening to which there is nothing to reply: the assistant would be scored without a word."""
    if opening.user_turn is None or (opening.dialogue.stop is None and opening.observation.strip()):
        return opening
    before = Dialogue(opening.dialogue.task, opening.dialogue.seed)
    return _failed(before, "The simulator opened with no text, or ended with its opening. Make it say what it wants.")


def _with_score(transition: Transition, outcome: Score | Unscored) -> Transition:
    if isinstance(outcome, Unscored):
        return replace(transition, error=outcome.error)
    return replace(transition, score=outcome, reward=0.0 if outcome.value is None else float(outcome.value))
