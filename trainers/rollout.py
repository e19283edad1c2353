"""Rollouts: an agent talks with the users of a vector environment until every dialogue has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from duologue.errors import DuologueError
from duologue.trainers.agents import Agent, TokenAgent
from duologue.trainers.conversation import Conversation, Reply, TokenRow
from duologue.types import Episode, Message, StopReason

OnEpisode = Callable[[int, Episode], None]


@dataclass(frozen=True, slots=True)
class Start:
    """What one episode begins with."""

    seed: int
    """Reset seed of the environment: it fixes the user and, unless ``task_id`` is given, the task."""
    agent_seed: int = 0
    """Seeds the agent's sampling. Members of a GRPO group share ``seed`` and differ in this."""
    task_id: str | None = None
    context_id: str | None = None
    """The logged context to begin with, in an environment that has some; None = drawn with the seed."""


@dataclass(slots=True)
class _Slot:
    """One dialogue in progress."""

    job: int
    start: Start
    conversation: Conversation
    task_id: str
    given: int = 0
    notes: dict[str, float] = field(default_factory=dict)
    acts: list[tuple[str, ...]] = field(default_factory=list)
    total: float = 0.0
    closing: str | None = None
    ended: tuple[StopReason, Mapping[str, Any]] | None = None

    def hear(self, text: str, reward: float, info: Mapping[str, Any]) -> None:
        """Take in one step's result."""
        self.total += reward
        for name, count in info.get("user_notes", {}).items():
            self.notes[name] = self.notes.get(name, 0.0) + float(count)
        if info.get("acts"):
            self.acts.append(tuple(info["acts"]))
        if text:
            self.closing = text


class Rollout:
    """Plays episodes in the slots of one native vector environment; a freed slot takes the next start at once."""

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any], agent: Agent, env_id: str | None = None) -> None:
        """Pair an environment with an agent.

        Args:
            env: a vector environment with ``cut`` and without autoreset, such as ``DialogueVectorEnv``.
            agent: who plays the assistant.
            env_id: name that episodes carry; the default is the environment's own.

        Raises:
            DuologueError: if the environment cannot end dialogues from outside.
        """
        if not hasattr(env, "cut"):
            raise DuologueError(
                f"{type(env).__name__} has no cut(mask, reason), so token limits could not end dialogues in it. "
                "Make it with gym.make_vec(env_id, num_envs=N, vectorization_mode='vector_entry_point')."
            )
        self.env: Any = env
        self.agent = agent
        self.env_id = env_id or str(getattr(env, "env_id", type(env).__name__))
        self._slots: list[_Slot | None] = [None] * env.num_envs
        self._seconds: dict[str, float] = {"agent": 0.0, "env": 0.0}

    def play(self, starts: Sequence[Start], on_episode: OnEpisode | None = None) -> list[Episode]:
        """Play one episode per start and return them in order.

        Args:
            starts: what each episode begins with; at least as many as the environment has slots.
            on_episode: called with (index, episode) as soon as an episode has ended.

        Raises:
            DuologueError: if there are fewer starts than slots.
        """
        if len(starts) < self.env.num_envs:
            raise DuologueError(f"{len(starts)} episodes for {self.env.num_envs} slots. Make fewer environments.")
        done: dict[int, Episode] = {}
        waiting = iter(enumerate(starts))
        self._seconds = {"agent": 0.0, "env": 0.0}
        self._fill(waiting)
        while any(self._slots):
            self._turn()
            for i, slot in enumerate(self._slots):
                if slot is not None and slot.ended:
                    done[slot.job] = self._episode(slot)
                    self._slots[i] = None
                    if on_episode:
                        on_episode(slot.job, done[slot.job])
            self._fill(waiting)
        return [done[i] for i in range(len(starts))]

    def _fill(self, waiting: Iterator[tuple[int, Start]]) -> None:
        free = [i for i, slot in enumerate(self._slots) if slot is None]
        taken = dict(zip(free, waiting, strict=False))
        if not taken:
            return
        mask = np.array([i in taken for i in range(len(self._slots))])
        starts = [taken[i][1] if i in taken else None for i in range(len(self._slots))]
        options: dict[str, Any] = {"reset_mask": mask, "task_id": [s.task_id if s else None for s in starts]}
        if any(s and s.context_id for s in starts):  # an option that environments without logs do not know
            options["context_id"] = [s.context_id if s else None for s in starts]
        with self._timed("env"):
            texts, infos = self.env.reset(seed=[s.seed if s else None for s in starts], options=options)
        for i, (job, start) in taken.items():
            self._slots[i] = self._opened(job, start, texts[i], _info_at(infos, i))

    def _opened(self, job: int, start: Start, text: str, info: Mapping[str, Any]) -> _Slot:
        history = tuple(info.get("messages", ()))
        opening = history if len(history) > 1 else (Message(role="user", content=text),)
        slot = _Slot(
            job,
            start,
            Conversation(opening, seed=start.agent_seed),
            task_id=str(info.get("task_id", f"seed-{start.seed}")),
            given=len(history) if "context_id" in info else 0,
        )
        slot.hear("", 0.0, info)
        if "stop_reason" in info:
            slot.ended = (StopReason(info["stop_reason"]), info)
        return slot

    def _turn(self) -> None:
        active = {i: slot for i, slot in enumerate(self._slots) if slot is not None and not slot.ended}
        self._cut({i: reason for i, slot in active.items() if (reason := self._overflow(slot))})
        active = {i: slot for i, slot in active.items() if not slot.ended}
        with self._timed("agent"):
            replies = dict(zip(active, self._act([s.conversation for s in active.values()]), strict=True))
        self._cut({i: StopReason.POLICY_ERROR for i, r in replies.items() if r.error}, replies)
        spoken = {i: r for i, r in replies.items() if not r.error}
        if spoken:
            for i, reply in spoken.items():
                active[i].conversation = active[i].conversation.replied(reply)
            actions = [spoken[i].text if i in spoken else "" for i in range(len(self._slots))]
            with self._timed("env"):
                step = self.env.step(actions)
            self._hear(spoken, step)

    def _overflow(self, slot: _Slot) -> StopReason | None:
        return self.agent.overflow(slot.conversation) if isinstance(self.agent, TokenAgent) else None

    def _act(self, conversations: list[Conversation]) -> list[Reply]:
        if not conversations:
            return []
        try:
            replies = self.agent.act(conversations)
        except Exception as error:  # one bad conversation must not take the others with it
            if len(conversations) > 1:
                return [self._act([c])[0] for c in conversations]
            return [Reply("", error=f"The agent {self.agent.signature} failed: {error!r}. Fix it and run again.")]
        if len(replies) != len(conversations):
            raise DuologueError(
                f"The agent {self.agent.signature} returned {len(replies)} replies for {len(conversations)} "
                "conversations. Return one for each, in order."
            )
        return [self._valid(reply) for reply in replies]

    def _valid(self, reply: object) -> Reply:
        if isinstance(reply, Reply) and isinstance(reply.text, str):
            return reply
        return Reply(
            "", error=f"The agent {self.agent.signature} replied {reply!r}. Return Replies whose text is a str."
        )

    def _cut(self, reasons: Mapping[int, StopReason], replies: Mapping[int, Reply] | None = None) -> None:
        for reason in set(reasons.values()):
            mask = np.array([reasons.get(i) is reason for i in range(len(self._slots))])
            with self._timed("env"):
                step = self.env.cut(mask, reason)
            self._hear({i: reply for i, reply in (replies or {}).items() if mask[i]} or _rows(mask), step)

    def _hear(self, rows: Mapping[int, Reply | None], step: tuple[Any, ...]) -> None:
        texts, rewards, terminated, truncated, infos = step
        for i, reply in rows.items():
            slot, info = self._slots[i], _info_at(infos, i)
            assert slot is not None
            slot.hear(texts[i] if terminated[i] else "", float(rewards[i]), info)
            if terminated[i] or truncated[i]:
                default = StopReason.ENV_TERMINATED if terminated[i] else StopReason.ENV_TRUNCATED
                error = reply.error if reply else None
                slot.ended = (
                    StopReason(info.get("stop_reason", default)),
                    {**info, **({"error": error} if error else {})},
                )
            else:
                slot.conversation = slot.conversation.answered(texts[i])

    def _episode(self, slot: _Slot) -> Episode:
        assert slot.ended is not None
        reason, info = slot.ended
        row = self._tokens(slot.conversation)
        closing = [Message(role="user", content=slot.closing)] if slot.closing else []
        return Episode(
            env_id=self.env_id,
            task_id=slot.task_id,
            seed=slot.start.seed,
            messages=(*slot.conversation.messages, *closing),
            stop_reason=reason,
            reward=slot.total if info.get("scored", not reason.is_error) else None,
            reward_parts=dict(info.get("reward_parts", {})),
            user_notes=slot.notes,
            user_acts=tuple(slot.acts),
            prompt_ids=tuple(row.prompt_ids),
            completion_ids=tuple(row.completion_ids),
            completion_mask=tuple(row.mask),
            logprobs=tuple(row.logprobs),
            spans=tuple(row.spans),
            given=slot.given,
            error=info.get("error"),
            seconds=dict(self._seconds),
        )

    def _tokens(self, conversation: Conversation) -> TokenRow:
        if not isinstance(self.agent, TokenAgent) or not conversation.opening[0]["content"]:
            return TokenRow([])
        return self.agent.layout(conversation)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._seconds[phase] += time.perf_counter() - start


def _rows(mask: np.ndarray[Any, Any]) -> dict[int, Reply | None]:
    return dict.fromkeys(map(int, np.flatnonzero(mask)))


def _info_at(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return slot i's own info from Gymnasium's dict of arrays with ``_key`` masks."""
    row: dict[str, Any] = {}
    for name, values in infos.items():
        present = infos.get(f"_{name}")
        if isinstance(values, Mapping):
            if present is None or present[i]:
                row[name] = _info_at(values, i)
        elif present is not None and present[i]:
            row[name] = values[i].item() if isinstance(values[i], np.generic) else values[i]
    return row
