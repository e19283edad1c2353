"""A conversation as the agent sees it, and the one function that lays it out as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duologue.types import Message, Span

if TYPE_CHECKING:
    from duologue.engines.chat import ChatFormat


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent says in one turn, with the tokens it sampled if it is a token policy."""

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    policy_version: int = 0
    error: str | None = None
    """Set if no reply could be produced; the episode ends unscored with this message."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """An opening history that ends with the user, then replies and user messages in turn."""

    opening: tuple[Message, ...]
    replies: tuple[Reply, ...] = ()
    users: tuple[str, ...] = ()
    """User messages after each reply: as many as replies when it is the agent's turn, one fewer at the end."""
    seed: int = 0
    """Seeds the agent's sampling."""

    def replied(self, reply: Reply) -> Conversation:
        """Return the conversation with one more reply."""
        return replace(self, replies=(*self.replies, reply))

    def answered(self, user: str) -> Conversation:
        """Return the conversation with the user's answer to the last reply."""
        return replace(self, users=(*self.users, user))

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the whole history as fresh messages."""
        turns = [Message(**m) for m in self.opening]
        for i, reply in enumerate(self.replies):
            turns.append(Message(role="assistant", content=reply.text))
            turns += [Message(role="user", content=user) for user in self.users[i : i + 1]]
        return tuple(turns)


@dataclass(slots=True)
class TokenRow:
    """A conversation as one row of tokens: prompt, then reply, user, reply, … Never re-rendered, only appended."""

    prompt_ids: list[int]
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    """1 = sampled by the policy. Same length as ``completion_ids``, as is ``logprobs``."""
    logprobs: list[float] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def add_sampled(self, reply: Reply) -> None:
        """Append what the policy sampled in one turn."""
        if len(reply.token_ids) != len(reply.logprobs):
            raise ValueError(f"A reply has {len(reply.token_ids)} tokens but {len(reply.logprobs)} log-probabilities.")
        start = len(self.completion_ids)
        self.completion_ids += reply.token_ids
        self.mask += [1] * len(reply.token_ids)
        self.logprobs += reply.logprobs
        self.spans.append(Span(start, len(self.completion_ids), reply.policy_version))

    def add_given(self, ids: Sequence[int]) -> None:
        """Append tokens that the policy read but did not sample."""
        self.completion_ids += ids
        self.mask += [0] * len(ids)
        self.logprobs += [0.0] * len(ids)

    @property
    def ids(self) -> list[int]:
        """Return all tokens, which is the prompt of the next turn while the conversation goes on."""
        return self.prompt_ids + self.completion_ids


def encode(conversation: Conversation, chat: ChatFormat) -> TokenRow:
    """Lay a conversation out as tokens.

    The prompt of turn t and the training row come from this one function, so they cannot disagree. A turn that was cut
    before its end-of-turn token gets one with mask 0 (the policy did not sample it).
    """
    row = TokenRow(chat.opening_ids(conversation.opening))
    for i, reply in enumerate(conversation.replies):
        row.add_sampled(reply)
        if not reply.token_ids or reply.token_ids[-1] not in chat.stop_ids:
            row.add_given([chat.end_of_turn_id])
        for user in conversation.users[i : i + 1]:
            row.add_given(chat.user_suffix_ids(user))
    return row
