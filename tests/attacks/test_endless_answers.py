"""Servers that answer for ever, with too much, or from elsewhere: an item fails, and the run goes
on."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from one_answer import KEY, judged, openai
from refusals import raises

from counterprior.agents.backends import bounded
from counterprior.agents.chat import BackendError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import open_generator

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Raw:
    """A server of bytes: what it sends after each request is `says`, of a socket."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.says: Callable[[socket.socket], None] = lambda connection: None
        self.closing = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += connection.recv(65536)
            head, _, body = asked.partition(b"\r\n\r\n")
            (length,) = [
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            ] or [0]
            while len(body) < length:
                body += connection.recv(65536)
            self.asked.append(head)
            with suppress(OSError):  # where the client is gone
                self.says(connection)

    def close(self) -> None:
        self.closing.set()
        self._socket.close()

    def drip(self, start: bytes, piece: bytes) -> Callable[[socket.socket], None]:
        """Sends `start`, then `piece` every 50 ms until the test is over."""

        def says(connection: socket.socket) -> None:
            connection.sendall(start)
            while not self.closing.wait(0.05):
                connection.sendall(piece)

        return says


def whole(head: bytes, body: bytes) -> Callable[[socket.socket], None]:
    length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)

    def says(connection: socket.socket) -> None:
        connection.sendall(head + length)
        connection.sendall(body)

    return says


@pytest.fixture
def raw(monkeypatch: pytest.MonkeyPatch) -> Iterator[Raw]:
    for library in ("anthropic", "openai"):
        pytest.importorskip(library)
        monkeypatch.setenv(f"{library.upper()}_API_KEY", KEY)
    monkeypatch.setattr("counterprior.agents.retry._sleep", lambda seconds: None)
    server = Raw()
    yield server
    server.close()


def spec(raw: Raw, protocol: str, options: str) -> str:
    root = "/v1" if protocol == "openai" else ""
    return f"{protocol}:m@http://127.0.0.1:{raw.port}{root}?max_tokens=10&{options}"


DRIPS = {
    "body": (OK + b"content-length: 1000000000\r\n\r\n{", b" "),
    "endless body": (OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "headers": (OK, b"x: y\r\n"),
    "a header": (OK + b"x: ", b"y"),
    "status": (b"HTTP/1.1 ", b"2"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("where", DRIPS)
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_an_answer_has_a_deadline_as_a_whole(
    protocol: str, where: str, raw: Raw, tmp_path: Path
) -> None:
    raw.says = raw.drip(*DRIPS[where])
    found, spent = judged(spec(raw, protocol, "timeout=0.2&attempts=1"), tmp_path)
    assert found.label == "error" and "no answer" in found.raw, found
    assert len(raw.asked) == 1 and spent == 10  # at its worst case


def test_time_of_one_answer_is_not_time_of_the_next(raw: Raw, tmp_path: Path) -> None:
    def slow(connection: socket.socket) -> None:
        time.sleep(0.25)
        whole(OK, openai().encode())(connection)

    raw.says = slow
    for number in range(3):  # each within its own time, longer than that together
        found, _ = judged(spec(raw, "openai", "timeout=0.5&attempts=1"), tmp_path / f"{number}")
        assert found.label == "first_left"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity", "gzip, gzip"])
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_an_answer_is_measured_after_decoding(
    protocol: str, encoding: str, raw: Raw, tmp_path: Path
) -> None:
    body = b" " * 40_000_000
    if encoding == "deflate":
        body = zlib.compress(body)
    for _ in range(encoding.count("gzip")):
        body = gzip.compress(body, 6)
    raw.says = whole(OK + f"content-encoding: {encoding}\r\n".encode(), body)
    tracemalloc.start()
    found, spent = judged(spec(raw, protocol, "timeout=60&attempts=4"), tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.label == "error" and "16,000,000 bytes" in found.raw, found
    assert peak < 3 * bounded.CHAT_BYTES and len(raw.asked) == 1 and spent == 10


@pytest.mark.parametrize("status", [400, 500])
def test_so_is_a_rejection(status: int, raw: Raw, tmp_path: Path) -> None:
    head = f"HTTP/1.1 {status} No\r\ncontent-encoding: gzip\r\n".encode()
    raw.says = whole(head, gzip.compress(b"{" * 20_000_000))
    found, _ = judged(spec(raw, "openai", "timeout=60&attempts=1"), tmp_path)
    assert found.label == "error" and "16,000,000 bytes" in found.raw, found


def test_an_image_may_be_larger_than_a_text(raw: Raw) -> None:
    generator = open_generator(f"openai-image:m@http://127.0.0.1:{raw.port}/v1?attempts=1")
    large = json.dumps({"data": [{"b64_json": "A" * (bounded.CHAT_BYTES + 4)}]})
    raw.says = whole(OK, large.encode())
    with raises("unreadable-image", "the image is not a readable image", error=GeneratorError):
        generator.generate(ImageRequest("a dog", 7))


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_to_a_server_that_nobody_named(
    status: int, protocol: str, raw: Raw, tmp_path: Path
) -> None:
    other = Raw()
    try:
        there = f"http://127.0.0.1:{other.port}/v1/elsewhere"
        raw.says = whole(f"HTTP/1.1 {status} Go\r\nlocation: {there}\r\n".encode(), b"")
        other.says = whole(OK, openai().encode())
        found, _ = judged(spec(raw, protocol, "attempts=4"), tmp_path)
        assert found.label == "error" and f"another server, http://127.0.0.1:{other.port}" in (
            found.raw
        )
        assert len(raw.asked) == 1 and other.asked == []
    finally:
        other.close()


def test_a_server_may_redirect_to_itself_for_a_while(raw: Raw, tmp_path: Path) -> None:
    def says(connection: socket.socket) -> None:
        if len(raw.asked) == 1:
            whole(b"HTTP/1.1 307 Go\r\nlocation: /v2/chat\r\n", b"")(connection)
        else:
            whole(OK, openai().encode())(connection)

    raw.says = says
    found, _ = judged(spec(raw, "openai", "attempts=1"), tmp_path / "a")
    assert found.label == "first_left" and len(raw.asked) == 2
    assert raw.asked[1].startswith(b"POST /v2/chat")
    raw.says = whole(b"HTTP/1.1 307 Go\r\nlocation: /v1/again\r\n", b"")
    found, _ = judged(spec(raw, "openai", "attempts=1"), tmp_path / "b")
    assert found.label == "error" and "redirects more than 4 times" in found.raw


def test_a_check_is_bounded_too(raw: Raw) -> None:
    from counterprior.agents.backends import open_backend

    raw.says = raw.drip(*DRIPS["headers"])
    with raises("server-unreachable", "is the server up?", error=BackendError):
        open_backend(spec(raw, "openai", "timeout=0.3")).check()
