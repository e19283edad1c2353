"""Agents: who plays the assistant. Anything that maps conversations to replies, batched."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from duologue.engines.base import ChatModel, Completion, Engine, Sampling
from duologue.engines.rows import RepliesError, RowsError
from duologue.errors import DuologueError
from duologue.trainers.conversation import Conversation, Reply, TokenRow, encode
from duologue.types import Message, StopReason

if TYPE_CHECKING:
    from duologue.engines.chat import ChatFormat


class Agent(Protocol):
    """Plays the assistant in many conversations at once. Keeps no state between calls."""

    @property
    def signature(self) -> str:
        """Return a short string that says who this is, for signatures."""
        ...

    def act(self, conversations: Sequence[Conversation]) -> list[Reply]:
        """Return the next reply in each conversation, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Hard caps on tokens. The cap on turns is the environment's (``max_turns``)."""

    max_tokens_per_turn: int = 256
    max_total_tokens: int = 2048
    """Prompt and all turns of both speakers."""


class TokenAgent:
    """A language model that keeps the exact tokens it sampled. Used for training and, unchanged, for evaluation."""

    def __init__(
        self, engine: Engine, chat: ChatFormat, limits: Limits, *, temperature: float = 1.0, name: str = "model"
    ) -> None:
        self.engine = engine
        self.chat = chat
        self.limits = limits
        self.temperature = temperature
        self.name = name

    @property
    def signature(self) -> str:
        """Return name, temperature and token limits."""
        limits = self.limits
        return f"{self.name}|t:{self.temperature:g}|turn:{limits.max_tokens_per_turn}|total:{limits.max_total_tokens}"

    def act(self, conversations: Sequence[Conversation]) -> list[Reply]:
        """Sample the next turn of each conversation; every turn of every conversation has its own random stream."""
        rows = [encode(c, self.chat).ids for c in conversations]
        sampling = Sampling(self.limits.max_tokens_per_turn, self.temperature)
        seeds = [hash_seed("turn", c.seed, len(c.replies)) for c in conversations]
        try:
            found: Sequence[Completion | DuologueError]
            found = self.engine.generate(rows, sampling, self.chat.stop_ids, seeds)
        except RowsError as error:  # what failed ends its own dialogue, unscored
            found = error.rows
        return [self._reply(row) for row in found]

    def _reply(self, row: Completion | DuologueError) -> Reply:
        if isinstance(row, DuologueError):
            return Reply("", error=str(row))
        return Reply(self.chat.decode(row.token_ids), row.token_ids, row.logprobs, row.version)

    def layout(self, conversation: Conversation) -> TokenRow:
        """Return the conversation as tokens, for training."""
        return encode(conversation, self.chat)

    def overflow(self, conversation: Conversation) -> StopReason | None:
        """Return why the conversation has no room for another full turn, or None if it has.

        A shorter cap for a nearly full dialogue would have to hold for its whole batch, and a sample must not depend on
        its batch.
        """
        length = len(encode(conversation, self.chat).ids) + self.limits.max_tokens_per_turn
        if length > self.engine.context_length:
            return StopReason.CONTEXT_OVERFLOW
        return StopReason.TOKEN_LIMIT if length > self.limits.max_total_tokens else None


class ChatAgent:
    """A chat model behind text (a server, for instance). Its token ids are unknown, so it cannot be trained here."""

    def __init__(self, model: ChatModel, sampling: Sampling, system_prompt: str | None = None) -> None:
        self.model = model
        self.sampling = sampling
        self.system = [Message(role="system", content=system_prompt)] if system_prompt is not None else []
        self.signature = f"{model.signature}|t:{sampling.temperature:g}|turn:{sampling.max_new_tokens}"

    def act(self, conversations: Sequence[Conversation]) -> list[Reply]:
        """Ask the model for all replies in one call."""
        seeds = [hash_seed("turn", c.seed, len(c.replies)) for c in conversations]
        asked = [[*self.system, *c.messages] for c in conversations]
        try:
            found: Sequence[str | DuologueError] = self.model.chat(asked, self.sampling, seeds)
        except RepliesError as error:  # what failed ends its own dialogue, unscored
            found = error.rows
        return [Reply("", error=str(row)) if isinstance(row, DuologueError) else Reply(row) for row in found]


class FunctionAgent:
    """Any callable from a message history to a text. Its exceptions end only their own episode, unscored."""

    def __init__(self, function: Callable[[list[Message]], object], name: str | None = None) -> None:
        self.function = function
        self.signature = name or _named_with_code(function)

    def act(self, conversations: Sequence[Conversation]) -> list[Reply]:
        """Call the function once per conversation."""
        return [self._reply(c) for c in conversations]

    def _reply(self, conversation: Conversation) -> Reply:
        try:
            text = self.function(list(conversation.messages))
        except Exception as error:  # an agent's failure is data
            return Reply("", error=f"The agent {self.signature} raised {error!r}. Fix it or catch this case in it.")
        if not isinstance(text, str):
            return Reply("", error=f"The agent {self.signature} returned {type(text).__name__}. Return a str.")
        return Reply(text)


def _named_with_code(function: object) -> str:
    """Return a callable's name with a hash of its source, so that an edited agent is another agent in signatures."""
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    try:
        source = inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):  # built in, or typed at a prompt
        return name
    return f"{name}@{sha256(source.encode()).hexdigest()[:8]}"


def hash_seed(stream: str, *parts: int) -> int:
    """Mix integers into one 63-bit seed, the same on every platform.

    Args:
        stream: what the seed is for. Streams of different names share no seeds, so that evaluation cannot meet the
            users of training because both began with seed 0.
        parts: any integers, such as a run's seed and an index.
    """
    import numpy as np

    words = [crc32(stream.encode()), len(parts), *(abs(part) for part in parts)]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)
