"""A user turn as the rules of dialogue acts read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from duologue.analysis.acts import patterns as words
from duologue.simulators._text import content_words, numbers, question_in
from duologue.simulators.leaks import LONGEST_ANSWER
from duologue.types import Message, StopReason, Task

DRAFT_WORDS = 50
"""An assistant message of so many words is taken for a draft where the task wants a document."""
_SENTENCE = re.compile(r"[^.?!\n]+(?:\.(?=\w)[^.?!\n]*)*[.?!]*")


@dataclass(frozen=True)
class Reading:
    """A user turn with all that the rules look at, each worked out once. Arguments as for ``label_acts``."""

    task: Task
    history: Sequence[Message]
    text: str
    stop: StopReason | None

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences that say something."""
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
        """Whether a text is to come of the dialogue: the reference is one."""
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
