"""Batches over the wire: sent once, waited for after a crash, and only ever a shortcut."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents import batch as batches
from counterprior.agents.backends import open_backend
from counterprior.agents.budget import Budget, BudgetError, Price, PriceTable
from counterprior.agents.caller import Answer, Call, Caller
from counterprior.agents.chat import BackendError, ChatRequest
from counterprior.agents.ledger import DriftError, Ledger
from counterprior.agents.session import SessionSettings, open_session

PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])
PRICES = PriceTable(
    {f"{kind}:m": Price(Decimal(1), Decimal(1)) for kind in ("openai", "anthropic")}
)


class BatchServer:
    """Both batch interfaces; a batch ends when it was looked at `looks` times."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.singles = 0
        self.looks = 2
        self.left_out: set[str] = set()
        self.fail = ""
        self._file = b""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def caller(self, protocol: str, ledger: Ledger, max_usd: str = "100") -> Caller:
        root = self.url + "/v1" if protocol == "openai" else self.url
        backend = open_backend(f"{protocol}:m@{root}?attempts=2&timeout=5")
        return Caller(backend, ledger, Budget(PRICES, Decimal(max_usd)), concurrency=2, batch=True)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][-1]["content"][0]["text"].removeprefix("u")
        if "system" in body:
            return {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 9, "output_tokens": 1},
            }
        message = {"role": "assistant", "content": text}
        return {
            "id": "c",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        }

    def results(self, protocol: str) -> Iterator[dict[str, Any]]:
        for item in reversed(self.sent[-1]["items"]):  # providers promise no order
            name, body = item["custom_id"], item.get("body") or item["params"]
            lost = body["messages"][-1]["content"][0]["text"] in self.left_out
            if protocol == "openai":
                response = {"status_code": 500 if lost else 200, "body": self.answer(body)}
                yield {"id": "r", "custom_id": name, "response": response, "error": None}
            else:
                expired = {"type": "expired"}
                done = {"type": "succeeded", "message": self.answer(body)}
                yield {"custom_id": name, "result": expired if lost else done}

    def state(self, protocol: str) -> dict[str, Any]:
        batch = self.sent[-1]
        batch["looks"] += 1
        over = batch["looks"] >= self.looks
        if protocol == "openai":
            status = self.fail or ("completed" if over else "in_progress")
            return {
                "id": "b1",
                "object": "batch",
                "endpoint": "/v1/chat/completions",
                "status": status,
                "input_file_id": "f1",
                "completion_window": "24h",
                "created_at": 1,
                "output_file_id": "f2" if over else None,
            }
        return {
            "id": "b1",
            "type": "message_batch",
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "request_counts": {},
            "processing_status": "ended" if over else "in_progress",
            "results_url": f"{self.url}/v1/messages/batches/b1/results",
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def reply(self, data: Any, status: int = 200) -> None:
                content = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:
                if self.path.endswith(("/results", "/content")):
                    protocol = "anthropic" if "results" in self.path else "openai"
                    lines = [json.dumps(each) for each in server.results(protocol)]
                    self.reply(("\n".join(lines) + "\n").encode())
                else:
                    self.reply(server.state("anthropic" if "messages" in self.path else "openai"))

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/files":
                    part = re.compile(rb"\r\n\r\n(\{.*?\})\r?\n\r?\n?--", re.DOTALL)
                    server._file = part.findall(raw)[0]
                    self.reply(
                        {
                            "id": "f1",
                            "object": "file",
                            "bytes": 1,
                            "created_at": 1,
                            "filename": "b",
                            "purpose": "batch",
                            "status": "processed",
                        }
                    )
                elif self.path == "/v1/batches":
                    items = [json.loads(line) for line in server._file.splitlines()]
                    server.sent.append({"items": items, "looks": -9})
                    self.reply({**server.state("openai")})
                    server.sent[-1]["looks"] = 0
                elif self.path.endswith("/batches"):
                    if server.fail == "refuse":
                        self.connection.close()
                        return
                    server.sent.append({"items": json.loads(raw)["requests"], "looks": -9})
                    self.reply(server.state("anthropic"))
                    server.sent[-1]["looks"] = 0
                else:
                    server.singles += 1
                    self.reply(server.answer(json.loads(raw)))

        return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setattr(batches, "_sleep", lambda seconds: None)
    monkeypatch.setattr("counterprior.agents.retry._sleep", lambda seconds: None)
    served = BatchServer()
    yield served
    served.close()


def number(text: str) -> int:
    if text == "3":
        raise ValueError("no three")
    return int(text)


CALLS = [Call(f"law/{n}", ChatRequest("w", "s", (f"u{n}",), 20), int) for n in range(12)]


def values(answers: list[Answer[int]]) -> list[int | None]:
    return [answer.value for answer in answers]


@PROTOCOLS
def test_first_attempts_go_by_the_batch(server: BatchServer, protocol: str, tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.jsonl") as ledger:
        caller = server.caller(protocol, ledger)
        assert values(caller.call_many(CALLS)) == list(range(12))
        assert (len(server.sent), len(server.sent[0]["items"]), server.singles) == (1, 12, 0)
        assert caller.budget.spent == Decimal(12 * 10) / 1_000_000
        assert values(caller.call_many(CALLS)) == list(range(12))
        published = list(ledger.canonical_lines())
    assert len(server.sent) == 1
    # Singly asked, the same ledger is published.
    with Ledger(tmp_path / "single.jsonl") as ledger:
        single = server.caller(protocol, ledger)
        Caller(single.backend, ledger, single.budget).call_many(CALLS)
        assert server.singles == 12
        assert list(ledger.canonical_lines()) == published


@PROTOCOLS
def test_asks_one_by_one_after_an_incomplete_batch(
    server: BatchServer, protocol: str, tmp_path: Path
) -> None:
    server.left_out = {"u4", "u7"}
    with Ledger(tmp_path / "l.jsonl") as ledger:
        caller = server.caller(protocol, ledger)
        assert values(caller.call_many(CALLS)) == list(range(12))
    assert (len(server.sent), server.singles) == (1, 2)


@PROTOCOLS
def test_a_rejected_answer_is_asked_again_singly(
    server: BatchServer, protocol: str, tmp_path: Path
) -> None:
    calls = [Call(call.id, call.request, number) for call in CALLS]
    with Ledger(tmp_path / "l.jsonl") as ledger:
        answers = server.caller(protocol, ledger).call_many(calls)
    assert [a.status for a in answers].count("invalid") == 1 and server.singles == 1


@PROTOCOLS
def test_an_interrupted_run_waits_for_the_batch_it_has_paid(
    server: BatchServer, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "_sleep", interrupt)
    with Ledger(tmp_path / "l.jsonl") as ledger, pytest.raises(KeyboardInterrupt):
        server.caller(protocol, ledger).call_many(CALLS)
    monkeypatch.setattr(batches, "_sleep", lambda seconds: None)
    with Ledger(tmp_path / "l.jsonl") as ledger:
        assert len(ledger) == 0 and len(ledger.batches()) == 1
        assert values(server.caller(protocol, ledger).call_many(CALLS)) == list(range(12))
    assert (len(server.sent), server.singles) == (1, 0)


@pytest.mark.parametrize("change", ["request", "model"])
def test_answers_of_a_batch_are_none_to_what_has_changed_since(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "_sleep", interrupt)
    with Ledger(tmp_path / "l.jsonl") as ledger, pytest.raises(KeyboardInterrupt):
        server.caller("openai", ledger).call_many(CALLS)
    monkeypatch.setattr(batches, "_sleep", lambda seconds: None)
    calls = [replace(c, request=replace(c.request, max_tokens=6)) for c in CALLS]
    with Ledger(tmp_path / "l.jsonl") as ledger:
        caller = server.caller("openai", ledger)
        if change == "model":
            caller.backend = open_backend(f"openai:other@{server.url}/v1")
        with raises("changed-call", "batch b1", error=DriftError):
            caller.call_many(calls if change == "request" else CALLS)
        assert len(ledger) == 0
        # Undone, the run goes on with what it has paid.
        assert values(server.caller("openai", ledger).call_many(CALLS)) == list(range(12))
    assert (len(server.sent), server.singles) == (1, 0)


def test_a_batch_of_an_earlier_version_is_read_back(
    server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_sleep", lambda seconds: None)
    path = tmp_path / "l.jsonl"
    with Ledger(path) as ledger:
        server.caller("openai", ledger).call_many(CALLS)
    ids = [f"{call.id}/attempt0" for call in CALLS]
    path.write_text(json.dumps({"batch": "b1", "calls": ids}) + "\n")
    with Ledger(path) as ledger:
        assert values(server.caller("openai", ledger).call_many(CALLS)) == list(range(12))
    assert (len(server.sent), server.singles) == (1, 0)


@PROTOCOLS
def test_a_batch_that_passes_the_cap_is_not_sent(
    server: BatchServer, protocol: str, tmp_path: Path
) -> None:
    with Ledger(tmp_path / "l.jsonl") as ledger:
        caller = server.caller(protocol, ledger, "0.001")
        with raises("over-budget", error=BudgetError):
            caller.call_many(CALLS)
    assert not server.sent


def test_a_failed_batch_ends_the_run(server: BatchServer, tmp_path: Path) -> None:
    server.fail = "failed"
    with Ledger(tmp_path / "l.jsonl") as ledger, raises("batch-failed", "b1", error=BackendError):
        server.caller("openai", ledger).call_many(CALLS)
    server.fail = ""
    with Ledger(tmp_path / "l.jsonl") as ledger:
        assert values(server.caller("openai", ledger).call_many(CALLS)) == list(range(12))
    assert (len(server.sent), server.singles) == (2, 0)


def test_rejects_a_backend_without_batches(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("[]")
    settings = SessionSettings(tmp_path / "l.jsonl", f"scripted:{tmp_path / 's.json'}", batch=True)
    with open_session(settings) as session, raises("unsupported", "--batch"):
        session.author()
    with open_session(replace(settings, replay=True)) as session:
        session.recorded({"kind": "scripted", "model": "s"})


def test_a_batch_that_may_have_arrived_is_not_sent_twice(
    server: BatchServer, tmp_path: Path
) -> None:
    server.fail = "refuse"
    with (
        Ledger(tmp_path / "l.jsonl") as ledger,
        raises("server-unreachable", error=BackendError),
    ):
        server.caller("anthropic", ledger).call_many(CALLS)
