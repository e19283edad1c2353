"""Chat models from short strings, for command lines and configuration files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duologue.engines.base import ChatModel
from duologue.errors import DuologueError

if TYPE_CHECKING:
    from duologue.engines.sglang import SGLangEngine

_SGLANG = "sglang:"


def make_chat_model(spec: str) -> ChatModel:
    """Return the chat model that a spec names.

    Args:
        spec: the URL of an OpenAI-compatible server, ``http://host:port/v1`` or ``http://host:port/v1#MODEL``; or what
            ``load_model`` takes: ``"default"``, a folder, a Hugging Face id.

    Raises:
        DuologueError: if the spec is empty, the server cannot be reached, or there is no such model.
        MissingExtraError: for a local model without torch and transformers.
    """
    if not spec.strip():
        raise DuologueError("The model's name is empty. Give a URL, a folder, a Hugging Face id, or 'default'.")
    if is_url(spec):
        from duologue.engines.openai import OpenAIChat

        url, _, model = spec.partition("#")
        return OpenAIChat(url, model or None)
    from duologue.engines.models import load_model

    loaded = load_model(spec)
    from duologue.engines.local_chat import LocalChat

    return LocalChat(loaded)


def is_url(spec: str) -> bool:
    """Return True if a spec names a server, not a local model."""
    return spec.lower().startswith(("http://", "https://"))


def is_engine(spec: str) -> bool:
    """Return True if a spec names a server that takes and gives tokens."""
    return spec.startswith(_SGLANG)


def check_engine(spec: str) -> None:
    """Check a spec of an engine as far as that goes without asking its server.

    Raises:
        DuologueError: if it is none.
    """
    if not is_engine(spec) or not is_url(spec.removeprefix(_SGLANG)):
        raise DuologueError(f"{spec!r} is no engine. Write it like sglang:http://127.0.0.1:30000.")


def make_engine(spec: str) -> SGLangEngine:
    """Return the engine that a spec names.

    Args:
        spec: ``sglang:http://host:port``; what follows a ``#`` is left to the caller (see ``model_in``).

    Raises:
        DuologueError: if the spec is none, or the server cannot be used.
    """
    check_engine(spec)
    from duologue.engines.sglang import SGLangEngine

    return SGLangEngine(spec.removeprefix(_SGLANG).partition("#")[0])


def model_in(spec: str) -> str | None:
    """Return what a spec names after its ``#``: a folder or Hugging Face id; None if nothing."""
    return spec.partition("#")[2] or None
