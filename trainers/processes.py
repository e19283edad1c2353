"""What the processes of one run say to each other. A run of one process says nothing and loses nothing.

Dialogues need no lockstep: every process plays its own to their end and then all exchange results, once a step. So
processes may make different numbers of calls, and a failure of one is told to the others instead of hanging them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from duologue.errors import DuologueError

T = TypeVar("T")

_COUNTS = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Where launchers leave the number of processes; accelerate reads the same."""


def launched_processes() -> int:
    """Return the number of processes that the launcher started, before anything is set up."""
    return max(int(os.environ.get(name, 1)) for name in _COUNTS)


def process_index() -> int:
    """Return this process's number, from 0."""
    from accelerate import PartialState

    return int(PartialState().process_index)


def together(work: Callable[[], T]) -> list[T]:
    """Do ``work`` on every process and return all results in order of processes, the same on each.

    Raises:
        DuologueError: on every process if it failed on one, with that one's message. The one that failed raises its
            own error.
    """
    from accelerate.utils import gather_object

    error: Exception | None = None
    result: T | None = None
    try:
        result = work()
    except Exception as raised:  # told to the others first: they wait in the exchange below
        error = raised
    results: list[tuple[T, str | None]] = gather_object([(result, _message(error))])
    if error:
        raise error
    for index, (_, message) in enumerate(results):
        if message is not None:
            raise DuologueError(f"Process {index} failed: {message}")
    return [part for part, _ in results]


def first_alone(work: Callable[[], T]) -> T | None:
    """Do ``work`` on the first process only and return its result everywhere; errors as in ``together``."""
    return together(lambda: work() if process_index() == 0 else None)[0]


def refuse_processes(what: str, fix: str) -> None:
    """Refuse several processes where only one can work.

    Raises:
        DuologueError: if the launcher started more than one.
    """
    if (count := launched_processes()) > 1:
        raise DuologueError(f"{what} runs in one process, but {count} were launched. {fix}")


def check_processes(trainer: Any) -> None:
    """Refuse what the launcher and the trainer see differently.

    Args:
        trainer: TRL's trainer.

    Raises:
        DuologueError: if the processes are not connected, or one process would spread its batches over several GPUs.
    """
    found, launched = trainer.accelerator.num_processes, launched_processes()
    if found != launched:
        raise DuologueError(
            f"{launched} processes were launched, but {found} are connected. Launch with accelerate launch or torchrun."
        )
    if trainer.args.n_gpu > 1:
        raise DuologueError(
            f"One process sees {trainer.args.n_gpu} GPUs. Launch one process per GPU with accelerate, or show it "
            "one with CUDA_VISIBLE_DEVICES=0."
        )


def local_device(whole: bool = True) -> str | None:
    """Return where this process loads its model, or None for the default.

    Args:
        whole: False for weights that are sharded over processes, which pass through the CPU.
    """
    import torch

    if launched_processes() == 1 or not torch.accelerator.is_available():
        return None
    kind = torch.accelerator.current_accelerator()
    return f"{kind}:{os.environ.get('LOCAL_RANK', 0)}" if whole and kind else "cpu"


def _message(error: Exception | None) -> str | None:
    if error is None or isinstance(error, DuologueError):
        return str(error) if error else None
    return f"{error!r}. Its own output says where. Mend that and run again."
