"""What a user turn does, told by fixed rules (see ``RULES``); docs/fidelity.md says how well they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from duologue.analysis.fidelity import act_patterns as words
from duologue.simulators._text import content_words, numbers, question_in, told
from duologue.simulators.leaks import LONGEST_ANSWER
from duologue.types import Act, Dialogue, Message, StopReason, Task

DRAFT_WORDS = 50
"""An assistant message of so many words is taken for a draft where the task wants a document."""
NEW_WORDS = 6
"""Content words not heard before from which a wish brings content of its own."""
NEW_WORDS_AT_FIRST = 4
"""The same for the first turn, set against the task's public part alone."""
_SENTENCE = re.compile(r"[^.?!\n]+(?:\.(?=\w)[^.?!\n]*)*[.?!]*")


@dataclass(frozen=True)
class _Turn:
    """A user turn with all that the rules look at, each worked out once."""

    task: Task
    history: Sequence[Message]
    text: str
    stop: StopReason | None

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        text = self.text.replace("\u2019", "'")
        return tuple(s.strip() for s in _SENTENCE.findall(text) if words.LEFTOVER.search(s) or "?" in s)

    @cached_property
    def reply(self) -> str:
        """The assistant's last message, "" before the first."""
        return next((m["content"] for m in reversed(self.history) if m["role"] == "assistant"), "")

    @cached_property
    def last_question(self) -> str:
        """What the assistant asked last, "" if it asked nothing."""
        asked = [s for line in self.reply.splitlines() for s in _SENTENCE.findall(line) if question_in(s)]
        return next((s for s in reversed(asked) if not words.CLOSING.search(s)), "")

    @cached_property
    def question(self) -> str:
        """The same, but an offer or a question after understanding does not count."""
        return "" if words.CHECK.search(self.last_question) else self.last_question

    @cached_property
    def wants_document(self) -> bool:
        return len(self.task.reference.split()) > LONGEST_ANSWER

    @cached_property
    def drafted(self) -> bool:
        """Whether there is a draft to change."""
        replies = (m["content"] for m in self.history if m["role"] == "assistant")
        return self.wants_document and any(len(reply.split()) >= DRAFT_WORDS for reply in replies)

    @cached_property
    def heard(self) -> frozenset[str]:
        """The content words of the task's public part and of the messages before."""
        return content_words(" \n ".join([self.task.instruction, *(m["content"] for m in self.history)]))

    def brings(self, sentence: str) -> frozenset[str]:
        """Return the content words of a sentence that were not heard before."""
        return content_words(sentence) - self.heard - words.FORM_WORDS

    def brings_number(self, sentence: str) -> bool:
        """Return True if a sentence holds a number that was not heard before."""
        before = " \n ".join([self.task.instruction, *(m["content"] for m in self.history)])
        return not numbers(sentence) <= numbers(before)

    @cached_property
    def poses(self) -> bool:
        """Whether the turn poses a problem: its premises tell nothing about the user."""
        return any(words.PREMISE.search(sentence) for sentence in self.sentences)


def label_acts(task: Task, history: Sequence[Message], text: str, stop: StopReason | None = None) -> frozenset[Act]:
    """Return the dialogue acts of a user turn, told by ``RULES``; none for small talk.

    Args:
        task: what the dialogue is about. With ``facts``, a turn reveals if it tells one; without, if it brings content.
        history: the messages before the turn; empty = it opens the dialogue.
        text: what the user says.
        stop: set if the user ends the dialogue with this turn.
    """
    turn = _Turn(task, history, text, stop)
    return frozenset(rule.act for rule in RULES if rule.holds(turn))


@dataclass(frozen=True, slots=True)
class ActRule:
    """One row of the table: the act is there if the rule holds. Rules of one act add up."""

    name: str
    act: Act
    says: str
    """The rule in words."""
    holds: Callable[[_Turn], bool]


def _asks(turn: _Turn, sentence: str) -> bool:
    """A question; a bare answer with a question mark is none where a question was put."""
    if sentence.rstrip("\")' ").endswith("?"):
        return bool(words.QUESTION_FORM.search(sentence)) or not turn.question
    return words.OPEN_QUESTION.search(sentence) is not None


def _orders(turn: _Turn, sentence: str) -> bool:
    """An order or a wish; a verb in front answers, where a question was put that no text is to come of."""
    if words.REQUEST.search(sentence) or (turn.wants_document and words.WISH_FOR_TEXT.search(sentence)):
        return True
    return words.VERB_FIRST.search(sentence) is not None and (turn.wants_document or not turn.question)


def _repeats_the_task(turn: _Turn, sentence: str) -> bool:
    said = content_words(sentence)
    return len(said) > 4 and len(said & content_words(turn.task.instruction)) >= 0.8 * len(said)


def _changes(turn: _Turn, sentence: str) -> bool:
    wanted = _orders(turn, sentence) or _asks(turn, sentence)
    return turn.drafted and wanted and bool(words.CHANGE.search(sentence)) and not words.NEW_PIECE.search(sentence)


def _should_be(turn: _Turn, sentence: str) -> bool:
    return bool(turn.history) and not turn.question and bool(words.SHOULD_BE.search(sentence))


def _about_the_reply(turn: _Turn, sentence: str) -> bool:
    """Whether a sentence can be a reaction: one with many new words is rather content of a text."""
    return bool(turn.history) and len(turn.brings(sentence)) < NEW_WORDS + 2


def _confused(turn: _Turn, sentence: str) -> bool:
    if turn.history and not _about_the_reply(turn, sentence):
        return False
    return bool(words.CONFUSED.search(sentence)) and not words.SELF_SURE.search(sentence)


def _cannot(turn: _Turn) -> bool:
    asked = turn.last_question
    return bool(words.CAN_YOU.search(asked) and words.BARE_NO.search(turn.text))


def _accepts(turn: _Turn, sentence: str) -> bool:
    if not _about_the_reply(turn, sentence):
        return not turn.history and words.BARE_YES.fullmatch(turn.text) is not None
    if words.NOT_ACCEPT.search(sentence) or _answers_yes_or_no(turn):
        return False
    clauses = re.split(r"[,;]|\bbut\b", sentence)
    stated = clauses[:-1] if sentence.endswith("?") else clauses  # what a question asks is not approved
    return bool(words.AGREES.search(sentence)) or any(map(words.APPROVES.search, stated))


def _answers_yes_or_no(turn: _Turn) -> bool:
    """Whether the turn says "yes" or "no" to a question on the matter."""
    asked = turn.question and words.YES_OR_NO.search(turn.question) and not words.CAN_YOU.search(turn.question)
    return bool(asked) and re.match(r"\W*(?:yes|no|yeah|yep|nope)\b", turn.text, re.IGNORECASE) is not None


def _rejects(turn: _Turn, sentence: str) -> bool:
    if not _about_the_reply(turn, sentence) or _answers_yes_or_no(turn) or _cannot(turn):
        return False
    return words.REJECT.search(sentence) is not None


def _reacts(turn: _Turn, sentence: str) -> bool:
    """Whether a sentence only answers to what was said, and tells nothing."""
    if words.SMALL_TALK.search(sentence) or words.THANK.search(sentence) or words.STOP.search(sentence):
        return True
    if _confused(turn, sentence) or (turn.history and words.OPINION.search(sentence)):
        return True
    reaction = _accepts(turn, sentence) or _rejects(turn, sentence)
    return reaction and len(turn.brings(sentence)) < NEW_WORDS / 2 and not turn.brings_number(sentence)


def _tells(turn: _Turn, sentence: str) -> bool:
    """Whether a plain sentence brings something."""
    if _asks(turn, sentence) or _orders(turn, sentence) or _reacts(turn, sentence):
        return False
    if turn.poses or _repeats_the_task(turn, sentence) or _cannot(turn):
        return False
    return words.LEFTOVER.search(sentence) is not None


def _asks_with_a_step(turn: _Turn, sentence: str) -> bool:
    return not turn.wants_document and _asks(turn, sentence) and bool(words.OWN_STEP.search(sentence))


def _wishes_with_content(turn: _Turn, sentence: str) -> bool:
    if not (_orders(turn, sentence) or _asks(turn, sentence)) or not turn.wants_document:
        return False
    new = turn.brings(sentence)
    enough = NEW_WORDS if turn.history else NEW_WORDS_AT_FIRST
    named = any(content_words(name) <= new for name in words.NAME.findall(sentence))
    return len(new) >= enough or (bool(new) and (named or words.BROUGHT.search(sentence) is not None))


def _tells_a_fact(turn: _Turn) -> bool:
    now = (*turn.history, Message(role="user", content=turn.text))
    points = (*turn.task.facts, *turn.task.outline)
    before = told(Dialogue(turn.task, 0, tuple(turn.history)), points)
    return bool(told(Dialogue(turn.task, 0, now), points) - before)


def _some(test: Callable[[_Turn, str], object]) -> Callable[[_Turn], bool]:
    """Return a rule that holds if a sentence passes."""
    return lambda turn: any(test(turn, sentence) for sentence in turn.sentences)


def _free(test: Callable[[_Turn], bool]) -> Callable[[_Turn], bool]:
    """Return a rule that holds only where the task has no facts to tell."""
    return lambda turn: not turn.task.facts and test(turn)


RULES: tuple[ActRule, ...] = (
    ActRule("first", Act.OPEN, "no message stands before it", lambda turn: not turn.history),
    ActRule("question", Act.ASK, "a sentence asks", _some(_asks)),
    ActRule("order", Act.ASK, "a sentence wants something done", _some(_orders)),
    ActRule("task", Act.ASK, "first", lambda t: not t.history and any(_repeats_the_task(t, s) for s in t.sentences)),
    ActRule("fact", Act.REVEAL, "it tells one", lambda turn: bool(turn.task.facts) and _tells_a_fact(turn)),
    ActRule("statement", Act.REVEAL, "a sentence tells", _free(_some(_tells))),
    ActRule("yes or no", Act.REVEAL, "it answers", _free(_answers_yes_or_no)),
    ActRule("own step", Act.REVEAL, "a question brings a step", _free(_some(_asks_with_a_step))),
    ActRule("wish with content", Act.REVEAL, "a wish brings content", _free(_some(_wishes_with_content))),
    ActRule("option", Act.REVEAL, "takes up", _free(_some(lambda turn, s: turn.history and words.OPTION.search(s)))),
    ActRule("confusion", Act.CONFUSED, "says so", _some(_confused)),
    ActRule("cannot", Act.CONFUSED, "says so", _cannot),
    ActRule("agreement", Act.ACCEPT, "agrees", _some(_accepts)),
    ActRule("objection", Act.REJECT, "objects", _some(_rejects)),
    ActRule("change", Act.CORRECT, "changes the draft", _some(_changes)),
    ActRule("should be", Act.CORRECT, "other", _some(_should_be)),
    ActRule("thanks", Act.THANK, "thanks", _some(lambda _, s: words.THANK.search(s))),
    ActRule("stop reason", Act.STOP, "x", lambda turn: turn.stop is not None and turn.stop.is_terminal),
    ActRule("farewell", Act.STOP, "x", _some(lambda turn, s: turn.history and words.STOP.search(s))),
)
"""All rules."""
