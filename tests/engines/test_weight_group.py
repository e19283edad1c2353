"""Weights over a network, as far as that goes without a server that takes them (``tests/servers`` has one)."""

import asyncio
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import torch

from duologue.engines import SGLangEngine
from duologue.engines.sglang_broadcast import Broadcast, _beside
from duologue.engines.weight_group import GroupError, WeightGroup, buckets, described
from duologue.errors import DuologueError
from tests.engines.sglang_standin import StandIn, on_loopback, standin

WEIGHTS = {"a": torch.zeros(3, 5), "b": torch.zeros(4, dtype=torch.bfloat16), "c": torch.zeros(()), "d": torch.zeros(9)}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    on_loopback(monkeypatch)
    with standin() as running:
        yield running


@pytest.mark.parametrize(("size", "parts"), [(1, ["a", "b", "c", "d"]), (70, ["ab", "cd"]), (10**6, ["abcd"])])
def test_buckets_hold_every_tensor_once_in_order(size: int, parts: list[str]) -> None:
    found = list(buckets(WEIGHTS, size))
    assert ["".join(name for name, _ in part) for part in found] == parts
    assert all(tensor is WEIGHTS[name] for part in found for name, tensor in part)
    assert list(buckets({}, size)) == []


def test_a_server_is_told_what_comes() -> None:
    assert described(list(WEIGHTS.items())[:3]) == {
        "names": ["a", "b", "c"],
        "dtypes": ["float32", "bfloat16", "float32"],
        "shapes": [[3, 5], [4], []],
    }


def test_a_server_that_knows_nothing_of_groups(server: StandIn) -> None:
    """It says so at once, though this process waits for it in another thread; the last weights stay."""
    server.info = {"tp_size": 1}
    engine = SGLangEngine(server.url)
    with pytest.raises(DuologueError, match=r"answered 404: 'Not Found'.*server's log\.$"):
        engine.sync_tensors(WEIGHTS, 1)
    assert engine.version == 0


def test_no_weights_are_no_update(server: StandIn) -> None:
    engine = SGLangEngine(server.url)
    with pytest.raises(DuologueError, match=r"Give a model's whole state_dict\.$"):
        engine.sync_tensors({}, 1)
    assert engine.version == 0


def test_replicas_take_weights_from_disk(server: StandIn) -> None:
    server.info = {"tp_size": 1, "dp_size": 2}
    with pytest.raises(DuologueError, match=r"runs 2 replicas .*router before them, or sync from disk\.$"):
        SGLangEngine(server.url).sync_tensors(WEIGHTS, 1)


@pytest.mark.parametrize(
    ("hosts", "meets"),
    [(["127.0.0.1", "localhost"], "127.0.0.1"), (["localhost", "10.0.0.7", "10.0.0.8"], "10.0.0.7")],
)
def test_a_group_meets_where_workers_elsewhere_can_come(
    hosts: list[str], meets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the trainer reaches a router, and some of its workers, on loopback."""
    asked: list[Any] = []

    def meet(reached: httpx.URL, others: int, *_: Any) -> WeightGroup:
        asked.extend([reached.host, others])
        raise GroupError("this is enough")

    async def processes() -> list[tuple[Any, int]]:
        return [(SimpleNamespace(base=httpx.URL(f"http://{host}:30000")), 2) for host in hosts]

    monkeypatch.setattr("duologue.engines.sglang_broadcast.WeightGroup", meet)
    http = SimpleNamespace(policy=SimpleNamespace(timeout=1.0))
    server: Any = SimpleNamespace(processes=processes, http=http)
    with pytest.raises(GroupError):
        asyncio.run(Broadcast(server).send(WEIGHTS, "v1"))
    assert asked == [meets, 2 * len(hosts)]


class Broken(WeightGroup):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


async def _never() -> None:
    await asyncio.sleep(1000)


async def _refused() -> None:
    raise DuologueError("it said no")


def _fails() -> None:
    raise GroupError("not all came")


@pytest.mark.parametrize(
    ("work", "orders", "reason"),
    [
        (_fails, [_never], "not all came"),
        (_fails, [_refused], "it said no"),
        (lambda: time.sleep(1), [_refused, _never], "it said no"),
    ],
)
def test_who_fails_leaves_nobody_waiting(
    work: Any, orders: list[Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duologue.engines.sglang_broadcast._LAST_WORDS", 0.1)
    group = Broken()

    async def run() -> None:
        await _beside(group, work, [order() for order in orders])
        raise AssertionError("it must fail")

    with pytest.raises(DuologueError, match=reason):
        asyncio.run(run())
    assert group.closed == 1


def test_who_is_interrupted_leaves_nobody_waiting() -> None:
    group, released = Broken(), []

    async def order() -> None:
        try:
            await _never()
        finally:
            released.append("order")

    async def run() -> None:
        sending = asyncio.create_task(_beside(group, lambda: None, [order()]))
        await asyncio.sleep(0.05)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (group.closed, released) == (1, ["order"])  # here: at its end a loop cancels all

    asyncio.run(asyncio.wait_for(run(), 10))


def test_both_sides_are_waited_for() -> None:
    done = []

    async def slow() -> None:
        await asyncio.sleep(0.05)
        done.append("order")

    asyncio.run(_beside(Broken(), lambda: done.append("work"), [slow()]))
    assert sorted(done) == ["order", "work"]


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(DuologueError, match=r"cannot be reached .*Start the server, or check the URL\.$"):
        WeightGroup(httpx.URL("http://127.0.0.1:9"), 1, torch.device("cpu"), 1.0)


WAITS = """
import sys, time, torch
from datetime import timedelta
from torch.distributed import TCPStore, broadcast, distributed_c10d as c10d
name, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
store = c10d.PrefixStore(name, TCPStore("127.0.0.1", port, size, is_master=False))
group, _ = c10d._new_process_group_helper(size, 1, [], c10d.Backend("gloo"), store, name, timeout=timedelta(seconds=60))
c10d._world.pg_group_ranks[group] = {i: i for i in range(size)}
tensor = torch.zeros(3)
broadcast(tensor, src=0, group=group)
print(tensor.tolist(), flush=True)
try:
    broadcast(tensor, src=0, group=group)
except RuntimeError:
    print("released", flush=True)
time.sleep(60)
"""
"""Another process of a group, which gets one tensor and waits for the next."""


@pytest.fixture
def other(server: StandIn) -> Iterator[tuple[WeightGroup, "subprocess.Popen[str]"]]:
    group = WeightGroup(httpx.URL(server.url), 1, torch.device("cpu"), 60.0)
    told = [sys.executable, "-c", WAITS, group.name, str(group.port), "2"]
    process = subprocess.Popen(told, stdout=subprocess.PIPE, text=True)
    try:
        group.join()
        yield group, process
    finally:
        group.close()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_it_listens_where_the_server_reaches_it_and_nowhere_else(family: socket.AddressFamily) -> None:
    host, other = ("127.0.0.1", "127.0.0.2") if family == socket.AF_INET else ("::1", "127.0.0.1")
    try:
        running = socket.create_server((host, 0), family=family)
    except OSError as error:
        pytest.skip(f"This machine has no {host}: {error}")
    with running:
        address = httpx.URL(scheme="http", host=host, port=running.getsockname()[1])
        group = WeightGroup(address, 1, torch.device("cpu"), 1.0)
        assert group.host == host
        socket.create_connection((host, group.port), timeout=5).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((other, group.port), timeout=5)


@pytest.mark.slow
def test_who_waits_is_released_when_the_group_is_closed(other: tuple[WeightGroup, "subprocess.Popen[str]"]) -> None:
    group, process = other
    assert process.stdout
    group.send([("a", torch.tensor([1.0, 2.0, 3.0]))])
    assert process.stdout.readline() == "[1.0, 2.0, 3.0]\n"
    group.close()
    assert process.stdout.readline() == "released\n"


@pytest.mark.slow
def test_who_is_gone_is_noticed(other: tuple[WeightGroup, "subprocess.Popen[str]"]) -> None:
    """The error holds nothing that would keep the group's connections open."""
    group, process = other
    process.kill()
    process.wait()
    message = rf"meet this process at 127\.0\.0\.1:{group.port} .* or sync from disk\.$"
    with pytest.raises(GroupError, match=message) as met:
        group.send([("a", torch.zeros(2**22))] * 4)
    assert met.value.__context__ is None
    held = weakref.ref(group._group)
    group.close()
    assert held() is None


ENDS = """
import sys, torch
from duologue.engines import SGLangEngine
engine = SGLangEngine(sys.argv[1])
try:
    engine.sync_tensors({"a": torch.zeros(3)}, 1)
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_process_ends_though_nobody_came(server: StandIn) -> None:
    server.info = {"tp_size": 1}
    done = subprocess.run([sys.executable, "-c", ENDS, server.url], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "RefusedError"), done.stderr
