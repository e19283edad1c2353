"""The endpoints of a SGLang server that an engine needs, one method each. Written against SGLang 0.5.23."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import httpx

from duologue.engines.base import Sampling
from duologue.engines.http import HttpClient, NotYetError, Policy, RefusedError, base_url
from duologue.engines.sglang_answer import Answer, read_answer
from duologue.errors import DuologueError

_EXAMPLE = "http://127.0.0.1:30000"
_ADVICE = "Correct the request, or look into the server's log."
_ROUTING_HEADER = "X-SMG-Routing-Key"
_HEALTH_TIMEOUT = 10.0
"""Seconds; a server that is up answers at once, whatever it is doing."""
_UNLOAD_TIMEOUT = 60.0
"""Seconds; a server waits for the requests that an adapter is still answering."""


class SGLangServer:
    """A server, or a router in front of several. Methods are coroutines for ``http.run`` or ``http.one``.

    A router deals out ``generate``; what it does not pass on (weights, adapters, what a model is) goes to each of its
    workers, at the addresses that it knows them by.
    """

    def __init__(self, url: str, policy: Policy, api_key_env: str) -> None:
        """Note the address; nothing is sent yet.

        Raises:
            DuologueError: if it is no plain URL, or the policy cannot work.
        """
        base = base_url(url, "/", _EXAMPLE)
        base = base.copy_with(path=base.path.removesuffix("/v1") or "/")
        self.http = HttpClient(base, policy, api_key_env, _ADVICE)
        self.address = self.http.address
        self._is_router = True  # until it has been asked
        self._clients: dict[str, HttpClient] = {}

    async def workers(self, retries: int | None = None, timeout: float | None = None) -> list[HttpClient]:
        """Return who samples: the workers of a router that are up, or this server alone; arguments as in ``ask``.

        Raises:
            DuologueError: if none comes up.
        """
        if not self._is_router:
            return [self.http]
        try:
            urls = await self.http.ask("GET", "workers", read=_workers_up, retries=retries, timeout=timeout)
        except RefusedError:
            urls = None
        self._is_router = urls is not None
        return [self.http] if urls is None else [self._client(url) for url in urls]

    def _client(self, url: str) -> HttpClient:
        if url not in self._clients:
            self._clients[url] = HttpClient(
                base_url(url, "/", _EXAMPLE), self.http.policy, self.http.api_key_env, self.http.advice
            )
        return self._clients[url]

    def health(self) -> Coroutine[Any, Any, None]:
        """Fail if the server is not up."""
        return self.http.ask("GET", "health", read=_nothing, retries=0, timeout=_HEALTH_TIMEOUT)

    async def model_info(self) -> dict[str, Any]:
        """Return what the server says of its model: ``model_path``, ``tokenizer_path``, ``weight_version``, …."""
        first = (await self.workers())[0]
        try:
            info: Any = await first.ask("GET", "model_info")
        except RefusedError:  # the older name
            info = await first.ask("GET", "get_model_info")
        return info if isinstance(info, dict) else {}

    async def context_length(self) -> int:
        """Return how many tokens prompt and continuation may hold together."""
        listed: Any = await (await self.workers())[0].ask("GET", "v1/models")
        rows = listed.get("data") if isinstance(listed, dict) else None
        lengths = [row.get("max_model_len") for row in rows or () if isinstance(row, dict)]
        known = [length for length in lengths if isinstance(length, int) and length > 0]
        if not known:
            raise DuologueError(f"{self.address} does not say how long its context is. Check that it is SGLang's.")
        return known[0]

    async def generate(
        self, body: Mapping[str, Any], name: str, session: str, most: int, stop_ids: list[int]
    ) -> Answer:
        """Sample one continuation.

        Args:
            body: the request without its id.
            name: of the request; each attempt gets an id of its own, so that an answer to one that was given up is
                not taken for an answer.
            session: of the dialogue, for routers that keep a session on one worker.
            most: tokens asked for.
            stop_ids: tokens after which nothing may come.
        """
        sent = dict(body)

        def attempt(number: int) -> Mapping[str, Any]:
            sent["rid"] = f"{name}_r{number}"
            return sent

        def read(response: httpx.Response) -> Answer:
            return read_answer(response.json(), sent["rid"], most, stop_ids)

        return await self.http.ask("POST", "generate", attempt, read, {_ROUTING_HEADER: session})

    async def top_two(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a request, tried once, with the log-probabilities of the two likeliest tokens."""
        return await self.http.ask("POST", "generate", _always({**body, "top_logprobs_num": 2}), retries=0)

    async def load_adapter(self, name: str, path: str) -> None:
        """Load a LoRA adapter."""
        await self._order("load_lora_adapter", {"lora_name": name, "lora_path": path}, done_if="already")

    async def unload_adapter(self, name: str) -> None:
        """Drop a LoRA adapter. Tried once, within seconds: nothing but room on the server hangs on it."""
        await self._order("unload_lora_adapter", {"lora_name": name}, retries=0, timeout=_UNLOAD_TIMEOUT)

    async def update_weights(self, path: str, label: str) -> None:
        """Replace all weights by those in a folder; the server calls them by ``label`` and forgets its cache."""
        body = {"model_path": path, "weight_version": label, "flush_cache": True}
        await self._order("update_weights_from_disk", body)

    async def flush_cache(self) -> None:
        """Forget cached keys and values; refused while requests run."""
        await asyncio.gather(*(one.ask("POST", "flush_cache", read=_nothing) for one in await self.workers()))

    async def processes(self) -> list[tuple[HttpClient, int]]:
        """Return all who sample, each with the number of its processes that hold weights.

        Raises:
            DuologueError: if a server runs replicas of its model, which take no weights over a network.
        """
        return [(one, await _processes(one)) for one in await self.workers()]

    async def join_group(self, one: HttpClient, group: Mapping[str, Any]) -> None:
        """Have one server's processes join a process group; it answers when all others have."""
        await self._order("init_weights_update_group", group, retries=0, to=[one])

    async def leave_group(self, name: str) -> None:
        """Have all servers' processes leave a process group. Tried once: nothing but room hangs on it."""
        body = {"group_name": name}
        await self._order(
            "destroy_weights_update_group", body, done_if="does not exist", retries=0, timeout=_UNLOAD_TIMEOUT
        )

    async def begin_update(self) -> None:
        """Announce new weights; an update that somebody began and never ended is ended first."""
        await self._order("end_weight_update", {}, done_if="no weight-update session", retries=0)
        await self._order("begin_weight_update", {}, retries=0)

    async def receive(self, tensors: Mapping[str, list[Any]], group: str, label: str, is_last: bool) -> None:
        """Take tensors that are about to be sent in a group; nobody but their sender can send them again."""
        body = {**tensors, "group_name": group, "weight_version": label, "flush_cache": is_last}
        await self._order("update_weights_from_distributed", body, retries=0)

    async def end_update(self) -> None:
        """Sample again: all new weights are there."""
        await self._order("end_weight_update", {}, retries=0)

    async def _order(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        done_if: str | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        to: Sequence[HttpClient] | None = None,
    ) -> None:
        """Have ``to``, or all who sample, do something. A refusal that says ``done_if`` means that it was done before.

        The answer to an earlier attempt may have been lost on its way, or it was another worker that lacked it.
        """

        async def ordered(one: HttpClient) -> None:
            try:
                answer: Any = await one.ask("POST", path, _always(body), retries=retries, timeout=timeout)
            except RefusedError as error:
                if done_if is None or done_if not in error.said:
                    raise
                return
            if isinstance(answer, dict) and answer.get("success") is False:
                said = f"{one.address} could not do {path}: {one.quote(repr(answer))}."
                raise RefusedError(httpx.codes.OK, said, _ADVICE)

        await asyncio.gather(*map(ordered, to or await self.workers(retries, timeout)))


async def _processes(one: HttpClient) -> int:
    info: Any = await one.ask("GET", "server_info")
    info = info if isinstance(info, dict) else {}
    if (replicas := info.get("dp_size") or 1) != 1:
        raise DuologueError(
            f"{one.address} runs {replicas} replicas of its model (--dp-size), which take weights from disk only. "
            "Start one server for each and a router before them, or sync from disk."
        )
    return int(info.get("tp_size") or 1) * int(info.get("pp_size") or 1)


def request_body(prompt: list[int], sampling: Sampling, adapter: str | None) -> dict[str, Any]:
    """Return a request for ``/generate``; what a server could have other defaults for is said outright.

    Args:
        prompt: token ids.
        sampling: length and temperature.
        adapter: name of a LoRA adapter; None = the base model.
    """
    chosen = {"max_new_tokens": sampling.max_new_tokens, "temperature": sampling.temperature}
    plain = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    plain |= {"frequency_penalty": 0.0, "presence_penalty": 0.0}
    body: dict[str, Any] = {"input_ids": prompt, "sampling_params": chosen | plain, "return_logprob": True}
    return body | ({"lora_path": adapter} if adapter else {})


def _workers_up(response: httpx.Response) -> list[str] | None:
    """Return the addresses of a router's workers that are up, or None if it lists none because it is no router.

    Raises:
        NotYetError: if none is up, as while they register.
    """
    told = response.json()
    rows = told.get("workers") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        return None
    known = [row for row in rows if isinstance(row, dict) and isinstance(row.get("url"), str)]
    if up := [row["url"] for row in known if row.get("is_healthy", True)]:
        return up
    raise NotYetError("is a router, and no worker of it is up", "Start its servers, or wait.")


def _nothing(response: httpx.Response) -> None:
    """Take no notice of what a confirmation says; the text differs between versions."""


def _always(body: Mapping[str, Any]) -> Callable[[int], Mapping[str, Any]]:
    return lambda attempt: body
