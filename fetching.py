"""Fetches files from addresses that somebody else gave: only public ones, within bounds.

Names are resolved and checked as in `addresses`; redirects, size, time and encodings are bounded.
"""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .addresses import (
    DEADLINE,
    CheckedNetwork,
    OutOfTime,
    RefusedAddress,
    Resolve,
    UnknownHost,
    resolve,
    seconds_left,
)

if TYPE_CHECKING:
    import httpcore2
    import httpx2

USER_AGENT = "counterprior-corpus-miner/1 (research; honors X-Robots-Tag noai and noindex)"
"""User agent of the miner; `DownloadSettings.contact` is added."""

AGENT_NAME = "counterprior"
"""The agent name that an X-Robots-Tag can address."""

OPT_OUTS = frozenset(("noai", "noimageai", "noindex", "noimageindex"))
"""X-Robots-Tag directives that forbid this use."""

_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))

STRAINED = frozenset(
    {"dns", "connect", "timeout", "protocol"} | {f"http_{status}" for status in _TRANSIENT}
)
"""Reasons that say that a host, or the way to it, has too much to do."""


@dataclass(frozen=True)
class Limits:
    """What an answer of a stranger's server may cost."""

    deadline_s: float = 15.0
    """Seconds for one attempt, from resolving the name to the last byte, including redirects."""
    max_bytes: int = 20_000_000
    """Largest body in bytes, after decoding."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Ends what is sent and received within the block by OutOfTime once `seconds` are over."""
    token = DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        DEADLINE.reset(token)


class TooLarge(Exception):
    """A body of more bytes than are taken."""


def read_within(
    pieces: Iterable[bytes], max_bytes: int, check: Callable[[bytes], None] | None = None
) -> bytes:
    """A body from its decoded pieces, none of which is larger than a few MB.

    check: called with what is there after each piece. Raises TooLarge, OutOfTime and what `check`
    raises.
    """
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > max_bytes:
            raise TooLarge(f"more than {max_bytes:,} bytes")
        seconds_left(None)
        if check is not None:
            check(bytes(body[:16]))
    return bytes(body)


@dataclass(frozen=True)
class DownloadSettings(Limits):
    """How politely and how cautiously files are fetched."""

    redirects: int = 4
    """Most redirects to follow; each is checked like the first address."""
    tries: int = 2
    """Attempts for transient failures: 408, 429, 5xx, failed names or connections."""
    wait_s: float = 2.0
    """Seconds before another attempt without a Retry-After."""
    max_wait_s: float = 20.0
    """Longest Retry-After to wait for, in seconds; a longer one ends the attempts."""
    per_host: int = 2
    """Connections to one host at a time."""
    rest_after: int | None = 5
    """Transient failures of a host in a row after which it is left alone for `wait_s`, twice as
    long after each further one; None for never."""
    max_rest_s: float = 300.0
    """Longest time for which a host is left alone, in seconds."""
    agent: str = USER_AGENT
    """Value of the User-Agent header."""
    contact: str = ""
    """A page or mail address for site owners; part of the User-Agent."""
    loopback: bool = False
    """Allow loopback addresses; only for tests against their own server."""
    opt_outs: bool = True
    """Whether a server's X-Robots-Tag and tdm-reservation are honored: no for what it was asked to
    make for us."""


class FetchError(Exception):
    """A file that can't be had, with a reason for code and a message for people."""

    def __init__(self, reason: str, message: str = "", wait: float | None = None) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message
        self.wait = wait
        """Seconds until another attempt makes sense; None for never."""
        self.tries = 1
        """Attempts made."""


class Downloader:
    """Fetches files; one instance serves many threads."""

    def __init__(self, settings: DownloadSettings, resolve: Resolve = resolve) -> None:
        import httpcore2

        self.settings = settings
        network: Any = CheckedNetwork(resolve, settings.loopback)
        # Proxies from the environment are not used: they could connect anywhere.
        self._pool = httpcore2.ConnectionPool(
            max_connections=256, max_keepalive_connections=0, network_backend=network
        )
        self._hosts: dict[str, threading.BoundedSemaphore] = {}
        self._failures: dict[
            str, tuple[int, float]
        ] = {}  # host -> in a row, and until when it rests
        self._lock = threading.Lock()
        contact = f"; {settings.contact}" if settings.contact else ""
        self._agent = f"{settings.agent[:-1]}{contact})" if contact else settings.agent

    def download(self, url: str) -> tuple[bytes, int]:
        """The body at an address, and the attempts that it took. Raises FetchError."""
        host = self._rested(url)
        for number in range(1, self.settings.tries + 1):
            try:
                with deadline(self.settings.deadline_s):
                    body = self._attempt(url)
                self._note(host, "")
                return body, number
            except FetchError as error:
                self._note(host, error.reason)
                if error.wait is None or number == self.settings.tries:
                    error.tries = number
                    raise
                wait = error.wait
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _rested(self, url: str) -> str:
        """The host of an address. Raises FetchError `host_resting` while it is left alone."""
        try:
            host = urlsplit(url).hostname or ""
        except ValueError:  # the attempt says what is wrong with it
            return ""
        with self._lock:
            _, until = self._failures.get(host, (0, 0.0))
        if (remaining := until - time.monotonic()) > 0:
            raise FetchError("host_resting", f"failed too often, for {remaining:.0f} s")
        return host

    def _note(self, host: str, reason: str) -> None:
        """Counts a host's failures in a row, and lets it rest after too many."""
        if self.settings.rest_after is None:
            return
        with self._lock:
            if reason not in STRAINED:
                self._failures.pop(host, None)
                return
            count = self._failures.get(host, (0, 0.0))[0] + 1
            over = count - self.settings.rest_after
            pause = min(self.settings.wait_s * 2.0 ** min(over, 30), self.settings.max_rest_s)
            self._failures[host] = count, time.monotonic() + pause if over >= 0 else 0.0

    def check_start(self, start: bytes) -> None:
        """Raises FetchError if the first bytes are not those of a wanted file."""

    def _attempt(self, url: str) -> bytes:
        """The body, or FetchError: a bug met in one address must not end a run of millions."""
        try:
            return self._follow(url)
        except FetchError:
            raise
        except UnicodeError as error:  # of a name that is no international one, like xn--0.test
            raise FetchError("bad_url", str(error)) from None
        except Exception as error:
            raise FetchError("internal", type(error).__name__) from None

    def _follow(self, url: str) -> bytes:
        """The body at the end of the redirects."""
        import httpx2

        try:
            at = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise FetchError("bad_url", str(error)) from None
        for _ in range(self.settings.redirects + 1):
            fetched = self._once(at)
            if isinstance(fetched, bytes):
                return fetched
            try:
                at = at.join(fetched)
            except (httpx2.InvalidURL, ValueError) as error:
                raise FetchError("bad_url", f"redirect: {error}") from None
        raise FetchError("redirects", f"more than {self.settings.redirects}")

    def _once(self, url: httpx2.URL) -> bytes | str:
        """The body, or where it redirects to."""
        import httpcore2

        if url.scheme not in ("http", "https"):
            raise FetchError("scheme", f"{url.scheme or 'no scheme'} is not fetched")
        if not url.host or url.userinfo:
            raise FetchError("bad_url", "no host" if not url.host else "holds a user name")
        if url.port is not None and not 0 < url.port < 65_536:
            raise FetchError("bad_url", f"port {url.port}")
        target = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", self._agent.encode("ascii", "replace")),
            (b"Accept", b"image/jpeg,image/png,image/webp,image/gif;q=0.5"),
            (b"Accept-Encoding", b"identity"),
        ]
        try:
            with (
                self._host(url.host),
                self._pool.stream("GET", target, headers=headers) as response,
            ):
                return self._read(response)
        except RefusedAddress as error:
            raise FetchError("refused_address", str(error)) from None
        except UnknownHost as error:
            raise FetchError("dns", str(error), self.settings.wait_s) from None
        except (OutOfTime, httpcore2.TimeoutException) as error:
            raise FetchError("timeout", str(error)) from None
        except httpcore2.ConnectError as error:
            tls = "SSL" in str(error) or "certificate" in str(error).lower()
            if tls:
                raise FetchError("tls", str(error)) from None
            raise FetchError("connect", str(error), self.settings.wait_s) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise FetchError("protocol", f"{type(error).__name__}: {error}") from None

    def _read(self, response: httpcore2.Response) -> bytes | str:
        headers = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.headers
        ]
        first = dict(reversed(headers))
        if self.settings.opt_outs and (header := opted_out(headers)):
            raise FetchError("opted_out", header)
        status = response.status
        if status in (301, 302, 303, 307, 308) and "location" in first:
            return first["location"]
        if status != 200:
            wait = self._retry_after(first) if status in _TRANSIENT else None
            if wait is not None and wait > self.settings.max_wait_s:
                wait = None
            raise FetchError(f"http_{status}", "", wait)
        if (length := first.get("content-length", "")).isdigit() and (
            int(length) > self.settings.max_bytes
        ):
            raise FetchError("too_large", f"{length} bytes announced")
        pieces = self._decoded(response, first.get("content-encoding", "identity").lower())

        def check(start: bytes) -> None:
            if len(start) >= 16:
                self.check_start(start)

        try:
            body = read_within(pieces, self.settings.max_bytes, check)
        except TooLarge as error:
            raise FetchError("too_large", str(error)) from None
        self.check_start(body[:16])
        return body

    def _decoded(self, response: httpcore2.Response, encoding: str) -> Iterator[bytes]:
        """The body in pieces; decompresses a single gzip layer although none was requested."""
        if encoding in ("", "identity"):
            yield from response.iter_stream()
            return
        if encoding not in ("gzip", "x-gzip"):
            raise FetchError("encoding", f"Content-Encoding {encoding}")
        inflate = zlib.decompressobj(wbits=31)
        try:
            for chunk in response.iter_stream():
                while chunk:
                    yield inflate.decompress(chunk, 65_536)
                    chunk = inflate.unconsumed_tail
        except zlib.error as error:
            raise FetchError("encoding", f"broken gzip: {error}") from None

    def _retry_after(self, headers: dict[str, str]) -> float:
        """Seconds to wait before another attempt. Dates are ignored, since such waits are long."""
        value = headers.get("retry-after", "").strip()
        return float(value) if re.fullmatch(r"\d{1,6}", value) else self.settings.wait_s

    @contextmanager
    def _host(self, host: str) -> Iterator[None]:
        """A turn at a host; waiting for it does not count toward the deadline."""
        with self._lock:
            turns = self._hosts.setdefault(
                host.lower(), threading.BoundedSemaphore(self.settings.per_host)
            )
        waiting_since = time.monotonic()
        with turns:
            DEADLINE.set(DEADLINE.get() + time.monotonic() - waiting_since)
            yield


def opted_out(headers: list[tuple[str, str]]) -> str:
    """The header and directive by which a server opts out, for all agents or for this one by name;
    empty if it doesn't.

    >>> opted_out([("x-robots-tag", "googlebot: noindex")])
    ''
    >>> opted_out([("x-robots-tag", "nofollow, noai")])
    'X-Robots-Tag: noai'
    """
    for name, value in headers:
        if name == "tdm-reservation" and value.strip() == "1":
            return "TDM-Reservation: 1"
        if name != "x-robots-tag":
            continue
        agent = ""
        for entry in value.lower().split(","):
            named, colon, directive = entry.strip().rpartition(":")
            if colon:
                agent = named.strip()
            if directive.strip() in OPT_OUTS and agent in ("", "*", AGENT_NAME):
                return f"X-Robots-Tag: {directive.strip()}"
    return ""
