"""Chat models from short strings, for command lines and configuration files."""

from __future__ import annotations

from duologue.engines.base import ChatModel
from duologue.errors import DuologueError


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
