"""Calls of foreign code with a deadline."""

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from duologue.errors import DuologueError

T = TypeVar("T")


def call_within(function: Callable[[], T], seconds: float | None) -> T:
    """Return what a function returns, or raise what it raises.

    Each calling thread keeps one worker thread, which runs its calls one after another: starting a thread for each
    call costs more than a quick call itself. Callers do not wait for one another.

    Args:
        function: may hang; it is then left behind in a daemon thread, which does not hold up the exit.
        seconds: the deadline; None waits for ever and calls in this thread (people at a terminal).

    Raises:
        TimeoutError: if nothing came back in time.
    """
    if seconds is None:
        return function()
    # Taken out while it works: a call that hangs or is interrupted leaves its worker behind, and one that is made
    # meanwhile in this thread (by a signal handler, say) gets a worker of its own.
    worker, _mine.worker = _mine.worker, None
    if worker is None or not worker.thread.is_alive():  # threads do not survive a fork
        worker = _Worker()
    try:
        result, error = worker.call(function, seconds)
        _mine.worker = worker
    except queue.Empty:
        raise TimeoutError(f"it did not answer in {seconds:g} s. Raise the time-out, or mend what hangs.") from None
    finally:
        if _mine.worker is not worker:
            worker.dismiss()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


class _Worker:
    """A daemon thread that runs calls."""

    def __init__(self) -> None:
        self._calls: _Calls = queue.SimpleQueue()
        self._outcomes: _Outcomes = queue.SimpleQueue()
        # The thread must not hold this object, or it would never be dropped.
        self.thread = threading.Thread(
            target=_serve, args=(self._calls, self._outcomes), name="duologue-call", daemon=True
        )
        self.thread.start()
        self.dismiss = weakref.finalize(self, self._calls.put, None)
        """Lets the thread end once it is idle; also happens when the object is dropped, as with its calling thread."""
        self.dismiss.atexit = False

    def call(self, function: Callable[[], Any], seconds: float) -> "_Outcome":
        """Return the outcome of one call.

        Raises:
            queue.Empty: if nothing came back in time; the worker must then not be used again.
        """
        self._calls.put(function)
        return self._outcomes.get(timeout=seconds)


class _Mine(threading.local):
    """What each calling thread has of its own."""

    worker: _Worker | None = None
    """Idle, if there is one."""


_mine = _Mine()
_Outcome = tuple[Any, Exception | None]
_Calls = queue.SimpleQueue[Callable[[], Any] | None]
_Outcomes = queue.SimpleQueue[_Outcome]


def _serve(calls: _Calls, outcomes: _Outcomes) -> None:
    while (function := calls.get()) is not None:
        outcome = _outcome(function)
        del function  # an idle worker must not keep alive what it called
        outcomes.put(outcome)
        del outcome


def _outcome(function: Callable[[], Any]) -> _Outcome:
    try:
        return function(), None
    except Exception as error:  # handed over to the thread that waits
        return None, error
    except BaseException as error:  # such as sys.exit(): it would end the thread, and its caller would wait in vain
        return None, DuologueError(f"It raised {error!r}, which ends programs. Raise an Exception instead.")
