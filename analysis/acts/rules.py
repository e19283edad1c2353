"""The rules by which acts of user turns are told, in one table: ``RULES``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from duologue.analysis.acts import patterns as words
from duologue.analysis.acts import reactions as reactions
from duologue.analysis.acts.reading import Reading
from duologue.simulators._text import content_words, told
from duologue.types import Act, Dialogue, Message, StopReason

NEW_WORDS = 6
"""Content words not heard before from which a wish brings content of its own."""
NEW_WORDS_AT_FIRST = 4
"""The same for the first turn, set against the task's public part alone."""


def _asks(turn: Reading, sentence: str) -> bool:
    """A question; a bare answer with a question mark is none where a question was put."""
    if sentence.rstrip("\")' ").endswith("?"):
        return bool(words.QUESTION_FORM.search(sentence)) or not turn.question
    return words.OPEN_QUESTION.search(sentence) is not None


def _orders(turn: Reading, sentence: str) -> bool:
    """An order or a wish; a verb in front answers, where a question was put that no text is to come of."""
    if words.REQUEST.search(sentence) or (turn.wants_document and words.WISH_FOR_TEXT.search(sentence)):
        return True
    return words.VERB_FIRST.search(sentence) is not None and (turn.wants_document or not turn.question)


def _repeats_the_task(turn: Reading, sentence: str) -> bool:
    said = content_words(sentence)
    return len(said) > 4 and len(said & content_words(turn.task.instruction)) >= 0.8 * len(said)


def _changes(turn: Reading, sentence: str) -> bool:
    wanted = _orders(turn, sentence) or _asks(turn, sentence)
    return turn.drafted and wanted and bool(words.CHANGE.search(sentence)) and not words.NEW_PIECE.search(sentence)


def _should_be(turn: Reading, sentence: str) -> bool:
    return bool(turn.history) and not turn.question and bool(words.SHOULD_BE.search(sentence))


def _about_the_reply(turn: Reading, sentence: str) -> bool:
    """Whether a sentence can be a reaction: one with many new words is rather content of a text."""
    return bool(turn.history) and len(turn.brings(sentence)) < NEW_WORDS + 2


def _confused(turn: Reading, sentence: str) -> bool:
    if turn.history and not _about_the_reply(turn, sentence):
        return False
    return bool(reactions.CONFUSED.search(sentence)) and not reactions.SELF_SURE.search(sentence)


def _cannot(turn: Reading) -> bool:
    asked = turn.last_question
    return bool(reactions.CAN_YOU.search(asked) and reactions.BARE_NO.search(turn.text))


def _accepts(turn: Reading, sentence: str) -> bool:
    if not _about_the_reply(turn, sentence):
        return not turn.history and reactions.BARE_YES.fullmatch(turn.text) is not None
    if reactions.NOT_ACCEPT.search(sentence) or _answers_yes_or_no(turn):
        return False
    clauses = re.split(r"[,;]|\bbut\b", sentence)
    stated = clauses[:-1] if sentence.endswith("?") else clauses  # what a question asks is not approved
    return bool(reactions.AGREES.search(sentence)) or any(map(reactions.APPROVES.search, stated))


def _answers_yes_or_no(turn: Reading) -> bool:
    """Whether the turn says "yes" or "no" to a question on the matter."""
    asked = turn.question and words.YES_OR_NO.search(turn.question) and not reactions.CAN_YOU.search(turn.question)
    return bool(asked) and re.match(r"\W*(?:yes|no|yeah|yep|nope)\b", turn.text, re.IGNORECASE) is not None


def _rejects(turn: Reading, sentence: str) -> bool:
    if not _about_the_reply(turn, sentence) or _answers_yes_or_no(turn) or _cannot(turn):
        return False
    return reactions.REJECT.search(sentence) is not None


def _reacts(turn: Reading, sentence: str) -> bool:
    """Whether a sentence only answers to what was said, and tells nothing."""
    if reactions.SMALL_TALK.search(sentence) or reactions.THANK.search(sentence) or reactions.STOP.search(sentence):
        return True
    if _confused(turn, sentence) or (turn.history and reactions.OPINION.search(sentence)):
        return True
    reaction = _accepts(turn, sentence) or _rejects(turn, sentence)
    return reaction and len(turn.brings(sentence)) < NEW_WORDS / 2 and not turn.brings_number(sentence)


def _tells(turn: Reading, sentence: str) -> bool:
    """Whether a plain sentence brings something."""
    if _asks(turn, sentence) or _orders(turn, sentence) or _reacts(turn, sentence):
        return False
    if turn.poses or _repeats_the_task(turn, sentence) or _cannot(turn):
        return False
    return words.LEFTOVER.search(sentence) is not None


def _asks_with_a_step(turn: Reading, sentence: str) -> bool:
    return not turn.wants_document and _asks(turn, sentence) and bool(words.OWN_STEP.search(sentence))


def _wishes_with_content(turn: Reading, sentence: str) -> bool:
    if not (_orders(turn, sentence) or _asks(turn, sentence)) or not turn.wants_document:
        return False
    new = turn.brings(sentence)
    enough = NEW_WORDS if turn.history else NEW_WORDS_AT_FIRST
    named = any(content_words(name) <= new for name in words.NAME.findall(sentence))
    return len(new) >= enough or (bool(new) and (named or words.BROUGHT.search(sentence) is not None))


def _tells_a_fact(turn: Reading) -> bool:
    if not turn.task.facts:
        return False
    now = (*turn.history, Message(role="user", content=turn.text))
    points = (*turn.task.facts, *turn.task.outline)
    before = told(Dialogue(turn.task, 0, tuple(turn.history)), points)
    return bool(told(Dialogue(turn.task, 0, now), points) - before)


def _gives_the_task(turn: Reading) -> bool:
    return not turn.history and any(_repeats_the_task(turn, sentence) for sentence in turn.sentences)


def _takes_an_option(turn: Reading, sentence: str) -> bool:
    return bool(turn.history) and words.OPTION.search(sentence) is not None


def _thanks(_: Reading, sentence: str) -> bool:
    return reactions.THANK.search(sentence) is not None


def _leaves(turn: Reading) -> bool:
    return turn.stop is not None and turn.stop.is_terminal


def _leaves_satisfied(turn: Reading) -> bool:
    return turn.stop is StopReason.USER_SATISFIED


def _takes_leave(turn: Reading, sentence: str) -> bool:
    return bool(turn.history) and reactions.STOP.search(sentence) is not None


def _some(test: Callable[[Reading, str], bool]) -> Callable[[Reading], bool]:
    """Return a rule that holds if a sentence passes."""
    return lambda turn: any(test(turn, sentence) for sentence in turn.sentences)


def _free(test: Callable[[Reading], bool]) -> Callable[[Reading], bool]:
    """Return a rule that holds only where the task has no facts to tell."""
    return lambda turn: not turn.task.facts and test(turn)


@dataclass(frozen=True, slots=True)
class ActRule:
    """One row of the table: the turn has the act if the rule holds."""

    name: str
    act: Act
    says: str
    """The rule in words."""
    holds: Callable[[Reading], bool]


RULES: tuple[ActRule, ...] = (
    ActRule("first", Act.OPEN, "No message stands before it.", lambda turn: not turn.history),
    ActRule(
        "question", Act.ASK, "A sentence has the form of a question, or a question mark and answers none.", _some(_asks)
    ),
    ActRule(
        "order",
        Act.ASK,
        "A sentence begins with an order or holds a wish; a step that answers is none.",
        _some(_orders),
    ),
    ActRule("task", Act.ASK, "The first turn gives the task's own words.", _gives_the_task),
    ActRule("fact", Act.REVEAL, "It tells a fact or an outline point of the task (tasks with facts).", _tells_a_fact),
    ActRule(
        "statement", Act.REVEAL, "A sentence neither asks nor only reacts, and is not the task.", _free(_some(_tells))
    ),
    ActRule(
        "yes or no", Act.REVEAL, "It begins with yes or no after a question on the matter.", _free(_answers_yes_or_no)
    ),
    ActRule("own step", Act.REVEAL, "A question brings a step: is it x, should I x.", _free(_some(_asks_with_a_step))),
    ActRule(
        "content",
        Act.REVEAL,
        "A wish for a text brings names, points or many new words.",
        _free(_some(_wishes_with_content)),
    ),
    ActRule("option", Act.REVEAL, "It takes up one of several options by its number.", _free(_some(_takes_an_option))),
    ActRule(
        "confusion", Act.CONFUSED, "A sentence says so: I don't know, what do you mean, I'm lost.", _some(_confused)
    ),
    ActRule("cannot", Act.CONFUSED, "No, to whether they can.", _cannot),
    ActRule("agreement", Act.ACCEPT, "A sentence begins with agreement or approves.", _some(_accepts)),
    ActRule("satisfied", Act.ACCEPT, "The stop reason is that the user is satisfied.", _leaves_satisfied),
    ActRule("objection", Act.REJECT, "A sentence denies, blames, doubts or declines.", _some(_rejects)),
    ActRule("change", Act.CORRECT, "An order or wish changes a text, and there is a draft.", _some(_changes)),
    ActRule("should be", Act.CORRECT, "A sentence says how it should be instead.", _some(_should_be)),
    ActRule("thanks", Act.THANK, "A sentence thanks.", _some(_thanks)),
    ActRule("stop reason", Act.STOP, "The user ended the dialogue.", _leaves),
    ActRule("farewell", Act.STOP, "A later turn says goodbye, or that they are done or give up.", _some(_takes_leave)),
)
"""All rules; those of one act add up."""
