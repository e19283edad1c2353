"""A proxy on loopback that lets requests to a real server through, or spoils them on demand."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

FAULTS = ("500", "429", "garbage", "half", "nothing", "close", "lost", "silence")
"""``lost``: the server's answer is dropped; ``nothing``: an empty object; ``silence``: no answer for some seconds."""
_SILENCE = 8.0


class FaultyProxy(ThreadingHTTPServer):
    """Listens at ``url``. ``faults`` are used up one per POST to a path that ends with ``spoils``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str, spoils: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.spoils = target, spoils
        self.faults: deque[str] = deque()
        self.passed = 0
        """Answers that a client got whole."""
        self.lock = threading.Lock()
        self.client = httpx.Client(timeout=120)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_fault(self, path: str) -> str | None:
        with self.lock:
            return self.faults.popleft() if self.faults and path.endswith(self.spoils) else None

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._forward(None)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        fault = self.server.next_fault(self.path)
        if fault in ("close", "silence"):
            time.sleep(_SILENCE if fault == "silence" else 0)
            self.close_connection = True
        elif fault in ("500", "429"):
            self._send(int(fault), b'{"error": {"message": "no can do"}}')
        elif fault in ("garbage", "nothing"):
            self._send(200, b"<html>" if fault == "garbage" else b"{}")
        else:
            self._forward(data, fault)

    def _forward(self, data: bytes | None, fault: str | None = None) -> None:
        kept = {"Content-Type": self.headers.get("Content-Type", "application/json")}
        sent = self.server.client.request(self.command, self.server.target + self.path, content=data, headers=kept)
        if fault == "lost":
            self.close_connection = True
            return
        if sent.is_success and fault is None:  # before it goes out: a client that has it may look at the count
            with self.server.lock:
                self.server.passed += self.path.endswith(self.server.spoils)
        self._send(sent.status_code, sent.content, half=fault == "half")

    def _send(self, status: int, body: bytes, half: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if half else body)
        self.close_connection = half

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def proxy(target: str, spoils: str) -> Iterator[FaultyProxy]:
    """Run a proxy for a block."""
    server = FaultyProxy(target, spoils)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        with suppress(OSError):
            server.shutdown()
            server.server_close()
        server.client.close()
