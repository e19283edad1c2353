"""The words that every part of duologue shares, one meaning each. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypedDict

Role = Literal["system", "user", "assistant"]


class Message(TypedDict):
    """One message in the Hugging Face conversational format."""

    role: Role
    content: str


class StopReason(StrEnum):
    """Why a dialogue ended. ``reason.sentence`` says it in words."""

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> StopReason:
        """Make a member that carries its sentence."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    USER_SATISFIED = "user_satisfied", "The user got what they wanted and ended the dialogue."
    USER_GAVE_UP = "user_gave_up", "The user lost patience and ended the dialogue."
    TURN_LIMIT = "turn_limit", "The assistant used all the turns that the environment allows (max_turns)."
    MESSAGE_LIMIT = "message_limit", "The assistant wrote a message longer than the environment allows (max_chars)."
    TOKEN_LIMIT = "token_limit", "The dialogue used all the tokens that the rollout allows (max_total_tokens)."
    CONTEXT_OVERFLOW = "context_overflow", "The dialogue no longer fits the model's context window."
    POLICY_ERROR = "policy_error", "The assistant failed to produce a reply; the dialogue is not scored."
    SIMULATOR_ERROR = "simulator_error", "The user simulator failed twice; the dialogue is not scored."
    ENV_TERMINATED = "env_terminated", "The environment terminated the episode and gave no reason."
    ENV_TRUNCATED = "env_truncated", "The environment truncated the episode and gave no reason."

    @property
    def is_terminal(self) -> bool:
        """True if the user (or the environment) ended it: Gymnasium's ``terminated``; else a limit did."""
        return self in (StopReason.USER_SATISFIED, StopReason.USER_GAVE_UP, StopReason.ENV_TERMINATED)

    @property
    def is_error(self) -> bool:
        """True if something broke. Such a dialogue is not scored, which is not the same as a score of 0."""
        return self in (StopReason.POLICY_ERROR, StopReason.SIMULATOR_ERROR)


class Act(StrEnum):
    """Dialogue acts of a user turn."""

    OPEN = "open"
    ASK = "ask"
    REVEAL = "reveal"
    CONFUSED = "confused"
    ACCEPT = "accept"
    REJECT = "reject"
    CORRECT = "correct"
    THANK = "thank"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a simulator returns for one dialogue."""

    text: str
    """What the user says; may be empty when the user just leaves."""
    stop: StopReason | None = None
    """Set if the user ends the dialogue with this turn. Never a marker inside ``text``."""
    acts: tuple[Act, ...] = ()
    """Dialogue acts, if the simulator knows them."""
    notes: Mapping[str, float] = field(default_factory=dict)
    """Diagnostics as counts (1.0 = it happened), e.g. ``{"leak": 1.0}``; summed over turns in the episode."""


@dataclass(frozen=True, slots=True)
class Task:
    """One problem or document. Only ``instruction`` is public; the rest reaches the simulator and the reward alone."""

    task_id: str
    """Stable identifier."""
    instruction: str
    """What the user will openly bring: the question without the withheld facts, or the topic of the document."""
    reference: str
    """Hidden: the gold answer (MathChat) or the goal document (MediumDocEditChat)."""
    solution: str = ""
    """Hidden: a worked solution, for users that hold the oracle context."""
    facts: tuple[str, ...] = ()
    """Hidden: what the user knows and tells when asked, each a sentence of its own."""
    outline: tuple[str, ...] = ()
    """Hidden: the points, in order, that a document should make."""
    metadata: Mapping[str, str | int | float] = field(default_factory=dict)
    """Level, source, split and the like. Never shown to the agent."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Task:
        """Build a task from a JSON object with this class's field names."""
        row = dict(row)
        return cls(**{**row, "facts": tuple(row.get("facts", ())), "outline": tuple(row.get("outline", ()))})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with this class's field names."""
        return {
            "task_id": self.task_id,
            "instruction": self.instruction,
            "reference": self.reference,
            "solution": self.solution,
            "facts": list(self.facts),
            "outline": list(self.outline),
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A task, a seed, the messages so far (user first, no system message), and why it ended once it has."""

    task: Task
    seed: int
    """Seeds the user: a scripted one draws its persona from it, an LLM one samples with it."""
    messages: tuple[Message, ...] = ()
    stop: StopReason | None = None
    given: int = 0
    """How many of the first messages were given (a logged history) instead of said here: read, but not scored."""

    @property
    def own(self) -> Dialogue:
        """Return what is scored: the dialogue from the last message that was given on; all of it if none was."""
        start = max(0, self.given - 1)
        return replace(self, messages=self.messages[start:], given=self.given - start)

    def said_by(self, role: Role) -> tuple[str, ...]:
        """Return the texts of one speaker, in order."""
        return tuple(m["content"] for m in self.messages if m["role"] == role)

    def then(self, role: Role, content: str) -> Dialogue:
        """Return the dialogue with one more message."""
        return replace(self, messages=(*self.messages, Message(role=role, content=content)))

    def ended(self, stop: StopReason) -> Dialogue:
        """Return the dialogue, ended for this reason."""
        return replace(self, stop=stop)


@dataclass(frozen=True, slots=True)
class Span:
    """One assistant turn inside an episode's tokens: ``completion_ids[start:end]`` were sampled by the policy."""

    start: int
    end: int
    policy_version: int = 0
    """Number of optimiser steps that the sampling weights had seen."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished dialogue and, when the agent is a token policy, exactly the tokens that it read and sampled.

    ``completion_ids``, ``completion_mask`` and ``logprobs`` have one length C: 1 marks tokens that the policy sampled,
    0 what came from the user or the chat template (log-probability 0.0 there). One JSONL line each.
    """

    env_id: str
    task_id: str
    seed: int
    messages: tuple[Message, ...]
    stop_reason: StopReason
    reward: float | None
    """None = not scored (an error), which is not 0."""
    reward_parts: Mapping[str, float | None] = field(default_factory=dict)
    user_notes: Mapping[str, float] = field(default_factory=dict)
    """The simulator's notes, summed over its turns."""
    user_acts: tuple[tuple[str, ...], ...] = ()
    """Acts of each user turn, where the simulator gives them."""
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    completion_mask: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    spans: tuple[Span, ...] = ()
    given: int = 0
    """How many of the first messages were given (a logged history) instead of said in this episode."""
    error: str | None = None
    """What broke and how to fix it, for error stop reasons."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall-clock seconds of the rollout that this episode was part of, by phase."""

    def __post_init__(self) -> None:
        """Refuse token fields of different lengths.

        Raises:
            ValueError: if ids, mask and log-probabilities are not aligned.
        """
        lengths = {len(self.completion_ids), len(self.completion_mask), len(self.logprobs)}
        if len(lengths) != 1:
            raise ValueError(f"completion_ids, completion_mask and logprobs must be of one length, got {lengths}.")

    @property
    def played(self) -> tuple[Message, ...]:
        """Return the messages of this episode, without the history that was given."""
        return self.messages[self.given :]

    @property
    def n_turns(self) -> int:
        """Number of assistant messages in this episode."""
        return sum(m["role"] == "assistant" for m in self.played)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; ``Episode.from_json`` reads it back."""
        return {**asdict(self), "stop_reason": self.stop_reason.value}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Episode:
        """Build an episode from ``to_json``'s object."""
        lists = {name: tuple(row.get(name, ())) for name in _TUPLES}
        spans = tuple(Span(**span) for span in row.get("spans", ()))
        acts = tuple(tuple(turn) for turn in row.get("user_acts", ()))
        reason = StopReason(row["stop_reason"])
        known = {name: row[name] for name in cls.__dataclass_fields__ if name in row}  # logs may add columns
        return cls(**{**known, **lists, "spans": spans, "user_acts": acts, "stop_reason": reason})


_TUPLES = ("messages", "prompt_ids", "completion_ids", "completion_mask", "logprobs")


def alternates(messages: Sequence[Message]) -> bool:
    """Return True if the messages start with the user and then take turns."""
    return all(m["role"] == ("user", "assistant")[i % 2] for i, m in enumerate(messages))
