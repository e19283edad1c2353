"""A stand-in for a SGLang server: the endpoints that the engine uses, in SGLang's forms, with faults on demand.

Tokens come from a distribution that the test gives, so that log-probabilities can be checked against another source.
"""

from __future__ import annotations

import json
import math
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

VOCABULARY = 40
Logits = Callable[[Sequence[int], str, str | None], Any]
"""(tokens so far, folder of the weights, folder of the adapter) -> (V,) logits."""
FAULTS = ("500", "429", "garbage", "half", "nothing", "close", "foreign", "abort", "empty", "nan")
"""What a request can meet instead of an answer. There is also "silence": no answer before ``release``."""
ENDPOINTS = ("generate", "load_lora_adapter", "unload_lora_adapter", "update_weights_from_disk", "flush_cache")


def hashed_logits(tokens: Sequence[int], weights: str, adapter: str | None) -> Any:
    """A distribution that depends on the last three tokens and on the weights."""
    seed = [sum(f"{weights}{adapter}".encode()), *tokens[-3:]]
    return np.random.default_rng(seed).normal(size=VOCABULARY) * 2.0


def log_softmax(logits: Any) -> Any:
    shifted = np.asarray(logits, dtype=np.float64) - np.max(logits)
    return shifted - math.log(np.exp(shifted).sum())


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    errors: list[BaseException]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep what went wrong, except that clients hang up: the tests make them do so."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.errors.append(error)


class StandIn:
    """One server. ``faults`` are used up one per request to ``/generate``; ``bodies`` keeps what was asked."""

    def __init__(self, logits: Logits = hashed_logits, key: str | None = None, context: int = 512) -> None:
        self.logits, self.key, self.context = logits, key, context
        self.faults: deque[str] = deque()
        self.release = threading.Event()
        self.bodies: list[dict[str, Any]] = []
        self.sessions: list[str | None] = []
        self.answered: list[str] = []
        self.calls: list[str] = []
        self.ports: set[int] = set()
        self.after: Callable[[], None] | None = None  # called after each answer
        self.busy = False  # refuses to flush
        self.original_logprobs = False  # as with SGLANG_RETURN_ORIGINAL_LOGPROB
        self.seconds = 0.0  # that each answer takes
        self.workers: list[dict[str, Any]] | None = None  # as a router knows them; it samples as one of them here
        self.info: dict[str, int] | None = None  # how many processes and replicas it says to run
        self.lock = threading.Lock()
        self.port = 0
        self.errors: list[BaseException] = []
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start (again, at the same port): the model as it was, nothing loaded."""
        self.weights, self.label = "base", "default"
        self.adapters: dict[str, str] = {}
        self.seen: set[int] = set()
        self.open: set[socket.socket] = set()
        self.http = _Http(("127.0.0.1", self.port), self._handler())
        self.http.errors = self.errors
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def kill(self) -> None:
        """Break all connections and stop listening."""
        self.http.shutdown()
        self.http.server_close()
        with self.lock:
            for connection in self.open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    # What SGLang's endpoints do. Each returns status and JSON (or text).

    def get(self, path: str) -> tuple[int, Any]:
        if path == "/health":
            return 200, ""
        if path == "/workers" and self.workers is not None:
            return 200, {"workers": self.workers, "total": len(self.workers)}
        if path == "/model_info":
            info = {"model_path": "models/tiny", "tokenizer_path": "models/tiny", "is_generation": True}
            return 200, {**info, "weight_version": self.label}
        if path == "/v1/models":
            return 200, {"object": "list", "data": [{"id": "models/tiny", "max_model_len": self.context}]}
        if path == "/server_info" and self.info is not None:
            return 200, self.info
        return 404, {"detail": "Not Found"}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        name = path.removeprefix("/")
        if name not in ENDPOINTS:
            return 404, {"detail": "Not Found"}
        done: tuple[int, Any] = getattr(self, name)(body)
        return done

    def generate(self, body: dict[str, Any]) -> tuple[int, Any]:
        adapter = body.get("lora_path")
        if adapter is not None and adapter not in self.adapters:
            return 400, {"error": {"message": f"The following requested LoRA adapters are not loaded: {adapter}"}}
        if len(body["input_ids"]) + body["sampling_params"]["max_new_tokens"] > self.context:
            return 400, {"error": {"message": "The input is longer than the model's context length"}}
        label, weights = self.label, self.weights
        rows, top, finish = self._sample(body, weights, self.adapters.get(adapter) if adapter else None)
        tokens = [row[1] for row in rows]
        info = {
            "id": body.get("rid", "made-up"),
            "finish_reason": finish,
            "prompt_tokens": len(body["input_ids"]),
            "completion_tokens": len(rows),
            "cached_tokens": self._cached(body["input_ids"], tokens, f"{label}{adapter}"),
            "weight_version": label,
            "weight_versions": [{"version": label, "start": 0, "end": len(rows)}],
            "output_token_logprobs": rows,
            **({"output_top_logprobs": top} if body.get("top_logprobs_num") else {}),
        }
        return 200, {"text": "…", "output_ids": tokens, "meta_info": info}

    def load_lora_adapter(self, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["lora_name"]
        if name in self.adapters or not (Path(body["lora_path"]) / "adapter_config.json").is_file():
            said = "is already loaded" if name in self.adapters else "has no adapter_config.json"
            return 400, {"success": False, "error_message": f"LoRA adapter {name} {said}"}
        self.adapters[name] = body["lora_path"]
        return 200, {"success": True, "loaded_adapters": self.adapters}

    def unload_lora_adapter(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.adapters.pop(body["lora_name"], None) is None:
            return 400, {"success": False, "error_message": "LoRA adapter is not loaded"}
        return 200, {"success": True, "loaded_adapters": self.adapters}

    def update_weights_from_disk(self, body: dict[str, Any]) -> tuple[int, Any]:
        if not (Path(body["model_path"]) / "config.json").is_file():
            return 400, {"success": False, "message": "Failed to update weights"}
        self.weights, self.label = body["model_path"], body["weight_version"]
        self.seen.clear()
        return 200, {"success": True, "message": "Succeeded to update model weights.", "num_paused_requests": 0}

    def flush_cache(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.busy:
            return 400, "Flush cache failed."
        self.seen.clear()
        return 200, "Cache flushed."

    def _sample(self, body: dict[str, Any], weights: str, adapter: str | None) -> tuple[list[Any], list[Any], Any]:
        asked = body["sampling_params"]
        heat, stops = asked["temperature"] or 1.0, asked.get("stop_token_ids", [])
        uniform = np.random.default_rng(asked.get("sampling_seed", 0))
        tokens, rows, top = list(body["input_ids"]), [], []
        for _ in range(asked["max_new_tokens"]):
            logits = np.asarray(self.logits(tokens, weights, adapter))
            logp = log_softmax(logits / heat)
            cumulative = np.exp(logp).cumsum()
            drawn = int(np.searchsorted(cumulative, uniform.random() * cumulative[-1], side="right"))
            token = min(drawn, len(logp) - 1) if asked["temperature"] else int(logp.argmax())
            shown = log_softmax(logits) if self.original_logprobs else logp
            rows.append([float(shown[token]), token, None])
            if body.get("top_logprobs_num"):
                top.append([[float(shown[i]), int(i), None] for i in np.argsort(-shown)[:2]])
            tokens.append(token)
            if token in stops:
                return rows, top, {"type": "stop", "matched": token}
        return rows, top, {"type": "length", "length": asked["max_new_tokens"]}

    def _cached(self, prompt: Sequence[int], completion: Sequence[int], key: str) -> int:
        """Count the prompt's tokens that an earlier row began with; the last token is always computed."""
        cached, state = 0, hash(key)
        for length, token in enumerate([*prompt, *completion], 1):
            state = hash((state, token))
            if length < len(prompt) and state in self.seen:
                cached = length
            self.seen.add(state)
        if len(self.seen) > 100_000:
            self.seen.clear()
        return cached

    def _handler(self) -> type[Handler]:
        return type("Bound", (Handler,), {"standin": self})


class Handler(BaseHTTPRequestHandler):
    """Speaks HTTP for a stand-in, which a subclass names."""

    standin: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        with self.standin.lock:
            self.standin.open.add(self.connection)
            self.standin.ports.add(self.client_address[1])

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        with self.standin.lock:
            self.standin.open.discard(self.connection)

    def do_GET(self) -> None:
        self._send(*self.standin.get(self.path))

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"] or 0)
        data = self.rfile.read(length)
        if len(data) < length:  # the connection was broken while the request came in
            self.close_connection = True
            return
        body = json.loads(data or b"{}")
        with self.standin.lock:
            self.standin.calls.append(self.path)
            fault = self._noted(body) if self.path == "/generate" else None
        if self.standin.key and self.headers["Authorization"] != f"Bearer {self.standin.key}":
            self._send(401, {"error": f"Unauthorized: {self.headers['Authorization']}"})
        elif fault:
            self._fail(fault, body)
        else:
            time.sleep(self.standin.seconds)
            with self.standin.lock:
                answer = self.standin.post(self.path, body)
                self.standin.answered += [body["rid"]] if answer[0] == 200 and "rid" in body else []
            self._send(*answer)
            if self.standin.after:
                self.standin.after()

    def _noted(self, body: dict[str, Any]) -> str | None:
        self.standin.bodies.append(body)
        self.standin.sessions.append(self.headers["X-SMG-Routing-Key"])
        return self.standin.faults.popleft() if self.standin.faults else None

    def _fail(self, fault: str, body: dict[str, Any]) -> None:
        if fault == "silence":
            self.standin.release.wait(30)
        if fault in ("silence", "close"):
            self.close_connection = True
        elif fault in ("500", "429"):
            self._send(int(fault), {"error": {"message": "no can do"}})
        elif fault in ("garbage", "nothing"):
            self._send(200, "<html>" if fault == "garbage" else "{}")
        else:
            self._spoil(fault, self.standin.generate(body)[1])

    def _spoil(self, fault: str, answer: dict[str, Any]) -> None:
        info = answer["meta_info"]
        spoilt: dict[str, tuple[str, Any]]
        spoilt = {"foreign": ("id", "another"), "abort": ("finish_reason", {"type": "abort", "message": "OOM"})}
        spoilt |= {"empty": ("output_token_logprobs", []), "nan": ("output_token_logprobs", [[None, 3, None]])}
        if fault in spoilt:
            info[spoilt[fault][0]] = spoilt[fault][1]
        data = json.dumps(answer).encode()
        self._begin(200, len(data))
        self.wfile.write(data[: len(data) // 2] if fault == "half" else data)
        self.close_connection = fault == "half"

    def _send(self, status: int, answer: Any) -> None:
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self._begin(status, len(data))
        self.wfile.write(data)

    def _begin(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test reach the stand-in directly, without the machine's proxies and keys."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("DUOLOGUE_API_KEY", raising=False)


@contextmanager
def standin(logits: Logits = hashed_logits, key: str | None = None, context: int = 512) -> Iterator[StandIn]:
    """Run a server for a block."""
    server = StandIn(logits, key, context)
    try:
        yield server
    finally:
        server.release.set()
        server.kill()
    assert not server.errors, server.errors
