"""A loopback server that speaks both protocols and misbehaves as told."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

KEY = "sk-test-4f1c0de"


@dataclass
class Fault:
    """What the server does to one request instead of answering it well."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "as told"
    delay: float = 0.0
    cut: bool = False
    """Half of the body, then the connection ends."""
    torn: bool = False
    """A whole HTTP response whose JSON stops in the middle."""
    finish: str = ""
    """`refusal` or `length`, in either protocol."""
    without: str = ""
    """A key to leave out of the response."""


@dataclass
class Asked:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def user_text(body: dict[str, Any]) -> str:
    """The user texts of a request of either protocol."""
    content = body["messages"][-1]["content"]
    return "\n".join(part["text"] for part in content if part["type"] == "text")


class WireServer:
    """Both protocols on one port; every request that was answered in full counts as paid."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.paid = 0
        self.faults: deque[Fault | None] = deque()
        self.answer: Callable[[dict[str, Any]], str] = lambda body: "Yes"
        self.before: Callable[[int], None] = lambda number: None
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def spec(self, protocol: str, options: str = "attempts=4&timeout=5") -> str:
        root = self.url + "/v1" if protocol == "openai" else self.url
        return f"{protocol}:m-1@{root}?{options}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _reply(self, path: str, body: dict[str, Any], fault: Fault) -> dict[str, Any]:
        if fault.status >= 400:
            return {"error": {"message": fault.message, "type": "told"}}
        text = self.answer(body)
        if "/chat/completions" in path:
            message = {"role": "assistant", "content": text}
            if fault.finish == "refusal":
                message |= {"content": None, "refusal": "I can't help with that."}
            reason = {"length": "length"}.get(fault.finish, "stop")
            choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reason}
            if body.get("logprobs"):
                top = [{"token": "1", "logprob": -0.2}, {"token": "2", "logprob": -1.8}]
                token = {"token": "1", "logprob": -0.2, "top_logprobs": top}
                choice["logprobs"] = {"content": [token]}
            return {"id": "c", "choices": [choice], "usage": OPENAI_USAGE}
        stop = {"refusal": "refusal", "length": "max_tokens"}.get(fault.finish, "end_turn")
        content = [{"type": "text", "text": text}]
        return {"id": "m", "content": content, "stop_reason": stop, "usage": ANTHROPIC_USAGE}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.asked.append(Asked(self.path, dict(self.headers), body))
                    number = len(server.asked)
                    fault = (server.faults.popleft() if server.faults else None) or Fault()
                server.before(number)
                time.sleep(fault.delay)
                reply = server._reply(self.path, body, fault)
                reply.pop(fault.without, None)
                content = json.dumps(reply).encode()
                if fault.torn:
                    content = content[: len(content) // 2]
                self.send_response(fault.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                for name, value in fault.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if fault.cut:
                    self.wfile.write(content[: len(content) // 2])
                    self.wfile.flush()
                    self.close_connection = True
                    self.connection.close()
                    return
                with server._lock:
                    server.paid += fault.status == 200
                self.wfile.write(content)

            def handle(self) -> None:
                # The client was killed, or the fault cut the connection.
                with suppress(ConnectionError, ValueError):
                    super().handle()

        return Handler


OPENAI_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 100},
}
ANTHROPIC_USAGE = {
    "input_tokens": 20,
    "output_tokens": 30,
    "cache_creation_input_tokens": 60,
    "cache_read_input_tokens": 40,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    """A fresh server, and keys that must never be seen anywhere else."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    served = WireServer()
    yield served
    served.close()


@pytest.fixture
def fault() -> type[Fault]:
    return Fault


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, taken at once instead."""
    taken: list[float] = []
    monkeypatch.setattr("counterprior.agents.retry._sleep", taken.append)
    return taken
