"""A process group of a trainer and the processes of its servers, in which weights travel without a file."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from duologue.errors import DuologueError

if TYPE_CHECKING:
    import httpx
    import torch

    Named = list[tuple[str, torch.Tensor]]

_BUCKET = 512 * 2**20
"""Bytes that travel at a time: a server makes room for them beside the weights that it has."""


class GroupError(DuologueError):
    """Not all who should be in a group came, or stayed."""


class WeightGroup:
    """The trainer as rank 0, and every process of its servers. NCCL from a GPU, gloo from a CPU.

    Servers make their side of the group with the same function of torch, so both sides know it by the same keys.
    """

    def __init__(self, server: httpx.URL, others: int, device: torch.device, timeout: float) -> None:
        """Open the meeting place; nobody joins yet.

        Args:
            server: one that the trainer can reach; the group meets at the address from which it is reached.
            others: processes of the servers.
            device: where the weights are.
            timeout: seconds to wait for the others, each time.

        Raises:
            DuologueError: if the server cannot be reached.
        """
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        self.name = f"duologue-{uuid4().hex[:8]}"
        self.backend = "nccl" if device.type == "cuda" else "gloo"
        self.host = _own_address(server)
        self.size = others + 1
        self._device = device
        self._timeout = timedelta(seconds=timeout)
        # Made here and not by a "rendezvous", which under a launcher asks that one's store, where no server is. By
        # itself it would listen on every interface.
        listening = socket.create_server((self.host, 0), family=socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        self.port: int = listening.getsockname()[1]
        self._store = TCPStore(
            self.host,
            self.port,
            self.size,
            is_master=True,
            timeout=self._timeout,
            wait_for_workers=False,
            master_listen_fd=listening.detach(),
        )
        self._group: Any = None

    def join(self) -> None:
        """Wait until all others have joined.

        Raises:
            GroupError: if they do not.
        """
        self._together(self._joined)

    def send(self, tensors: Named) -> None:
        """Send tensors to all others, who must be waiting for just these; return when they are on their way.

        Raises:
            GroupError: if one of them is gone.
        """
        self._together(lambda: self._sent(tensors))

    def close(self) -> None:
        """Leave the group; who still waits in it is released with an error."""
        from torch.distributed import distributed_c10d as c10d

        if self._group is not None:
            with suppress(RuntimeError):  # it may have failed before
                self._group.abort()
            c10d.destroy_process_group(self._group)
            self._group = None

    def _together(self, work: Callable[[], None]) -> None:
        try:
            return work()
        except RuntimeError as error:
            reason = str(error)
        # Raised here, without the first error: that one's frames would keep the group, and its connections, alive.
        raise GroupError(
            f"The servers did not meet this process at {self.host}:{self.port} for new weights ({reason}). Let them "
            "reach it there, or sync from disk."
        )

    def _joined(self) -> None:
        from torch.distributed import distributed_c10d as c10d

        name: Any = self.name
        store, backend = c10d.PrefixStore(self.name, self._store), c10d.Backend(self.backend)
        self._group, _ = c10d._new_process_group_helper(  # torch has no public way to a group beside the default one
            self.size, 0, [], backend, store, name, timeout=self._timeout
        )
        c10d._world.pg_group_ranks[self._group] = {i: i for i in range(self.size)}

    def _sent(self, tensors: Named) -> None:
        from torch.distributed import broadcast

        for _, tensor in tensors:
            broadcast(tensor.detach().to(self._device).contiguous(), src=0, group=self._group)


def buckets(weights: Mapping[str, torch.Tensor], size: int = _BUCKET) -> Iterator[Named]:
    """Yield the weights in parts of at most ``size`` bytes, or of one tensor."""
    part: Named = []
    room = size
    for name, tensor in weights.items():
        bytes_ = tensor.numel() * tensor.element_size()
        if part and bytes_ > room:
            yield part
            part, room = [], size
        part.append((name, tensor))
        room -= bytes_
    if part:
        yield part


def described(tensors: Iterable[tuple[str, torch.Tensor]]) -> dict[str, list[Any]]:
    """Return names, dtypes and shapes as a server wants to know them beforehand."""
    rows = [(name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for name, tensor in tensors]
    return {"names": [r[0] for r in rows], "dtypes": [r[1] for r in rows], "shapes": [r[2] for r in rows]}


def _own_address(server: httpx.URL) -> str:
    """Return the address of this machine from which a server is reached."""
    port = server.port or (443 if server.scheme == "https" else 80)
    try:
        with socket.create_connection((server.host, port), timeout=10) as reached:
            return str(reached.getsockname()[0])
    except OSError as error:
        raise DuologueError(f"{server} cannot be reached ({error}). Start the server, or check the URL.") from error
