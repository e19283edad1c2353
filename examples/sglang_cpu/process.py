"""Servers in processes of their own: start them, end them, and, for tests, break them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("DUOLOGUE_SGLANG_PYTHON") or ROOT / ".venv-sglang" / "bin" / "python")
MISSING = f"there is no {PYTHON.name} of a SGLang environment (make sglang makes one in .venv-sglang)"
_STARTING = 240.0


class ServerProcess:
    """A server on loopback, with its workers in a process group of its own."""

    def __init__(self, log: Path) -> None:
        """Choose a port; nothing runs yet.

        Args:
            log: file that takes what the server prints.
        """
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self.command: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, wait: bool = True) -> None:
        """Start, at the same port as before."""
        env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdout=log, stderr=log, env=env, start_new_session=True)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            RuntimeError: if it ends instead, or takes too long; with the end of its log.
        """
        ends = time.monotonic() + _STARTING
        while time.monotonic() < ends and self._process and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.2)
        raise RuntimeError(f"The server did not come up. The end of {self.log}:\n{self.log.read_text()[-3000:]}")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code == httpx.codes.OK
        except httpx.HTTPError:  # nobody listens yet; who waits sees whether the process has ended
            return False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes: SIGKILL to end them, SIGSTOP to make them silent."""
        assert self._process
        os.killpg(self._process.pid, number)
        if number == signal.SIGKILL:
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """Kill it, if it runs."""
        if self._process:
            self.signal(signal.SIGKILL)


class SGLangProcess(ServerProcess):
    """A SGLang server on CPU, as ``make sglang`` has installed it."""

    def __init__(self, model: str | Path, log: Path, *flags: str) -> None:
        """Choose a port; nothing runs yet.

        Args:
            model: folder of the model.
            log: file that takes what the server prints.
            flags: SGLang's.
        """
        super().__init__(log)
        self.command = [str(PYTHON), str(ROOT / "examples" / "sglang_cpu" / "serve.py"), *flags]
        self.command += ["--model-path", str(model), "--port", str(self.port)]


def free_port() -> int:
    """Return a port of loopback that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
