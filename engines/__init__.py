"""Engines: where tokens and texts come from. Names load on first use; torch only with those that need it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duologue.engines.base import ChatModel, Completion, Engine, Sampling, SchemaChatModel, SchemaReply
    from duologue.engines.chat import ChatFormat
    from duologue.engines.hf import TransformersEngine
    from duologue.engines.local_chat import LocalChat
    from duologue.engines.models import LoadedModel, load_model
    from duologue.engines.openai import OpenAIChat
    from duologue.engines.rows import RepliesError, RowsError
    from duologue.engines.sglang import SGLangEngine
    from duologue.engines.spec import make_chat_model

_HOMES = {
    "ChatFormat": "chat",
    "ChatModel": "base",
    "Completion": "base",
    "Engine": "base",
    "LoadedModel": "models",
    "LocalChat": "local_chat",
    "OpenAIChat": "openai",
    "RepliesError": "rows",
    "RowsError": "rows",
    "SGLangEngine": "sglang",
    "Sampling": "base",
    "SchemaChatModel": "base",
    "SchemaReply": "base",
    "TransformersEngine": "hf",
    "load_model": "models",
    "make_chat_model": "spec",
}

__all__ = [
    "ChatFormat",
    "ChatModel",
    "Completion",
    "Engine",
    "LoadedModel",
    "LocalChat",
    "OpenAIChat",
    "RepliesError",
    "RowsError",
    "SGLangEngine",
    "Sampling",
    "SchemaChatModel",
    "SchemaReply",
    "TransformersEngine",
    "load_model",
    "make_chat_model",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
