"""Requests of an SDK's client within bounds: time and size of a whole answer, no other server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any

from ...addresses import OutOfTime, TimedNetwork
from ...fetching import Limits, deadline, read_within

if TYPE_CHECKING:
    import httpx2

CHAT_BYTES = 16_000_000
"""Largest answer of a chat model, bytes after decoding: one with log probabilities has thousands of
bytes a token."""
IMAGE_BYTES = 128_000_000
"""Largest answer with an image, bytes after decoding."""
FILE = Limits(deadline_s=3600, max_bytes=1_000_000_000)
"""Bounds of a file that a server made for us: the answers of a batch, a clip."""

REDIRECTS = 4
"""Most redirects of a request."""

_HOP = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that no longer hold of a body that was read and decoded."""

_LIMITS: ContextVar[Limits | None] = ContextVar("limits", default=None)


class Redirected(Exception):
    """An answer that sends the request, and what is in it, to a server that nobody named."""


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Other bounds for the requests of a block than their client's own."""
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


def bound(client: Any, max_bytes: int) -> None:
    """Holds every request of an HTTP client to its read timeout, from the first byte sent to the
    last received, to `max_bytes` after decoding, and to its own server.

    The client then raises `httpx2.ReadTimeout`, TooLarge or Redirected.
    """
    send = client.send
    time_network(client)

    @wraps(send)
    def bounded(request: httpx2.Request, **options: Any) -> httpx2.Response:
        return answer_within(send, request, max_bytes, **options)

    client.send = bounded


def time_network(client: Any) -> None:
    """Lets the deadline of a request end each read of a client's sockets.

    A client checks its own timeout at each read, and a server can send a byte a read. One of
    another make is held to the deadline between two pieces of a body only.
    """
    for transport in (client._transport, *client._mounts.values()):
        if network := getattr(getattr(transport, "_pool", None), "_network_backend", None):
            transport._pool._network_backend = TimedNetwork(network)


def answer_within(
    send: Any, request: httpx2.Request, max_bytes: int, follow: bool = True, **options: Any
) -> httpx2.Response:
    """The whole answer to a request, by a client's `send`; a redirect itself unless `follow`.

    Raises as `bound` says.
    """
    import httpx2

    limits = _LIMITS.get() or Limits(_read_timeout(request), max_bytes)
    options |= {"stream": True, "follow_redirects": False}
    try:
        with deadline(limits.deadline_s):
            for _ in range(REDIRECTS + 1):
                response: httpx2.Response = send(request, **options)
                try:
                    if response.next_request is None or not follow:
                        return _whole(response, limits.max_bytes)
                    request = _redirected(response.next_request, request)
                finally:
                    response.close()
    except OutOfTime:
        raise httpx2.ReadTimeout(
            f"no whole answer within {limits.deadline_s:g} s", request=request
        ) from None
    raise Redirected(f"it redirects more than {REDIRECTS} times")


def _redirected(onward: httpx2.Request, request: httpx2.Request) -> httpx2.Request:
    """The next request, if it goes to the same server. Raises Redirected."""
    secure = (request.url.scheme, onward.url.scheme) != ("https", "http")
    if onward.url.netloc != request.url.netloc or not secure:
        there = f"{onward.url.scheme}://{onward.url.netloc.decode()}"
        raise Redirected(f"it redirects to another server, {there}")
    return onward


def _whole(response: httpx2.Response, max_bytes: int) -> httpx2.Response:
    """The response with its body read and decoded. Raises TooLarge, OutOfTime."""
    import httpx2

    body = read_within(response.iter_bytes(), max_bytes)
    headers = [(n, v) for n, v in response.headers.multi_items() if n.lower() not in _HOP]
    whole = httpx2.Response(
        response.status_code, headers=headers, content=body, request=response.request
    )
    response.close()
    whole.elapsed = response.elapsed
    return whole


def _read_timeout(request: httpx2.Request) -> float:
    seconds = request.extensions.get("timeout", {}).get("read")
    return float("inf") if seconds is None else float(seconds)
