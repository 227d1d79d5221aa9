"""Where the fetcher may connect: only to public addresses, and only to the one that was checked.

A name is resolved once, all its addresses are checked, and the socket is opened to one of them, so
a second answer of the name server can't change anything. TLS still verifies the name.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpcore2

Resolve = Callable[[str, int], list[str]]
"""Resolves a host and port to the addresses of the host."""

DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""Monotonic time by which the current request must be done."""

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""Addresses that networks are assigned (RFC 4291): the only public ones of IPv6."""
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's WireServer, which only machines within Azure reach
            "192.0.0.0/24",  # protocols, RFC 6890
            "192.88.99.0/24",  # relays of 6to4, RFC 7526
            "2001::/23",  # protocols, among them Teredo, which carries IPv4: RFC 2928, 4380
            "2001:db8::/32",  # documentation, RFC 3849
            "2002::/16",  # 6to4, which carries IPv4: RFC 3056
            "2620:4f:8000::/48",  # AS112, RFC 7534
            "3ffe::/16",  # the former 6bone, RFC 3701
            "3fff::/20",  # documentation, RFC 9637
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The prefix under which a network without IPv4 reaches IPv4 addresses (RFC 6052)."""


class RefusedAddress(Exception):
    """An address that is not public."""


class UnknownHost(Exception):
    """A name without addresses."""


class OutOfTime(Exception):
    """The request has passed its deadline."""


def is_public(address: str) -> bool:
    """Whether an address is on the public Internet; what is no address is not.

    An IPv4 address within an IPv6 one counts in the two forms by which one is reached, mapped and
    NAT64; every other form is refused.

    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1")]
    [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip in _NAT64:
            ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        elif ip not in _UNICAST or ip.scope_id is not None:
            return False
    return ip.is_global and not ip.is_multicast and not any(ip in special for special in _SPECIAL)


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, from the system's resolver. Raises UnknownHost."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnknownHost(str(error)) from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class TimedNetwork:
    """An httpcore2 network backend on which nothing outlasts the deadline."""

    def __init__(self, network: Any) -> None:
        """network: the backend that opens the sockets."""
        self._network = network

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        """Raises OutOfTime or one of httpcore2's errors."""
        return _Timed(
            self._network.connect_tcp(
                host,
                port,
                seconds_left(timeout),
                local_address=local_address,
                socket_options=socket_options,
            )
        )

    def connect_unix_socket(self, path: str, timeout: float | None = None, **options: Any) -> Any:
        return _Timed(self._network.connect_unix_socket(path, seconds_left(timeout), **options))

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, seconds_left(seconds) or 0.0))


class CheckedNetwork(TimedNetwork):
    """An httpcore2 network backend that connects only to checked addresses, within the deadline."""

    def __init__(self, resolve: Resolve = resolve, loopback: bool = False) -> None:
        """`loopback` allows 127.0.0.0/8 and ::1, for tests against their own server."""
        import httpcore2

        super().__init__(httpcore2.SyncBackend())
        self._resolve = resolve
        self._loopback = loopback
        # getaddrinfo has no timeout; a name that hangs costs one of these threads.
        self._resolvers = ThreadPoolExecutor(64, thread_name_prefix="resolve")
        self._known: dict[tuple[str, int], tuple[float, list[str]]] = {}
        self._lock = threading.Lock()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        """Raises RefusedAddress, UnknownHost, OutOfTime or one of httpcore2's errors."""
        return super().connect_tcp(self.check(host, port), port, timeout)

    def connect_unix_socket(self, path: str, timeout: float | None = None, **options: Any) -> Any:
        raise RefusedAddress("a unix socket")

    def check(self, host: str, port: int) -> str:
        """The address to connect to; all addresses of the host must be public."""
        addresses = self._addresses(host, port)
        if not addresses:
            raise UnknownHost(f"{host} has no address")
        for address in addresses:
            allowed = self._loopback and ipaddress.ip_address(address).is_loopback
            if not allowed and not is_public(address):
                raise RefusedAddress(f"{host} is {address}")
        return addresses[0]

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        with self._lock:
            until, addresses = self._known.get((host, port), (0.0, []))
        if time.monotonic() < until:
            return addresses
        try:
            addresses = self._resolvers.submit(self._resolve, host, port).result(seconds_left(None))
        except NotInTime:
            raise OutOfTime("resolving the name") from None
        with self._lock:
            self._known[host, port] = (time.monotonic() + 60, addresses)
        return addresses


class _Timed:
    """An httpcore2 stream on which no operation outlasts the deadline."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, seconds_left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> _Timed:
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, seconds_left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def seconds_left(timeout: float | None) -> float | None:
    """Seconds that an operation may take, None for any. Raises OutOfTime if none are left."""
    remaining = DEADLINE.get() - time.monotonic()
    if remaining <= 0:
        raise OutOfTime("the deadline of the whole fetch")
    seconds = remaining if timeout is None else min(remaining, timeout)
    return None if math.isinf(seconds) else seconds
