"""Chat models behind any server that speaks OpenAI's ``/v1/chat/completions``: vLLM, SGLang, llama.cpp, a provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from duologue.engines.base import Sampling
from duologue.engines.http import HttpClient, Policy, RefusedError, base_url
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Message

_ADVICE = "Correct the request: the model's name, its context length, the sampling."


class OpenAIChat:
    """A ``ChatModel`` over HTTP. Conversations of one call are sent side by side; connections are kept and reused.

    Rate limits (429), server errors (5xx) and broken connections are tried again, a bounded number of times. The seed
    is sent (31 bits of it); whether it makes a sample repeatable is up to the server.

    Args:
        url: base address, such as ``http://localhost:8000/v1``; ``/v1`` is added to an address without a path.
        model: the model's name; None = the first that the server lists.
        api_key_env: environment variable with the key. The key itself is never an argument, shown or stored elsewhere.
        timeout: seconds that one request may take.
        concurrency: most requests at a time.
        retries: further attempts after the first.

    Raises:
        DuologueError: if the address is no plain URL or, without ``model``, if the server cannot say what it serves.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        timeout: float = 60,
        concurrency: int = 8,
        retries: int = 2,
    ) -> None:
        self._http = HttpClient(_base(url), Policy(timeout, concurrency, retries), api_key_env, _ADVICE)
        self.address = self._http.address
        self.close = self._http.close
        """Closes the connections; also happens when the object is dropped."""
        self.model = model if model is not None else self.models()[0]

    def __repr__(self) -> str:
        return f"OpenAIChat({self.address!r}, model={self.model!r})"

    @property
    def signature(self) -> str:
        """Return the model's name and the server's address."""
        return f"{self.model}@{self.address}"

    def chat(self, conversations: Sequence[Sequence[Message]], sampling: Sampling, seeds: Sequence[int]) -> list[str]:
        """Return the assistant's next message for each conversation, in order.

        Raises:
            DuologueError: if a request fails for good; the message says why and what to do.
        """
        bodies = [self._body(c, sampling, seed) for c, seed in zip(conversations, seeds, strict=True)]
        answers = self._http.run([self._http.ask("POST", "chat/completions", _always(body)) for body in bodies])
        return [self._content(answer) for answer in answers]

    def models(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            DuologueError: if it cannot be reached, or lists none.
        """
        listed: Any = self._http.one(self._http.ask("GET", "models"))
        names = [row["id"] for row in _rows(listed, "data") if isinstance(row.get("id"), str)]
        if not names:
            raise DuologueError(f"{self.address} lists no models. Name one: {self.address}#MODEL.")
        return names

    def _body(self, conversation: Sequence[Message], sampling: Sampling, seed: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [dict(message) for message in conversation],
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_new_tokens,
            "seed": seed % 2**31,
        }

    def _content(self, answer: Any) -> str:
        if isinstance(answer, RefusedError) and answer.status == httpx.codes.NOT_FOUND:
            raise DuologueError(f"{answer.said} {self._other_models()}") from None
        if isinstance(answer, DuologueError):
            raise answer
        choices = _rows(answer, "choices")
        message = choices[0].get("message") if choices else None
        content = message.get("content", 0) if isinstance(message, dict) else 0
        if content is not None and not isinstance(content, str):
            raise DuologueError(f"{self.address} sent no choices[0].message.content. Check that it serves chat models.")
        return content or ""

    def _other_models(self) -> str:
        answers: list[Any] = self._http.run([self._http.ask("GET", "models", retries=0)])
        names = [str(row["id"]) for row in _rows(answers[0], "data") if "id" in row]
        return did_you_mean(self.model, names) if names else "Check the URL and the model's name."


def _base(url: str) -> httpx.URL:
    base = base_url(url, "/v1", "http://localhost:8000/v1")
    return base.copy_with(path=base.path.removesuffix("/chat/completions") or "/v1")


def _always(body: dict[str, Any]) -> Any:
    return lambda attempt: body


def _rows(answer: Any, name: str) -> list[dict[str, Any]]:
    rows = answer.get(name) if isinstance(answer, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
