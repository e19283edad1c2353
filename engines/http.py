"""HTTP for engines behind servers: many requests in flight, bounded retries, keys that nobody sees.

All clients of a process share one event loop in a background thread, so that callers stay synchronous and connections
are kept between calls.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from duologue.errors import DuologueError

T = TypeVar("T")
Body = Callable[[int], Mapping[str, Any]]
"""From the number of the attempt, counted from 0, to what is sent as JSON."""

_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
_MOST_QUOTED = 200
_REASONS = ("error", "message", "detail", "error_message")
"""Where servers say why they refuse; SGLang's answers about adapters have the last."""
_REST = 5.0
"""Seconds that a server which has failed is left alone."""


class RefusedError(DuologueError):
    """The server has answered, and the answer was no; asking again would not help."""

    def __init__(self, status: int, said: str, advice: str) -> None:
        super().__init__(f"{said} {advice}")
        self.status = status
        self.said = said


class GarbledError(ValueError):
    """An answer that cannot be used: half of it, none of it, or of a form that was not asked for."""


class NotYetError(ValueError):
    """An answer that says in its own way that a server is not ready."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient a client is."""

    timeout: float
    """Seconds that one attempt may take."""
    concurrency: int
    """Most requests under way; further ones wait."""
    retries: int
    """Further attempts after the first, with pauses that double from 0.5 to at most 10 seconds, give or take half."""
    give_up_after: int | None = None
    """After so many requests in a row without an answer, others fail at once for some seconds; None = never."""


def as_json(response: httpx.Response) -> Any:
    """Return an answer's JSON.

    Raises:
        ValueError: if it has none.
    """
    return response.json()


class HttpClient:
    """Talks JSON with one server.

    Broken connections, time-outs, 429, 5xx and answers that cannot be read are tried again, a bounded number of times.
    A usable answer ends its request, so that none is counted twice.

    Args:
        base: base address.
        policy: how patient to be.
        api_key_env: environment variable with the key. The key lives in no attribute, so no repr or pickle shows it.
        advice: what to do if the server refuses a request.

    Raises:
        DuologueError: for a policy that cannot work.
    """

    def __init__(self, base: httpx.URL, policy: Policy, api_key_env: str, advice: str) -> None:
        if policy.concurrency < 1 or policy.retries < 0 or policy.timeout <= 0:
            raise DuologueError("A server needs concurrency >= 1, retries >= 0 and timeout > 0. Correct these.")
        self.base = base
        self.address = str(base).rstrip("/")
        self.policy = policy
        self.api_key_env = api_key_env
        self.advice = advice
        self.retried = 0
        """Attempts beyond the first, so far."""
        self._failures = 0
        self._last_failure = ""
        self._opens_at = 0.0
        self._transports: dict[int, tuple[httpx.AsyncClient, asyncio.Semaphore]] = {}
        self.close = weakref.finalize(self, _close, self._transports)
        """Closes the connections; also happens when the object is dropped."""

    def run(self, requests: Sequence[Coroutine[Any, Any, T]]) -> list[T | DuologueError]:
        """Run requests side by side and return their results in order; one that failed is returned as its error."""

        async def gathered() -> list[T | DuologueError | BaseException]:
            return await asyncio.gather(*requests, return_exceptions=True)

        future = asyncio.run_coroutine_threadsafe(gathered(), _loop())
        try:
            results = future.result()
        except BaseException:  # an interrupted caller leaves nothing running
            future.cancel()
            raise
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, DuologueError):
                raise result
        return results  # type: ignore[return-value]  # what is left are results and DuologueErrors

    def one(self, request: Coroutine[Any, Any, T]) -> T:
        """Run one request.

        Raises:
            DuologueError: if it failed.
        """
        result = self.run([request])[0]
        if isinstance(result, DuologueError):
            raise result
        return result

    async def ask(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        read: Callable[[httpx.Response], T] = as_json,
        headers: Mapping[str, str] | None = None,
        retries: int | None = None,
        timeout: float | None = None,
    ) -> T:
        """Send a request until there is a usable answer.

        Args:
            method: GET or POST.
            path: relative to the base address.
            body: what to send; every attempt may send something else.
            read: makes the result out of a response of status 200, or raises ``GarbledError``, ``NotYetError``
                or ``ValueError``.
            headers: further headers.
            retries: instead of the policy's.
            timeout: in seconds, instead of the policy's.

        Raises:
            RefusedError: if the server says no.
            DuologueError: if there was no usable answer after all attempts, or lately none to anybody.
        """
        _, slots = self._transport()
        async with slots:
            most = self._attempts_left(self.policy.retries if retries is None else retries)
            for attempt in range(most + 1):
                if attempt:
                    self.retried += 1
                    await _pause(pause_before(attempt))
                sent = body(attempt) if body else None
                response = await self._attempt(method, path, sent, headers, timeout or self.policy.timeout)
                outcome = response if isinstance(response, _Failure) else self._read(response, read)
                if not isinstance(outcome, _Failure):
                    self._failures = 0
                    return outcome
                failure = outcome
            raise DuologueError(self._given_up(failure, most + 1))

    def quote(self, text: str) -> str:
        """Shorten what a server said, without the key that some servers repeat."""
        key = os.environ.get(self.api_key_env, "").strip()
        text = " ".join(text.split())
        return repr((text.replace(key, "[key]") if key else text)[:_MOST_QUOTED])

    def _transport(self) -> tuple[httpx.AsyncClient, asyncio.Semaphore]:
        """Return this process's connections; those of a forked parent stay the parent's."""
        pid = os.getpid()
        if pid not in self._transports:
            most = self.policy.concurrency
            limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
            client = httpx.AsyncClient(base_url=self.base, timeout=self.policy.timeout, limits=limits)
            self._transports[pid] = client, asyncio.Semaphore(most)
        return self._transports[pid]

    async def _attempt(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] | None, timeout: float
    ) -> httpx.Response | _Failure:
        sent = {**(headers or {}), **self._authorization()}
        request = self._transport()[0].request(method, path, json=body, headers=sent)
        try:
            return await asyncio.wait_for(request, timeout)
        except (httpx.TimeoutException, TimeoutError):
            return _Failure("did not answer in time", "Raise timeout, or lower concurrency.")
        except (httpx.HTTPError, OSError) as error:
            return _Failure("cannot be reached", "Start the server, or check the URL.", f" ({type(error).__name__})")

    def _authorization(self) -> dict[str, str]:
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise DuologueError(f"{self.api_key_env} has characters that no key can have. Set it again.")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _read(self, response: httpx.Response, read: Callable[[httpx.Response], T]) -> T | _Failure:
        if response.status_code != httpx.codes.OK:
            said = f"answered {response.status_code}: {self.quote(said_in(response))}"
            if _is_passing(response.status_code):
                return _Failure(said, "Wait, or lower concurrency.")
            raise self._refusal(response.status_code, f"{self.address} {said}.")
        try:
            return read(response)
        except NotYetError as error:
            return _Failure(str(error), error.fix)
        except GarbledError as error:
            return _Failure(f"sent an answer that cannot be used: {self.quote(str(error))}", self.advice)
        except ValueError:
            said = f"sent no JSON but {self.quote(response.text)}"
            return _Failure(said, f"Check that {self.address} is the base address of the API.")

    def _refusal(self, status: int, said: str) -> RefusedError:
        self._failures = 0  # it is alive
        if status in (401, 403):
            return RefusedError(status, said, f"Put a valid key into the environment variable {self.api_key_env}.")
        return RefusedError(status, said, self.advice)

    def _attempts_left(self, retries: int) -> int:
        """Return how many retries a new request may make: none while it is unknown whether the server is back.

        Raises:
            DuologueError: if the server has failed so often that it is left alone for now.
        """
        if self.policy.give_up_after is None or self._failures < self.policy.give_up_after:
            return retries
        if time.monotonic() < self._opens_at:
            raise DuologueError(
                f"{self._failures} requests in a row got no answer; the last: {self._last_failure} Requests are not "
                f"sent for {_REST:g} seconds. Bring the server back, then go on."
            )
        return 0

    def _given_up(self, failure: _Failure, attempts: int) -> str:
        self._failures += 1
        self._opens_at = time.monotonic() + _REST
        times = f"after {attempts} attempts" if attempts > 1 else "at the first attempt"
        self._last_failure = f"{self.address} {failure.what} {times}{failure.detail}."
        return f"{self._last_failure} {failure.fix}"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why an attempt gave no usable answer, though another may."""

    what: str
    fix: str
    detail: str = ""


def base_url(url: str, default_path: str, example: str) -> httpx.URL:
    """Return the address of a server.

    Args:
        url: as a person writes it.
        default_path: put after an address without a path.
        example: an address as it should be, for the error.

    Raises:
        DuologueError: if it is no plain URL, or holds a secret.
    """
    try:
        base = httpx.URL(url.strip())
    except (httpx.InvalidURL, TypeError):
        base = httpx.URL()
    if base.scheme not in ("http", "https") or not base.host:
        raise DuologueError(f"The server's address is no URL. Write it like {example}.")
    if base.userinfo or base.query:
        raise DuologueError(
            "The server's URL holds credentials or a query. Leave them out; keys come from the environment."
        )
    return base.copy_with(path=base.path.rstrip("/") or default_path, fragment=None)


def said_in(response: httpx.Response) -> str:
    """Return what the server gives as the reason: {"error": {"message": …}}, "message", "detail" or SGLang's own."""
    try:
        answer = response.json()
        error = next(answer[name] for name in _REASONS if answer.get(name))
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return response.text


def pause_before(attempt: int) -> float:
    """Return the seconds to wait before attempt 1, 2, …; from a fresh generator, so that forked copies spread too."""
    return min(_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.Random().uniform(0.5, 1.5)


def _is_passing(status: int) -> bool:
    """Return True for a failure that may pass by itself, which "not implemented" does not."""
    if status == httpx.codes.NOT_IMPLEMENTED:
        return False
    return status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR


_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
_STARTING = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Return this process's event loop, which runs in a thread that ends with the process."""
    pid = os.getpid()
    with _STARTING:
        if pid not in _LOOPS:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="duologue-http", daemon=True).start()
            _LOOPS[pid] = loop
    return _LOOPS[pid]


def _close(transports: dict[int, tuple[httpx.AsyncClient, asyncio.Semaphore]]) -> None:
    """Close connections without waiting: the caller may be the collector, in any thread."""
    pid = os.getpid()
    client, _ = transports.pop(pid, (None, None))
    if client is not None and pid in _LOOPS:
        asyncio.run_coroutine_threadsafe(client.aclose(), _LOOPS[pid])


async def _pause(seconds: float) -> None:
    await asyncio.sleep(seconds)
