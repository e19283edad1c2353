"""A server on this machine that speaks OpenAI's protocol and answers as a test tells it to."""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from duologue.engines import OpenAIChat, Sampling
from duologue.types import Message

Answer = tuple[int, str]


def say(text: str | None) -> Answer:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]})


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that hung up: the tests make them do so."""


class Server:
    """Answers POSTs with ``answer(n, body)``, n counting from 0, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer: Callable[[int, dict[str, Any]], Answer | None] = lambda n, body: say("hello")
        self.listed: Answer = (200, json.dumps({"data": [{"id": "served-model"}, {"id": "other"}]}))
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.ports: set[int] = set()
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.http = QuietServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.paths.append(self.path)
                self._send(*server.listed)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    n = len(server.bodies)
                    server.bodies.append(body)
                    server.keys.append(self.headers["Authorization"])
                    server.ports.add(self.client_address[1])
                    server.paths.append(self.path)
                answer = server.answer(n, body)
                if answer is None:  # hang up without a word
                    self.close_connection = True
                    return
                self._send(*answer)

            def _send(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


def ask(model: OpenAIChat, texts: Sequence[str] = ("hi",), sampling: Sampling | None = None) -> list[str]:
    conversations = [[Message(role="user", content=text)] for text in texts]
    return model.chat(conversations, sampling or Sampling(), range(len(texts)))
