"""Engine contracts. An engine turns token ids into token ids and log-probabilities and knows nothing of dialogues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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
