"""Chat models behind any server that speaks OpenAI's ``/v1/chat/completions``: vLLM, SGLang, llama.cpp, a provider."""

from __future__ import annotations

import os
import random
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from duologue.engines.base import Sampling
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Message

_PAUSE = 0.5
_MOST_QUOTED = 200


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
        if concurrency < 1 or retries < 0 or timeout <= 0:
            raise DuologueError("OpenAIChat needs concurrency >= 1, retries >= 0 and timeout > 0. Correct these.")
        base = _base(url)
        self.address = str(base)
        self.api_key_env = api_key_env
        self.concurrency = concurrency
        self.retries = retries
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._client = httpx.Client(base_url=base, timeout=timeout, limits=limits)
        self.close = weakref.finalize(self, self._client.close)
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
        with ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(self._complete, bodies))

    def models(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            DuologueError: if it cannot be reached, or lists none.
        """
        listed = self._request("GET", "models")
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

    def _complete(self, body: Mapping[str, Any]) -> str:
        choices = _rows(self._request("POST", "chat/completions", body), "choices")
        message = choices[0].get("message") if choices else None
        content = message.get("content", 0) if isinstance(message, dict) else 0
        if content is not None and not isinstance(content, str):
            raise DuologueError(f"{self.address} sent no choices[0].message.content. Check that it serves chat models.")
        return content or ""

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        answer = self._attempt(method, path, body)
        for attempt in range(self.retries):
            if isinstance(answer, httpx.Response) and not _is_passing(answer.status_code):
                break
            _pause(_PAUSE * 2**attempt * random.Random().uniform(0.5, 1.5))  # fresh, so that forked copies spread too
            answer = self._attempt(method, path, body)
        if isinstance(answer, httpx.HTTPError):
            raise DuologueError(self._unreachable(answer)) from None
        return self._json(answer)

    def _attempt(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response | httpx.HTTPError:
        # The key is read for each request and lives in no attribute, so no repr or pickle can show it.
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise DuologueError(f"{self.api_key_env} has characters that no key can have. Set it again.")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            return self._client.request(method, path, json=body, headers=headers)
        except httpx.HTTPError as error:
            return error

    def _json(self, response: httpx.Response) -> Any:
        if response.status_code != httpx.codes.OK:
            raise DuologueError(self._refused(response))
        try:
            return response.json()
        except ValueError:
            said = self._quote(response.text)
            raise DuologueError(
                f"{self.address} sent no JSON but {said}. Check that the URL is the API's base, such as http://host:8000/v1."
            ) from None

    def _unreachable(self, error: httpx.HTTPError) -> str:
        tries = f"after {self.retries + 1} attempts"
        if isinstance(error, httpx.TimeoutException):
            return f"{self.address} did not answer in time {tries}. Raise timeout, or lower concurrency."
        return f"{self.address} cannot be reached {tries} ({type(error).__name__}). Start the server, or check the URL."

    def _refused(self, response: httpx.Response) -> str:
        said = f"{self.address} answered {response.status_code}: {self._quote(_message(response))}."
        if response.status_code in (401, 403):
            return f"{said} Put a valid key into the environment variable {self.api_key_env}."
        if response.status_code == httpx.codes.NOT_FOUND:
            return f"{said} {self._other_models()}"
        if _is_passing(response.status_code):
            return f"{said} It was tried {self.retries + 1} times: wait, or lower concurrency."
        return f"{said} Correct the request: the model's name, its context length, the sampling."

    def _other_models(self) -> str:
        answer = self._attempt("GET", "models", None)
        try:
            rows = _rows(answer.json(), "data") if isinstance(answer, httpx.Response) else []
        except ValueError:
            rows = []
        names = [str(row["id"]) for row in rows if "id" in row]
        return did_you_mean(getattr(self, "model", ""), names) if names else "Check the URL and the model's name."

    def _quote(self, text: str) -> str:
        """Shorten what a server said, without the key that some servers repeat."""
        key = os.environ.get(self.api_key_env, "").strip()
        text = " ".join(text.split())
        return repr((text.replace(key, "[key]") if key else text)[:_MOST_QUOTED])


def _base(url: str) -> httpx.URL:
    try:
        base = httpx.URL(url.strip())
    except (httpx.InvalidURL, TypeError):
        base = httpx.URL()
    if base.scheme not in ("http", "https") or not base.host:
        raise DuologueError("The server's address is no URL. Write it like http://localhost:8000/v1.")
    if base.userinfo or base.query:
        raise DuologueError(
            "The server's URL holds credentials or a query. Leave them out; keys come from the environment."
        )
    path = base.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return base.copy_with(path=path, fragment=None)


def _is_passing(status: int) -> bool:
    """Return True for a failure that may pass by itself."""
    return status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR


def _rows(answer: Any, name: str) -> list[dict[str, Any]]:
    rows = answer.get(name) if isinstance(answer, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _message(response: httpx.Response) -> str:
    """Return what the server gives as the reason, which is {"error": {"message": …}} by custom."""
    try:
        error = response.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return response.text


def _pause(seconds: float) -> None:
    time.sleep(seconds)
