"""Whether a server can be used, asked before the first call: its list of models, its key, its
waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from refusals import raises

from counterprior.agents.backends import open_backend
from counterprior.agents.chat import BackendError

KEY = "sk-test-4f1c0de"
PROTOCOLS = pytest.mark.parametrize("protocol", ["openai", "anthropic"])
VARIABLES = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
MODELS = {"data": [{"id": "m-1", "type": "model", "object": "model"}]}
REJECTED = {"openai": "/chat/completions", "anthropic": "/v1/messages"}


@pytest.fixture
def run(cli: Callable[..., Any], text_release: Path, tmp_path: Path) -> Callable[[str], Any]:
    """Draws and judges one prompt of each order, with a judge."""

    def evaluate(judge: str) -> Any:
        return cli(
            *("eval", "--suite", "t2i_homogenization", "--data", text_release, "--limit", 1),
            *("--generator", "render:?order_bias=1", "--judge", judge, "--out", tmp_path / "run"),
        )

    return evaluate


@pytest.mark.slow
@PROTOCOLS
def test_a_run_waits_for_a_server_that_is_busy_when_it_is_checked(
    server: Any, protocol: str, run: Callable[[str], Any], fault: Any
) -> None:
    server.answer = lambda body: "1"
    server.listings["/v1/models"] = MODELS
    server.list_faults.append(fault(429, {"retry-after-ms": "600"}))
    done = run(server.spec(protocol))
    assert done.returncode == 0, done.stderr
    assert " 2 calls, 0 replayed, 1 retries, 0 refused, 0 invalid, 0 errors" in done.stderr
    assert [asked.path for asked in server.fetched] == ["/v1/models"] * 2
    assert server.paid == 2


@PROTOCOLS
def test_a_rejected_key_is_named_by_its_variable_and_asked_about_once(
    server: Any, protocol: str, run: Callable[[str], Any], fault: Any
) -> None:
    server.list_faults.append(fault(401, message=f"no such key: {KEY}"))
    done = run(server.spec(protocol))
    assert done.returncode not in (0, 70) and KEY not in done.stderr, done.stderr
    where = server.url.removeprefix("http://")
    assert f"{where}: HTTP 401" in done.stderr and VARIABLES[protocol] in done.stderr
    assert len(server.fetched) == 1 and not server.asked
    assert "images: 1" not in done.stderr


@PROTOCOLS
def test_a_missing_key_is_named_by_its_variable(
    server: Any, protocol: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLES[protocol])
    server.list_faults.append(fault(401))
    with raises("server-error", f"{VARIABLES[protocol]} is not set", error=BackendError):
        open_backend(server.spec(protocol)).check()


@PROTOCOLS
@pytest.mark.parametrize("status", [408, 409, 429, 502, 503, 504, 529])
def test_what_may_pass_is_waited_for_as_with_a_call(
    server: Any, protocol: str, status: int, fault: Any, naps: list[float]
) -> None:
    server.listings["/v1/models"] = MODELS
    server.list_faults += [fault(status), fault(status, {"retry-after": "7"})]
    assert open_backend(server.spec(protocol)).check() == 2
    assert 0.3 <= naps[0] <= 0.5 and naps[1:] == [7.0]
    assert len(server.fetched) == 3 and not server.asked


@PROTOCOLS
@pytest.mark.parametrize("status", [500, 501])
def test_a_list_that_a_server_cant_give_is_not_waited_for(
    server: Any, protocol: str, status: int, fault: Any, naps: list[float]
) -> None:
    server.list_faults.append(fault(status, message="no cache folder"))
    server.faults.append(fault(400))
    assert open_backend(server.spec(protocol)).check() == 0
    assert not naps and len(server.fetched) == 1
    asked = [request.path for request in server.asked]
    assert [path.removeprefix("/v1") for path in asked] == (
        [REJECTED[protocol].removeprefix("/v1")] if status == 500 else []
    )


@PROTOCOLS
def test_a_server_that_fails_for_a_moment_is_asked_again(
    server: Any, protocol: str, fault: Any, naps: list[float]
) -> None:
    server.list_faults.append(fault(500))
    server.faults += [fault(500), fault(400)]
    assert open_backend(server.spec(protocol)).check() == 1
    assert len(naps) == 1 and len(server.fetched) == 1 and len(server.asked) == 2


@PROTOCOLS
def test_a_server_that_stays_busy_is_given_up_by_address(
    server: Any, protocol: str, fault: Any, naps: list[float]
) -> None:
    server.list_faults += [fault(429)] * 4
    server.faults.append(fault(429))
    where = server.url.removeprefix("http://")
    with raises("server-unreachable", "4 attempts", f"{where}: HTTP 429", error=BackendError):
        open_backend(server.spec(protocol)).check()
    assert len(naps) == 3 and len(server.fetched) == 4 and len(server.asked) == 1


@PROTOCOLS
def test_a_wait_of_hours_is_not_begun(
    server: Any, protocol: str, fault: Any, naps: list[float]
) -> None:
    server.list_faults.append(fault(429, {"retry-after": "7200"}))
    server.faults.append(fault(429))
    with raises("server-unreachable", "1 attempts", "429", error=BackendError):
        open_backend(server.spec(protocol)).check()
    assert not naps


@PROTOCOLS
def test_a_request_that_tells_a_model_apart_is_waited_for(
    server: Any, protocol: str, fault: Any, naps: list[float]
) -> None:
    server.listings["/v1/models"] = {"data": [{"id": "m-2"}]}
    server.faults += [fault(503), fault(400, message="messages: required")]
    assert open_backend(server.spec(protocol)).check() == 1
    assert len(naps) == 1 and len(server.asked) == 2


class Listing:
    """A server that answers by path: (status, body); everything else is 404."""

    def __init__(self, answers: dict[str, tuple[int, str]]) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                asked.append(f"{self.command} {self.path}")
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, body = answers.get(asked[-1], (404, "no such route"))
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

        self.asked = asked
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def listing(server: Any) -> Iterator[Callable[..., Listing]]:
    opened: list[Listing] = []

    def open_listing(answers: dict[str, tuple[int, str]]) -> Listing:
        opened.append(Listing(answers))
        return opened[-1]

    yield open_listing
    for each in opened:
        each.http.shutdown()
        each.http.server_close()


LIST, ASKED = "GET /v1/models", {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


def spec_of(protocol: str, url: str) -> str:
    return f"{protocol}:m@{url}{'/v1' if protocol == 'openai' else ''}?attempts=1&timeout=5"


@PROTOCOLS
@pytest.mark.parametrize(
    "answers",
    [
        {LIST: (200, '{"data": []}')},
        {LIST: (405, "")},
        {LIST: (501, "")},
        {LIST: (429, "slow down"), "POST": (400, "messages: required")},
        {LIST: (503, "loading"), "POST": (422, "messages: required")},
        {"POST": (400, "messages: required")},  # no list of models, but the right URL
        {LIST: (500, "no cache folder"), "POST": (422, "messages: required")},
        {LIST: (400, "no list here"), "POST": (400, "messages: required")},
        {LIST: (200, '{"data": [{"id": "m"}]}')},
        {LIST: (200, '{"data": [{"id": "M-full-name"}]}'), "POST": (400, "messages: required")},
        {LIST: (200, '{"data": [{"id": "M-full-name"}]}'), "POST": (500, "no messages[0]")},
        {LIST: (400, "no list here"), "POST": (500, "no messages[0]")},
    ],
)
def test_a_server_that_answers_passes_the_check(
    listing: Callable[..., Listing], protocol: str, answers: dict[str, tuple[int, str]]
) -> None:
    known = {k if k != "POST" else f"POST {ASKED[protocol]}": v for k, v in answers.items()}
    served = listing(known)
    open_backend(spec_of(protocol, served.url)).check()
    assert served.asked[0] == LIST and len(served.asked) == (2 if "POST" in answers else 1)


@PROTOCOLS
@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({LIST: (401, f"wrong key {KEY}")}, ("server-error", "127.0.0.1", "401")),
        ({LIST: (403, "not yours")}, ("server-error", "403", "not yours")),
        ({LIST: (503, "loading")}, ("server-unreachable", "127.0.0.1", "503", "loading")),
        ({LIST: (503, "loading"), "POST": (401, "who?")}, ("server-error", "127.0.0.1", "401")),
        (
            {LIST: (429, "slow down"), "POST": (429, "slow down")},
            ("server-unreachable", "127.0.0.1", "429", "slow down"),
        ),
        (
            {LIST: (500, "no cache folder"), "POST": (500, "no cache folder")},
            ("server-unreachable", "127.0.0.1", "500", "no cache folder"),
        ),
        ({}, ("server-error", "404")),
        # LiteLLM's proxy without a database, asked with another key than its own
        (
            {LIST: (400, "No connected db."), "POST": (400, "No connected db.")},
            ("server-error", "127.0.0.1", "No connected db"),
        ),
        (
            {
                LIST: (200, '{"data": [{"id": "mm-1"}, {"id": "mm-2"}]}'),
                "POST": (400, '{"error": {"message": "Invalid model name passed in model=m"}}'),
            },
            ("server-error", "127.0.0.1", "Invalid model name", "mm-1, mm-2"),
        ),
        (
            {LIST: (200, '{"data": [{"id": "x"}]}'), "POST": (404, "no model m")},
            ("server-error", "404", "lists x"),
        ),
    ],
)
def test_a_server_that_cant_be_used_fails_the_check(
    listing: Callable[..., Listing],
    protocol: str,
    answers: dict[str, tuple[int, str]],
    reason: tuple[str, ...],
) -> None:
    known = {k if k != "POST" else f"POST {ASKED[protocol]}": v for k, v in answers.items()}
    with raises(*reason, error=BackendError):
        open_backend(spec_of(protocol, listing(known).url)).check()


@PROTOCOLS
def test_a_server_that_is_down_fails_the_check_at_once(
    server: Any, protocol: str, naps: list[float]
) -> None:
    backend = open_backend(server.spec(protocol))
    server.close()
    with raises("server-unreachable", "127.0.0.1", error=BackendError):
        backend.check()
    assert not naps and not server.asked
