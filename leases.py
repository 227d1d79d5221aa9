"""Leases: who holds a lock, in a file beside it, for disks whose `flock` excludes nobody.

NFS with `local_lock`, Lustre without `-o flock` and synced folders let two processes hold one lock,
or know no locks at all. So who takes a lock also writes a lease, with machine, process and a
counter that it raises while it lives, and looks for the leases of others: of two that start
together, at least one sees the other.

A lease of this machine counts while its process lives. One of another machine counts while it
shows signs of life: its file changes, or was changed less than `SILENT` before. No clocks of two
machines are compared, only times that one disk gave its files. The lease of a process that died is
removed by the next that takes the lock.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

SUFFIX = ".lease"
"""Ending of the files; before it are the lock's name and a random word."""

BEAT = 5.0
"""Seconds between two signs of life."""

SILENT = 20.0
"""Seconds without a sign of life after which a process of another machine counts as dead."""

_GLANCE = 0.25
"""Seconds between two looks at the lease of another machine."""


@dataclass(frozen=True)
class Owner:
    """The process that holds a lease."""

    host: str
    """Name of its machine."""
    pid: int
    """Its number there."""
    started: str
    """When it started, in ticks since the machine did; empty where the system does not say."""
    system: str
    """What has these process numbers: a start of a machine, and a container on it."""

    @classmethod
    def this(cls) -> Owner:
        """This process."""
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), _system())

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.system == _system() and self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Whether a process of this machine still runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's
            pass
        return not self.started or _started(self.pid) in ("", self.started)

    def __str__(self) -> str:
        return f"process {self.pid}" if self.is_here else f"process {self.pid} on {self.host}"


class Lease:
    """A lease on a lock, kept alive until it is released or the process ends."""

    def __init__(self, lock: Path, shared: bool) -> None:
        """Writes it; whether others have one is for the caller to see."""
        self._lock = lock
        self._shared = shared
        self._beats = 0
        self._owner = os.getpid()
        self.path = lock.with_name(f"{lock.name}.{secrets.token_hex(4)}{SUFFIX}")
        # Renamed when it is whole: nobody finds an empty one.
        partial = self.path.with_name(f"{self.path.name}.partial")
        self._file = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        # Known before it is there: another thread that finds it first would take it for a dead one.
        _HEARTBEAT.add(self)
        try:
            self._write()
            os.rename(partial, self.path)
        except BaseException:
            _HEARTBEAT.remove(self)
            with suppress(OSError):
                os.unlink(partial)
            self._remove()
            raise

    def others(self) -> Iterator[Owner]:
        """Owners of leases that exclude this one; leases of the dead are removed."""
        for path in _leases(self._lock):
            if path == self.path or (text := _read(path)) is None:
                continue
            owner, shared = _parsed(text)
            if shared and self._shared:
                continue
            if owner is None or not owner.is_here:
                holds = self._shows_life(path, text)
            elif owner.pid == os.getpid():
                holds = _HEARTBEAT.has(path)  # else the disk failed when it was released
            else:
                holds = owner.is_alive()
            if holds:
                yield owner or Owner("another machine", 0, "", "")
            else:
                with suppress(OSError):
                    path.unlink()

    def _shows_life(self, path: Path, before: str) -> bool:
        """Whether a lease of another machine changes, while it may still do so."""
        try:
            silent = os.fstat(self._file).st_mtime - path.stat().st_mtime
        except OSError:
            return False
        until = time.monotonic() + SILENT - max(0.0, silent)
        while (now := _read(path)) is not None:
            if now != before:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_GLANCE)
        return False

    def beat(self) -> None:
        """Gives a sign of life."""
        self._beats += 1
        with suppress(OSError):  # the next one may succeed
            self._write()

    def _write(self) -> None:
        # As long each time, so that no reader finds half of it.
        beats = f"{self._beats:010}"
        record = {"beats": beats, "shared": self._shared, **asdict(Owner.this())}
        os.pwrite(self._file, json.dumps(record).encode() + b"\n", 0)
        os.fsync(self._file)

    def release(self) -> None:
        """Removes it, unless a process forked from its owner asks for that."""
        _HEARTBEAT.remove(self)
        if os.getpid() == self._owner:
            self._remove()
        else:
            os.close(self._file)

    def _remove(self) -> None:
        try:
            if os.stat(self.path).st_ino == os.fstat(self._file).st_ino:
                os.unlink(self.path)
        except OSError:  # of a folder that was renamed, say: it is left to the next
            pass
        finally:
            os.close(self._file)


class _Heartbeat:
    """A thread that keeps all leases of this process alive while there are any."""

    def __init__(self) -> None:
        self._leases: set[Lease] = set()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease) -> None:
        with self._guard:
            self._leases.add(lease)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()

    def remove(self, lease: Lease) -> None:
        with self._guard:
            self._leases.discard(lease)

    def has(self, path: Path) -> bool:
        """Whether a lease of this process is in a file."""
        with self._guard:
            return any(lease.path == path for lease in self._leases)

    def _run(self) -> None:
        while True:
            time.sleep(BEAT)
            with self._guard:
                if not self._leases:
                    self._thread = None
                    return
                for lease in self._leases:
                    lease.beat()


_HEARTBEAT = _Heartbeat()


def _forget() -> None:
    """In a forked process: its parent keeps its own leases alive, and no thread came along."""
    global _HEARTBEAT
    _HEARTBEAT = _Heartbeat()


os.register_at_fork(after_in_child=_forget)


def holder(lock: Path) -> str:
    """Who holds a lock, in words: `process 12 on HOST`, or `another process`."""
    owners = (_parsed(text)[0] for path in _leases(lock) if (text := _read(path)) is not None)
    alive = (owner for owner in owners if owner and (not owner.is_here or owner.is_alive()))
    return next((str(owner) for owner in alive), "another process")


def _leases(lock: Path) -> list[Path]:
    names = (name for name in os.listdir(lock.parent) if name.endswith(SUFFIX))
    return [lock.parent / name for name in names if name[: -len(SUFFIX) - 9] == lock.name]


def _read(path: Path) -> str | None:
    """The text of a lease; None where there is none any more."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


def _parsed(text: str) -> tuple[Owner | None, bool]:
    """The owner of a lease, None where it can't be read, and whether it is shared."""
    try:
        record = json.loads(text)
        names = ("host", "started", "system")
        host, started, system = (str(record[name]) for name in names)
        return Owner(host, int(record["pid"]), started, system), record["shared"] is True
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, False


def _started(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


@cache
def _system() -> str:
    """The start of this machine, and the container on it that has process numbers of its own."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
