"""Agents from short strings, for command lines and configuration files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from duologue.engines.base import Sampling
from duologue.engines.spec import is_engine, is_url, make_chat_model, make_engine, model_in
from duologue.errors import DuologueError, did_you_mean
from duologue.trainers.agents import Agent, ChatAgent, FunctionAgent, Limits, TokenAgent
from duologue.trainers.scripted_spec import PREFIX, make_scripted_agent

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def make_agent(spec: str, limits: Limits, temperature: float, system_prompt: str | None) -> Agent:
    """Return the agent that a spec names.

    Args:
        spec: the URL of an OpenAI-compatible server (``http://host:port/v1``, optionally with ``#MODEL``);
            ``sglang:http://host:port`` for the tokens of a SGLang server, with ``#MODEL`` for the tokenizer's folder or
            id, or for an adapter's folder, which the server then loads;
            ``module:callable`` for a function from a list of messages to a text, where the module is found as from
            ``python`` started in the working directory; ``scripted:hasty-math,haste=0.5`` and the like (see
            ``make_scripted_agent``); or what ``load_model`` takes: ``"default"``, a folder (with or
            without adapter), a Hugging Face id.
        limits: caps on tokens. A server knows only the one per turn, a function none.
        temperature: of sampling; 0 = greedy. Functions have none.
        system_prompt: put before the dialogue; None = none.

    Raises:
        DuologueError: if there is no such server, function or model, or a function is given a system prompt.
        MissingExtraError: for a local model without torch and transformers.
    """
    if is_url(spec):
        return ChatAgent(make_chat_model(spec), Sampling(limits.max_tokens_per_turn, temperature), system_prompt)
    if is_engine(spec):
        return _served_agent(spec, limits, temperature, system_prompt)
    if spec.startswith(PREFIX):
        return make_scripted_agent(_unprompted(spec, system_prompt))
    if not _FUNCTION.fullmatch(spec) or Path(spec).exists():
        return _token_agent(spec, limits, temperature, system_prompt)
    return _function_agent(_unprompted(spec, system_prompt))


def _unprompted(spec: str, system_prompt: str | None) -> str:
    if system_prompt is not None:
        raise DuologueError(f"The function {spec} gets no system prompt. Leave system_prompt out, and put it inside.")
    return spec


def _token_agent(name: str, limits: Limits, temperature: float, system_prompt: str | None) -> TokenAgent:
    from duologue.engines.models import load_model

    loaded = load_model(name)
    from duologue.engines.chat import ChatFormat
    from duologue.engines.hf import TransformersEngine

    chat = ChatFormat(loaded.tokenizer, system_prompt)
    pad = loaded.tokenizer.pad_token_id
    engine = TransformersEngine(loaded.model, pad if isinstance(pad, int) else chat.end_of_turn_id)
    return TokenAgent(engine, chat, limits, temperature=temperature, name=loaded.signature)


def _served_agent(spec: str, limits: Limits, temperature: float, system_prompt: str | None) -> TokenAgent:
    """Sample on a server; dialogues are laid out as tokens here, so that they are those of a local model."""
    from duologue.engines.models import load_tokenizer

    engine, model = make_engine(spec), model_in(spec)
    from duologue.engines.chat import ChatFormat

    chat = ChatFormat(load_tokenizer(model or engine.tokenizer_path), system_prompt)
    if model and (Path(model) / "adapter_config.json").is_file():
        engine.sync_adapter(model, 0)
    return TokenAgent(engine, chat, limits, temperature=temperature, name=engine.signature)


def _function_agent(spec: str) -> FunctionAgent:
    """Import the function; its signature carries a hash of its file, so that an edited agent is another agent."""
    module_name, _, path = spec.partition(":")
    module = _import(module_name, spec)
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise DuologueError(f"{module_name} has no {name!r} for {spec}. {did_you_mean(name, _callables(found))}")
        found = getattr(found, name)
    if not callable(found) or isinstance(found, type):
        raise DuologueError(
            f"{spec} is {_kind(found)}, not a function. Name a function from a list of messages to a text."
        )
    function: Callable[..., str] = found
    return FunctionAgent(function, f"{spec}{_hash_of(module)}")


def _import(name: str, spec: str) -> ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise DuologueError(
                f"There is no module {error.name!r} for the agent {spec!r}. Run in the folder that holds it, or "
                "install it; for a model give 'default', a folder or a Hugging Face id, for a server http://host:port/v1."
            ) from None
        raise DuologueError(f"The agent {spec} needs the module {error.name!r}. Install it.") from error
    except Exception as error:  # user code raises what it likes
        raise DuologueError(f"Importing the agent {spec} raised {error!r}. Fix {name}.") from error


def _callables(owner: object) -> list[str]:
    return [name for name, value in vars(owner).items() if callable(value) and not name.startswith("_")] or ["nothing"]


def _kind(found: object) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"


def _hash_of(module: ModuleType) -> str:
    file = Path(getattr(module, "__file__", None) or "")
    return f"@{sha256(file.read_bytes()).hexdigest()[:8]}" if file.is_file() else ""
