"""Engine contracts. An engine turns token ids into token ids and log-probabilities and knows nothing of dialogues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from duologue.types import Message


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. There is no top-p or top-k: both bias the policy-gradient ratio."""

    max_new_tokens: int = 256
    temperature: float = 1.0
    """0 = greedy. Log-probabilities are those of the temperature-scaled distribution (of the unscaled one if 0)."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled continuation. ``token_ids`` and ``logprobs`` have one length; a sampled end-of-turn is included."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]
    """``stop`` = the last token is one of ``stop_ids``; ``length`` = the cap cut it."""
    version: int = 0
    """Policy version of the weights that sampled it."""


class Engine(Protocol):
    """Where tokens come from."""

    @property
    def context_length(self) -> int:
        """Return how many tokens prompt and continuation may hold together."""
        ...

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, stop_ids: Sequence[int], seeds: Sequence[int]
    ) -> list[Completion]:
        """Continue each prompt, in order. ``seeds``: one per prompt; a row's sample does not depend on its batch."""
        ...


class ChatModel(Protocol):
    """Text-level access to a language model, by whatever engine."""

    @property
    def signature(self) -> str:
        """Return the model's name (and checkpoint hash where known), for signatures."""
        ...

    def chat(self, conversations: Sequence[Sequence[Message]], sampling: Sampling, seeds: Sequence[int]) -> list[str]:
        """Return the assistant's next message for each conversation, in order, without special tokens."""
        ...


class SchemaReply(NamedTuple):
    """A message that was asked for as JSON of a given form."""

    text: str
    """As the model wrote it; to be read with care, for some servers take a schema and do not heed it."""
    taken: bool
    """False if the schema was refused, so that the model wrote freely."""


@runtime_checkable
class SchemaChatModel(ChatModel, Protocol):
    """A chat model that may be able to hold its replies to a JSON schema. Others need not have this method."""

    def chat_to_schema(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        seeds: Sequence[int],
        schema: Mapping[str, Any],
    ) -> list[SchemaReply]:
        """Return the assistant's next message for each conversation, as JSON of this schema where that can be had."""
        ...
