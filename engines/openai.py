"""Chat models behind any server that speaks OpenAI's ``/v1/chat/completions``: vLLM, SGLang, llama.cpp, a provider."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from duologue.engines.base import Sampling, SchemaReply
from duologue.engines.http import HttpClient, Policy, RefusedError, base_url
from duologue.engines.openai_dialect import blamed, only_thought, refusable, rows, with_schema, without, words_in
from duologue.engines.rows import RepliesError
from duologue.errors import DuologueError, did_you_mean
from duologue.types import Message

_ADVICE = "Correct the request: the model's name, its context length, the sampling."


class OpenAIChat:
    """A ``ChatModel`` over HTTP. Conversations of one call are sent side by side; connections are kept and reused.

    Rate limits (429), server errors (5xx) and broken connections are tried again, a bounded number of times. The seed
    is sent (31 bits of it); whether it makes a sample repeatable is up to the server. If the server refuses the seed, a
    schema, or the cap on tokens under its old name ``max_tokens``, and names it, it is asked without
    (``max_completion_tokens`` instead), and, once that has worked, never with it again. Another schema is tried.

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
        self._refused: set[str] = set()
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
            RepliesError: if a request fails for good, or a model spends all its tokens on thought; it says why and what
                to do, and holds the replies of the others.
        """
        return [reply.text for reply in self._replies(conversations, sampling, seeds, None)]

    def chat_to_schema(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        seeds: Sequence[int],
        schema: Mapping[str, Any],
    ) -> list[SchemaReply]:
        """Return the assistant's next message for each conversation, as JSON of this schema where the server does that.

        Args:
            conversations: as for ``chat``.
            sampling: as for ``chat``.
            seeds: as for ``chat``.
            schema: of an object; OpenAI wants all properties required and no others allowed.

        Raises:
            RepliesError: as for ``chat``.
        """
        return self._replies(conversations, sampling, seeds, schema)

    def models(self) -> list[str]:
        """Return the names of the models that the server lists.

        Raises:
            DuologueError: if it cannot be reached, or lists none.
        """
        listed: Any = self._http.one(self._http.ask("GET", "models"))
        names = [row["id"] for row in rows(listed, "data") if isinstance(row.get("id"), str)]
        if not names:
            raise DuologueError(f"{self.address} lists no models. Name one: {self.address}#MODEL.")
        return names

    def _replies(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        seeds: Sequence[int],
        schema: Mapping[str, Any] | None,
    ) -> list[SchemaReply]:
        bodies = [self._body(c, sampling, seed) for c, seed in zip(conversations, seeds, strict=True)]
        bodies = [with_schema(body, schema) for body in bodies] if schema is not None else bodies
        answers = self._http.run([self._ask(body) for body in bodies])
        replies = [self._reply(answer) for answer in answers]
        good = [reply for reply in replies if isinstance(reply, SchemaReply)]
        if len(good) < len(replies):
            raise RepliesError([r if isinstance(r, DuologueError) else r.text for r in replies])
        return good

    def _body(self, conversation: Sequence[Message], sampling: Sampling, seed: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [dict(message) for message in conversation],
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_new_tokens,
            "seed": seed % 2**31,
        }

    async def _ask(self, body: dict[str, Any]) -> tuple[Any, bool]:
        """Return the server's answer, and whether it took the schema. What it refuses is left out, one by one.

        A field counts as refused once a request went through without it.
        """
        asked = body
        left_out = [field for field in body if refusable(body, field) in self._refused]
        for field in left_out:
            body = without(body, field)
        while True:
            try:
                answer: Any = await self._http.ask("POST", "chat/completions", _always(body))
            except RefusedError as error:
                refused = blamed(error, body)
                if refused is None:
                    raise
                left_out.append(refused)
                body = without(body, refused)
            else:
                self._refused.update(refusable(asked, field) for field in left_out)
                return answer, "response_format" in body

    def _reply(self, answer: tuple[Any, bool] | DuologueError) -> SchemaReply | DuologueError:
        if isinstance(answer, DuologueError):
            return self._explained(answer) if isinstance(answer, RefusedError) else answer
        if only_thought(answer[0]):
            return DuologueError(
                f"{self.model} thought and then said nothing. Raise the cap on its tokens, or switch its reasoning off."
            )
        text = words_in(answer[0])
        if text is None:
            return DuologueError(
                f"{self.address} sent no choices[0].message.content. Check that it serves chat models."
            )
        return SchemaReply(text, answer[1])

    def _explained(self, error: RefusedError) -> DuologueError:
        """Return the error, or one that names the models that are served if this one is not."""
        unknown = error.status == httpx.codes.NOT_FOUND
        if not unknown and not _names(error.said.replace(self.address, ""), self.model):
            return error
        answers: list[Any] = self._http.run([self._http.ask("GET", "models", retries=0)])
        names = [str(row["id"]) for row in rows(answers[0], "data") if "id" in row]
        if names and self.model not in names:
            return DuologueError(f"{error.said if unknown else error} {did_you_mean(self.model, names)}")
        return DuologueError(f"{error.said} Check the URL and the model's name.") if unknown else error


def _base(url: str) -> httpx.URL:
    base = base_url(url, "/v1", "http://localhost:8000/v1")
    return base.copy_with(path=base.path.removesuffix("/chat/completions") or "/v1")


def _always(body: dict[str, Any]) -> Any:
    return lambda attempt: body


def _names(text: str, model: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(model)}(?![\w-])", text) is not None
