"""Wrappers that show the agent the whole history instead of the latest user message."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from duologue.envs.dialogue_env import DialogueEnv
from duologue.envs.spaces import UnicodeText
from duologue.errors import DuologueError
from duologue.types import Message

Obs = TypeVar("Obs")
_LONGEST_ROLE = len("assistant")


class ChatTokenizer(Protocol):
    """What ``ChatTemplateObservation`` asks of a tokenizer; every Hugging Face tokenizer has it."""

    def apply_chat_template(
        self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool
    ) -> Any:
        """Return the conversation as text."""
        ...


class HistoryObservation(gym.Wrapper[Obs, str, str, str], Generic[Obs]):
    """Base of the wrappers here: the observation is made from ``info["messages"]``."""

    def __init__(self, env: gym.Env[str, str]) -> None:
        """Wrap ``env``.

        Raises:
            DuologueError: if there is no ``DialogueEnv`` inside.
        """
        if not isinstance(env.unwrapped, DialogueEnv):
            raise DuologueError(f"{env} is no DialogueEnv. Wrap MathChat-v0, MediumDocEditChat-v0 or one of your own.")
        super().__init__(cast("gym.Env[Obs, str]", env))
        parts = env.unwrapped.parts
        self.max_chars, self.max_messages = parts.dynamics.max_chars, parts.max_messages

    @abstractmethod
    def observe(self, messages: Sequence[Message]) -> Obs:
        """Return the observation for a history."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Start a dialogue; see ``DialogueEnv.reset``."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._history(info), info

    def step(self, action: str) -> tuple[Obs, Any, bool, bool, dict[str, Any]]:
        """Say ``action`` to the user; see ``DialogueEnv.step``."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._history(info), reward, terminated, truncated, info

    def _history(self, info: dict[str, Any]) -> Obs:
        """Observe copies, an over-long last reply cut to ``max_chars`` so that it stays in the space."""
        return self.observe([Message(role=m["role"], content=m["content"][: self.max_chars]) for m in info["messages"]])


class MessagesObservation(HistoryObservation[tuple[Message, ...]], RecordConstructorArgs):
    """Observe all messages so far, in the Hugging Face conversational format.

    The space has no fixed size, so ``AsyncVectorEnv`` needs ``shared_memory=False`` for it.
    """

    def __init__(self, env: gym.Env[str, str]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        message = spaces.Dict({"role": UnicodeText(_LONGEST_ROLE), "content": UnicodeText(self.max_chars)})
        self.observation_space = cast("spaces.Space[tuple[Message, ...]]", spaces.Sequence(message))

    def observe(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the messages as a tuple."""
        return tuple(messages)


class ChatTemplateObservation(HistoryObservation[str], RecordConstructorArgs):
    """Observe all messages so far as one text, the prompt that a chat template makes of them.

    For reading and for text-level agents. Text cannot tell a special token from a user who types its name, so training
    works on token ids instead.
    """

    def __init__(self, env: gym.Env[str, str], template: ChatTokenizer | str) -> None:
        """Wrap ``env``.

        Args:
            env: with a ``DialogueEnv`` inside.
            template: a tokenizer with a chat template, or a Jinja template as text.

        Raises:
            DuologueError: if ``template`` is neither, or cannot render a dialogue.
        """
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, template=template)
        super().__init__(env)
        self._render = _renderer(template)
        self.observation_space = UnicodeText(self._longest())

    def observe(self, messages: Sequence[Message]) -> str:
        """Return the rendered history, "" for none; templates need not cope with an empty one."""
        return self._render(messages) if messages else ""

    def _longest(self) -> int:
        """Return the length of the longest dialogue: what the template adds, and every message at its limit."""
        turns = (Message(role="assistant" if i % 2 else "user", content="x") for i in range(self.max_messages))
        try:
            overhead = len(self._render(list(turns)))
        except Exception as error:  # templates raise whatever they like
            raise DuologueError(f"The chat template cannot render a dialogue: {error}. Pass another.") from error
        return overhead + self.max_messages * self.max_chars


def _renderer(template: ChatTokenizer | str) -> Callable[[Sequence[Message]], str]:
    if isinstance(template, str):
        return _jinja_renderer(template)
    if not hasattr(template, "apply_chat_template"):
        raise DuologueError(f"{template!r} has no apply_chat_template. Pass a tokenizer, or a Jinja template as text.")
    tokenizer = template

    def render(messages: Sequence[Message]) -> str:
        plain = [{"role": m["role"], "content": m["content"]} for m in messages]
        return str(tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True))

    return render


def _jinja_renderer(source: str) -> Callable[[Sequence[Message]], str]:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    jinja.globals["raise_exception"] = raise_exception
    try:
        compiled = jinja.from_string(source)
    except TemplateError as error:
        raise DuologueError(f"The chat template is no valid Jinja: {error}. Correct it.") from error
    return lambda messages: compiled.render(messages=messages, add_generation_prompt=True)
