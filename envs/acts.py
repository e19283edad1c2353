"""MathChat in acts and numbers, for trainers that know neither text nor tokens (PPO, DQN and their like).

Both directions are functions of the public history alone, so what was learned in acts plays again in text:
``speak(act, messages)`` is the assistant's message, ``features(messages)`` the observation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from duologue.envs.math_chat import MathChatEnv
from duologue.errors import DuologueError
from duologue.types import Message

Features = NDArray[np.float32]

_NUMBER = re.compile(r"\d+")
_GUESS = 10
"""The middle of what two numbers from 2 to 9 can add up to."""
_MOST = 8.0
"""Counts are shown up to this one, divided by it."""


class AssistantAct(IntEnum):
    """What the assistant can do in a turn; made for sums of facts that are told when asked (level 1)."""

    ASK = 0
    """Ask for a fact."""
    ADD_UP = 1
    """Add up all numbers heard so far and answer."""
    ANSWER_LAST = 2
    """Answer with the last number heard, without computing."""
    GUESS = 3
    """Answer with a constant."""
    REMARK = 4
    """Say something that neither asks nor answers."""


FEATURES = ("replies", "numbers_known", "turns_with_facts", "last_reply_rejected", "last_turn_told_nothing")
"""Names of the observation's entries, each between 0 and 1."""


def speak(act: int, messages: Sequence[Message]) -> str:
    """Return the text of an act.

    Args:
        act: one of ``AssistantAct``.
        messages: the public history, ending with the user.

    Raises:
        DuologueError: if there is no such act.
    """
    numbers = _numbers(messages)
    if act == AssistantAct.ASK:
        return "What else do you know?" if numbers else "What do you know?"
    if act == AssistantAct.ADD_UP:
        return f"{' + '.join(map(str, numbers)) or 0} = {sum(numbers)}. Answer: {sum(numbers)}"
    if act == AssistantAct.ANSWER_LAST:
        return f"Answer: {numbers[-1] if numbers else 0}"
    if act == AssistantAct.GUESS:
        return f"Answer: {_GUESS}"
    if act == AssistantAct.REMARK:
        return "Let me think about that."
    raise DuologueError(
        f"There is no act {act!r}. Choose one of {', '.join(f'{a.value} ({a.name})' for a in AssistantAct)}."
    )


def features(messages: Sequence[Message]) -> Features:
    """Return what ``FEATURES`` names, shape (5,), for a public history.

    A reply with an answer after which the user still talks was rejected: there is no need to understand the rejection.
    """
    told = [_NUMBER.findall(text) for text in _facts(messages)]
    replies = [m["content"] for m in messages if m["role"] == "assistant"]
    counts = (len(replies), sum(map(len, told)), sum(map(bool, told)))
    rejected = bool(replies) and "Answer:" in replies[-1]
    flags = (rejected, bool(told) and not told[-1])
    return np.array([*(min(count / _MOST, 1.0) for count in counts), *flags], dtype=np.float32)


def _facts(messages: Sequence[Message]) -> list[str]:
    """Return what the user said after the opening, which holds no fact."""
    return [m["content"] for m in messages if m["role"] == "user"][1:]


def _numbers(messages: Sequence[Message]) -> list[int]:
    return [int(number) for text in _facts(messages) for number in _NUMBER.findall(text)]


class DialogueActs(gym.Wrapper[Features, np.int64, str, str], RecordConstructorArgs):
    """MathChat with ``Discrete`` actions (``AssistantAct``) and a ``Box`` of ``FEATURES``; ``info`` stays as it is.

    An episode that could not be scored ends with reward 0.0 and ``info["scored"]`` False, as inside.
    """

    def __init__(self, env: gym.Env[str, str]) -> None:
        """Wrap ``env``.

        Raises:
            DuologueError: if it is not MathChat.
        """
        if not isinstance(env.unwrapped, MathChatEnv):
            raise DuologueError(f"{env} is not MathChat, whose acts these are. Wrap gym.make('MathChat-v0').")
        RecordConstructorArgs.__init__(self)
        super().__init__(cast("gym.Env[Features, np.int64]", env))
        self.action_space = cast("spaces.Space[np.int64]", spaces.Discrete(len(AssistantAct)))
        self.observation_space = spaces.Box(0.0, 1.0, (len(FEATURES),), np.float32)
        self._messages: tuple[Message, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Features, dict[str, Any]]:
        """Start a dialogue; see ``DialogueEnv.reset``."""
        _, info = self.env.reset(seed=seed, options=options)
        self._messages = info["messages"]
        return features(self._messages), info

    def step(self, action: np.int64) -> tuple[Features, Any, bool, bool, dict[str, Any]]:
        """Say the text of ``action`` to the user; see ``DialogueEnv.step``."""
        text = speak(int(action), self._messages)
        _, reward, terminated, truncated, info = cast("gym.Env[str, str]", self.env).step(text)
        self._messages = info["messages"]
        return features(self._messages), reward, terminated, truncated, info
