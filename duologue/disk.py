"""Files that are there whole or not at all, and what is said when a disk is full.

What writers raise then was found by filling a disk: Python and matplotlib raise an ``OSError``, safetensors an error of
its own and tokenizers a bare ``Exception``, with the number in their texts, and torch a ``RuntimeError`` without one.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

from duologue.errors import DuologueError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TORCH = re.compile(r"basic_ios::clear: iostream error|PytorchStreamWriter failed|inline_container.*unexpected pos")
_RUST = re.compile(r"\(os error (\d+)\)")


class HasOutput(Protocol):
    """A configuration with a place to write to."""

    @property
    def output(self) -> str:
        """File or folder."""
        ...


_Work = TypeVar("_Work", bound=Callable[..., Any])


class DiskFullError(DuologueError):
    """There was no room to write; the message says where, how much is left, and what happens on the next call."""


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """Write a text file (UTF-8) whole or not at all: beside its place first; a failure leaves what was there."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text into a file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text)


@contextmanager
def explained_full_disk(output: str | Path, then: str | Callable[[], str]) -> Iterator[None]:
    """Turn a failure to write for want of room into an error that says what to do; others pass as they are.

    Args:
        output: file or folder that is written to.
        then: what to do once there is room, and what happens then: the end of the message, or a function that makes it.

    Raises:
        DiskFullError: if the disk, a quota or the limit of file sizes leaves no room.
    """
    try:
        yield
    except Exception as error:
        reason = no_room(error)
        if reason is None:
            raise
        after = then if isinstance(then, str) else then()
        raise DiskFullError(
            f"{str(output)!r} could not be written: {reason}. {_left(Path(output))} Free space there, or raise the "
            f"quota or the limit of file sizes (ulimit -f). Then {after}"
        ) from error


def explains_full_disk(then: str) -> Callable[[_Work], _Work]:
    """Wrap a function of a configuration in ``explained_full_disk`` for the configuration's ``output``."""

    def decorate(work: _Work) -> _Work:
        @wraps(work)
        def _call(config: HasOutput, *rest: Any, **named: Any) -> Any:  # exactly the arguments of ``work``
            with explained_full_disk(config.output, then):
                return work(config, *rest, **named)

        return cast(_Work, _call)

    return decorate


def no_room(error: Exception) -> str | None:
    """Return why nothing more could be written, or None if the error is about something else."""
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno in _NO_ROOM else None
    if type(error) is Exception or type(error).__name__ == "SafetensorError":
        found = _RUST.search(str(error))
        return os.strerror(int(found[1])) if found and int(found[1]) in _NO_ROOM else None
    if isinstance(error, RuntimeError) and _TORCH.search(str(error)):
        return "torch could not write a file to its end"
    return None


def _left(output: Path) -> str:
    """Say how much room the disk of a file or folder has; it need not exist yet."""
    place = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    usage = shutil.disk_usage(place)
    return f"{usage.free / 1e6:,.1f} of {usage.total / 1e6:,.1f} MB are free on its disk."
