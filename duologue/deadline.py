"""Calls of foreign code with a deadline."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_within(function: Callable[[], T], seconds: float | None) -> T:
    """Return what a function returns, or raise what it raises.

    Args:
        function: may hang; it is then left behind in a daemon thread, which does not hold up the exit.
        seconds: the deadline; None waits for ever and calls in this thread (people at a terminal).

    Raises:
        TimeoutError: if nothing came back in time.
    """
    if seconds is None:
        return function()
    box: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
    threading.Thread(target=lambda: box.put(_outcome(function)), name="duologue-call", daemon=True).start()
    try:
        result, error = box.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"it did not answer in {seconds:g} s. Raise the time-out, or mend what hangs.") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def _outcome(function: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return function(), None
    except Exception as error:  # handed over to the thread that waits
        return None, error
