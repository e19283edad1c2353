"""Answer equality in killable worker processes. Works in any process, also a daemon, which may have no children."""

import json
import os
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from queue import LifoQueue

from duologue.errors import DuologueError
from duologue.rewards.math_worker import EXIT_NOT_INSTALLED

_SCRIPT = Path(__file__).with_name("math_worker.py")
_START_SECONDS = 60.0


class WorkerTimeoutError(Exception):
    """The comparison took too long and its process was killed."""


class WorkerFailedError(Exception):
    """The worker crashed, was killed, or could not compare the two."""


class MathWorker:
    """One process, started at the first question and again after it was killed. For one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        """Return the process id, None if it is not running."""
        return self._process.pid if self._process else None

    def equal(self, given: str, gold: str, seconds: float) -> bool:
        """Compare two answers in plain notation.

        Raises:
            WorkerTimeoutError: if it took longer than ``seconds``; starting the process does not count.
            WorkerFailedError: if the process died or could not compare them.
        """
        self._start()
        request = {"given": given, "gold": gold, "seconds": 2 * seconds + 1}
        reply = self._ask(json.dumps(request).encode() + b"\n", seconds)
        if "equal" not in reply:
            raise WorkerFailedError(str(reply.get("error")))
        return bool(reply["equal"])

    def close(self) -> None:
        """Kill the process. In a forked copy of its owner, only let go of it."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._owner == os.getpid():
            process.kill()
            process.wait()
        else:
            process.poll()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()

    def _start(self) -> None:
        """Start the process unless it runs."""
        if self._process and self._owner == os.getpid() and self._process.poll() is None:
            return
        self.close()
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._ask(b"", _START_SECONDS)

    def _ask(self, request: bytes, seconds: float) -> dict[str, bool | str]:
        """Send a line and return the reply's JSON object; after ``seconds`` kill the process, which ends the wait."""
        process = self._process
        assert process
        assert process.stdin
        assert process.stdout
        late = threading.Event()
        timer = threading.Timer(seconds, _kill_late, (process, late))
        timer.daemon = True
        timer.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(request)
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            reply: dict[str, bool | str] = json.loads(line)
            return reply
        raise self._died(late.is_set())

    def _died(self, late: bool) -> Exception:
        """Clear a dead process away and return the error that tells why."""
        process = self._process
        assert process
        self.close()
        if process.returncode == EXIT_NOT_INSTALLED:
            return DuologueError("Comparing answers needs math-verify. Install it: pip install math-verify")
        return WorkerTimeoutError() if late else WorkerFailedError(f"worker exit code {process.returncode}")


def _kill_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    """Kill a process and note that it was for its lateness."""
    late.set()
    process.kill()


def _close_all(workers: list[MathWorker]) -> None:
    """Close workers at exit or when their checker is collected."""
    for worker in workers:
        worker.close()


class MathChecker:
    """A few workers behind one thread-safe question.

    Args:
        timeout: seconds per comparison.
        workers: how many processes may run at once; each starts when first needed.
    """

    def __init__(self, timeout: float = 5.0, workers: int = 1) -> None:
        if not timeout > 0 or workers < 1:
            raise DuologueError(
                f"timeout={timeout!r} and workers={workers!r} must be positive. Give e.g. timeout=5.0, workers=1."
            )
        self.timeout = timeout
        self._workers = [MathWorker() for _ in range(workers)]
        self._renew()
        weakref.finalize(self, _close_all, self._workers)

    def equal(self, given: str, gold: str) -> bool:
        """Compare two answers in plain notation, waiting for a free worker.

        Raises:
            WorkerTimeoutError: if it took longer than the time-out.
            WorkerFailedError: if the worker died or could not compare them.
        """
        if self._owner != os.getpid():
            self._renew()
        worker = self._idle.get()
        try:
            return worker.equal(given, gold, self.timeout)
        finally:
            self._idle.put(worker)

    @property
    def pids(self) -> tuple[int, ...]:
        """Return the process ids of the running workers."""
        return tuple(worker.pid for worker in self._workers if worker.pid is not None)

    def close(self) -> None:
        """Kill the workers; the next question starts new ones."""
        _close_all(self._workers)

    def _renew(self) -> None:
        """Make the queue of idle workers; a forked copy needs its own, since the parent's may be locked."""
        self._owner = os.getpid()
        self._idle: LifoQueue[MathWorker] = LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
