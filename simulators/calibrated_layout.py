"""How a dialogue looks to a model that plays the user: one layout, for training and for sampling.

A leading message of role "user" holds the oracle context (a Jinja prompt: instruction, facts, solution, reference).
Then the roles are flipped: what the person said are the model's turns, what the assistant replied are its "user"
messages. Each turn of the person begins with a line of its own that says whether the dialogue goes on:

    go on | satisfied | give up
    what the person types (may be empty when the person leaves)

The opening's decision is given, not learned: nobody leaves with the opening. Nothing is ever rendered again; ids are
only appended, and control tokens that a log spells stay text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from duologue.errors import DuologueError
from duologue.simulators.logs.dialogue import LoggedDialogue
from duologue.types import Dialogue, Message, StopReason, Task, alternates

if TYPE_CHECKING:
    from jinja2 import Template

    from duologue.engines.chat import ChatFormat

GO_ON = "go on"
DECISIONS: dict[str, StopReason | None] = {
    GO_ON: None,
    "satisfied": StopReason.USER_SATISFIED,
    "give up": StopReason.USER_GAVE_UP,
}
"""First line of a user turn, and the stop reason that it means."""
GIVEN, DECISION, TEXT = 0, 1, 2
"""Kinds of tokens: read but not learned; the decision line; the person's words with the end of turn."""


@dataclass(frozen=True, slots=True)
class HumanTurn:
    """One turn of the person."""

    text: str
    decision: str = GO_ON


@dataclass(slots=True)
class UserRow:
    """A dialogue as tokens of the user's model. The three lists have one length."""

    ids: list[int] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    """``GIVEN``, ``DECISION`` or ``TEXT`` for each token."""
    turns: list[int] = field(default_factory=list)
    """Index of the user turn that each token belongs to; -1 for given ones."""

    @property
    def mask(self) -> list[int]:
        """Return 1 for tokens that carry loss."""
        return [int(kind != GIVEN) for kind in self.kinds]

    def give(self, ids: Sequence[int]) -> None:
        """Append tokens that the model reads."""
        self._add(ids, GIVEN, -1)

    def learn(self, ids: Sequence[int], kind: int, turn: int) -> None:
        """Append tokens that the model has to produce."""
        self._add(ids, kind, turn)

    def _add(self, ids: Sequence[int], kind: int, turn: int) -> None:
        self.ids += ids
        self.kinds += [kind] * len(ids)
        self.turns += [turn] * len(ids)


def lay_out(
    task: Task, humans: Sequence[HumanTurn], replies: Sequence[str], chat: ChatFormat, template: str
) -> UserRow:
    """Return the tokens of a dialogue, for training; with as many replies as human turns, the prompt of the next turn.

    Args:
        task: what the dialogue is about, hidden part included.
        humans: the person's turns in order.
        replies: the assistant's turns in order; as many as ``humans``, or one fewer.
        chat: of the user's model.
        template: Jinja prompt with the variable ``task``.
    """
    row = UserRow()
    row.give(chat.opening_ids([Message(role="user", content=oracle_context(task, template))]))
    row.give(chat.text_ids(f"{GO_ON}\n"))
    for i, human in enumerate(humans):
        if i:
            row.learn(chat.text_ids(f"{human.decision}\n"), DECISION, i)
        row.learn([*chat.text_ids(human.text.strip()), chat.end_of_turn_id], TEXT, i)
        for reply in replies[i : i + 1]:
            row.give(chat.user_suffix_ids(reply))
    return row


def next_prompt(dialogue: Dialogue, chat: ChatFormat, template: str) -> list[int]:
    """Return the prompt for the next user turn of a dialogue that goes on."""
    humans = [HumanTurn(text) for text in dialogue.said_by("user")]
    return lay_out(dialogue.task, humans, dialogue.said_by("assistant"), chat, template).ids


def human_turns(dialogue: LoggedDialogue) -> tuple[list[HumanTurn], bool]:
    """Return the person's turns of a log with their decisions, and whether its last message had to be left out.

    Who left with a text decided so with that text; who left without one decided in a further turn of no text. A last
    user message of a log that does not say why it ended is left out: it may have been a farewell or not.

    Raises:
        DuologueError: if roles do not alternate, a message of the person is blank, or the opening ends the dialogue.
    """
    texts = [m["content"] for m in dialogue.messages if m["role"] == "user"]
    _check(dialogue, texts)
    word = next((word for word, stop in DECISIONS.items() if stop and stop is dialogue.stop), None)
    turns = [HumanTurn(text) for text in texts]
    by_user = dialogue.messages[-1]["role"] == "user"
    if word:
        return ([*turns[:-1], HumanTurn(texts[-1], word)] if by_user else [*turns, HumanTurn("", word)]), False
    unknown = by_user and dialogue.stop is None and len(texts) > 1
    return (turns[:-1] if unknown else turns), unknown


def training_row(dialogue: LoggedDialogue, chat: ChatFormat, template: str) -> tuple[UserRow, bool]:
    """Return a log as a row of tokens, and whether its last message had to be left out (see ``human_turns``)."""
    humans, left_out = human_turns(dialogue)
    replies = [m["content"] for m in dialogue.messages if m["role"] == "assistant"]
    return lay_out(dialogue.task, humans, replies[: len(humans) - 1], chat, template), left_out


def oracle_context(task: Task, template: str) -> str:
    """Return what the user's model reads first."""
    return _compiled(template).render(task=task).strip()


def calibrated_prompt(env: str) -> str:
    """Return the shipped template of an environment (its name without version)."""
    return files("duologue.simulators").joinpath("prompts", f"{env}_calibrated.jinja").read_text(encoding="utf-8")


def parse_output(text: str) -> tuple[HumanTurn, bool]:
    """Return the turn in a model's output, and whether it began with a decision; without one the user goes on."""
    first, _, rest = text.strip().partition("\n")
    word = first.strip().lower()
    return (HumanTurn(rest.strip(), word), True) if word in DECISIONS else (HumanTurn(text.strip()), False)


def _check(dialogue: LoggedDialogue, texts: Sequence[str]) -> None:
    name = f"Dialogue {dialogue.dialogue_id!r}"
    if not dialogue.messages or not alternates(dialogue.messages):
        raise DuologueError(f"{name} must start with the user and take turns. Merge or drop its other messages.")
    if not all(text.strip() for text in texts):
        raise DuologueError(f"{name} has a blank user message. Drop it, or the dialogue.")
    if len(dialogue.messages) == 1 and dialogue.stop in DECISIONS.values() and dialogue.stop:
        raise DuologueError(f"{name} ends with its opening, so there is no turn to decide in. Leave it out.")


@cache
def _compiled(template: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    env = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return env.from_string(template)
