"""Weights that go to SGLang's servers from memory to memory (``update_weights_from_distributed``)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from duologue.engines.sglang_server import SGLangServer
from duologue.engines.weight_group import GroupError, WeightGroup, buckets, described
from duologue.errors import DuologueError

if TYPE_CHECKING:
    import torch

_HERE = ("127.0.0.1", "::1", "localhost")
_LAST_WORDS = 5.0
"""Seconds that are left to others after one has failed."""


class Broadcast:
    """Sends a model's weights to all who sample behind an address; keeps the group with them from one time to the next.

    The weights of the last time can be sent ``again``, to a server that was restarted: they are not copied, so they
    must still be what they were.
    """

    def __init__(self, server: SGLangServer) -> None:
        self._server = server
        self._group: WeightGroup | None = None
        self._weights: dict[str, torch.Tensor] = {}
        self.label: str | None = None
        """Of the weights that were sent last; None if they did not arrive."""

    async def send(self, weights: Mapping[str, torch.Tensor], label: str) -> None:
        """Replace the weights of all who sample.

        Args:
            weights: every tensor of the model, by the names of its ``state_dict``.
            label: what servers call them from then on; while they arrive, it is another one.

        Raises:
            DuologueError: if a server cannot be reached, does not join the group, or does not take the weights.
        """
        self._weights, self.label = dict(weights), None
        await self._sent(label)
        self.label = label

    async def again(self) -> None:
        """Send the last weights once more; errors as in ``send``."""
        assert self.label is not None
        await self._sent(self.label)

    async def close(self) -> None:
        """Leave the group, have the servers leave it, and hold no weights any more."""
        self._weights, self.label = {}, None
        await self._leave()

    async def _sent(self, label: str) -> None:
        if self._group:
            try:
                return await self._send(self._group, label)
            except DuologueError:  # a server that was restarted is in no group
                await self._leave()
        self._group = await self._joined()
        try:
            await self._send(self._group, label)
        except DuologueError:
            await self._leave()
            raise

    async def _joined(self) -> WeightGroup:
        workers = await self._server.processes()
        sizes = [size for _, size in workers]
        device = next(iter(self._weights.values())).device
        reached = next((one.base for one, _ in workers if one.base.host not in _HERE), workers[0][0].base)
        group = await asyncio.to_thread(WeightGroup, reached, sum(sizes), device, self._server.http.policy.timeout)
        told = {"master_address": group.host, "master_port": group.port, "group_name": group.name}
        told |= {"backend": group.backend, "world_size": group.size}
        orders = [
            self._server.join_group(one, told | {"rank_offset": 1 + sum(sizes[:i])})
            for i, (one, _) in enumerate(workers)
        ]
        await _beside(group, group.join, orders)
        return group

    async def _send(self, group: WeightGroup, label: str) -> None:
        await self._server.begin_update()
        parts = list(buckets(self._weights))
        for part in parts:
            is_last = part is parts[-1]
            called = label if is_last else f"{label}-arriving"
            order = self._server.receive(described(part), group.name, called, is_last)
            await _beside(group, partial(group.send, part), [order])
        await self._server.end_update()

    async def _leave(self) -> None:
        if self._group:
            group, self._group = self._group, None
            await asyncio.to_thread(group.close)
            with suppress(DuologueError):  # who does not leave it loses a little room, no more
                await self._server.leave_group(group.name)


async def _beside(group: WeightGroup, work: Callable[[], None], orders: list[Coroutine[Any, Any, None]]) -> None:
    """Do this process's part, which waits for the others, while servers are told to do theirs.

    Raises:
        DuologueError: if one fails; then the group is closed, so that nobody waits for who will not come.
    """
    tasks = [asyncio.create_task(one) for one in (_in_thread(work), *orders)]
    try:
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:  # an interrupted caller leaves nothing running
        for task in tasks:
            task.cancel()
        await asyncio.to_thread(group.close)
        raise
    errors = [error for task in done if (error := task.exception())]
    if not errors:
        return
    await asyncio.to_thread(group.close)
    if pending and all(isinstance(error, GroupError) for error in errors):  # a server alone says what it met
        done, pending = await asyncio.wait(pending, timeout=_LAST_WORDS)
        errors += [error for task in done if (error := task.exception())]
    for task in pending:
        task.cancel()
    raise min(errors, key=lambda error: isinstance(error, GroupError))  # a server's own words, if there are any


async def _in_thread(work: Callable[[], None]) -> None:
    """Run blocking work in a thread that does not keep the process alive, as those of asyncio's pool do."""
    ended: Future[None] = Future()

    def run() -> None:
        ended.set_running_or_notify_cancel()
        try:
            work()
        except Exception as error:  # told to who waits
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=run, name="duologue-weights", daemon=True).start()
    await asyncio.wrap_future(ended)
