"""Files that survive a kill: whole-file writes, append-only logs, and locks; one of each."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import random
import secrets
import shutil
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from pydantic_core import from_json

from . import leases
from .errors import DataError, InUseError

PARTIAL = ".partial"
"""Suffix of what is being written; a killed process may leave such a file or folder behind."""


@contextmanager
def whole_file(path: Path, sync: bool = True) -> Iterator[BinaryIO]:
    """A file to write into; it takes the place of `path` when the block ends well.

    Makes its folder. The temporary name is random, so that two writers never share one, not even
    on two machines with one disk. sync: whether to wait until it is on disk; without, a kill harms
    nothing, and a power cut may leave an empty file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class ArrowSink:
    """A file that Arrow writes into; every writer of Arrow gets one.

    By a path, Arrow ends the process (SIGABRT) on a full disk. Into an object of Python it raises
    the error, but its destructor writes once more: all that comes after a failure is dropped.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._failed = False

    def write(self, data: Any) -> int:
        """Writes bytes. Raises OSError, once."""
        if not self._failed:
            try:
                self._file.write(data)
            except OSError:
                self._failed = True
                raise
        return len(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Nothing: who opened the file does, and closes it."""

    def close(self) -> None:
        """Nothing."""

    @property
    def closed(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to write into; it takes the place of `path` when the block ends well.

    What was there is deleted only when the new folder stands in its place, and comes back whatever
    ends the exchange: at once, or at the next start after a kill. A link stays: what it leads to is
    replaced. Raises InUseError if another process writes `path`.
    """
    path = path.resolve()
    partial, previous = (path.with_name(f".{path.name}.{role}") for role in ("partial", "previous"))
    with folder_lock(path):
        _restore(path, previous)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            _restore(path, previous)
            if path.exists():
                shutil.rmtree(previous, ignore_errors=True)
                path.rename(previous)
            partial.rename(path)
            shutil.rmtree(previous, ignore_errors=True)
        finally:
            _restore(path, previous)
            shutil.rmtree(partial, ignore_errors=True)


def _restore(path: Path, previous: Path) -> None:
    """Puts back what was moved aside for a folder that never came, or came empty."""
    if not previous.exists():
        return
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
    if not path.exists():
        previous.rename(path)


def write_whole(path: Path, data: str | bytes, sync: bool = True) -> None:
    """Writes a file, text as UTF-8; it appears whole or stays as it was. Makes its folder.

    A lone surrogate, as in some model's answer, is written as its escape. sync: as `whole_file`.
    """
    with whole_file(path, sync) as file:
        file.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)


def write_json(path: Path, value: Any) -> None:
    """Writes a value as indented JSON, whole."""
    write_whole(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


class RecordError(DataError):
    """A log that can't be read; the message names file and line."""


def log_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line of a log."""
    line = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate in a model's answer must not lose the record.
    return line.encode("utf-8", "backslashreplace") + b"\n"


class RecordLog:
    """An append-only JSONL file of records; each is on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file; a last line without its line feed is cut off."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b", buffering=0)
        self._end = cut_torn_line(self._file)

    def append(self, record: Mapping[str, Any]) -> int:
        """Writes a record and waits until it is on disk; returns where it starts, bytes.

        Raises InUseError where another process writes the file as well.
        """
        place = self._end
        self._end = append_bytes(self._file.fileno(), log_line(record), place, self.path)
        os.fsync(self._file.fileno())
        return place

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()


def append_bytes(file: int, data: bytes, end: int, path: Path) -> int:
    """Appends to a file that is open for appending and has so many bytes; returns its new size.

    All of it is written, or nothing if the disk fails: half a line in the middle of a log would
    damage it, and a buffer would bring it back later. Raises InUseError where the file has grown by
    what somebody else wrote: nothing is lost, but two that answer the same questions pay twice.
    """
    _check_size(file, end, path)
    written = 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
    except OSError:
        if os.fstat(file).st_size == end + written:  # else a line of somebody else comes after
            os.ftruncate(file, end)
        raise
    _check_size(file, end + len(data), path)
    return end + len(data)


def _check_size(file: int, expected: int, path: Path) -> None:
    if os.fstat(file).st_size != expected:
        raise InUseError(
            f"{path} is written by another process at the same time, so the locks of this disk do "
            f"not work: end all but one of them, and run the same command again",
            code="in-use",
        )


def cut_torn_line(file: BinaryIO) -> int:
    """Cuts off a last line without its line feed; returns how many bytes are left."""
    size = file.seek(0, os.SEEK_END)
    whole = _whole_lines(file)
    if whole != size and os.fstat(file.fileno()).st_size == size:  # nobody is writing it right now
        file.truncate(whole)
    return os.fstat(file.fileno()).st_size


def _whole_lines(file: BinaryIO) -> int:
    """Bytes up to the last line feed: a torn last line was being written when a process died."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65_536)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole record of a log, oldest first; nothing if there is no file yet.

    Raises RecordError for a whole line that is no JSON object.
    """
    for _, record in read_places(path):
        yield record


def read_places(
    path: Path, *, appended: bool = True
) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Every whole record of a log as `read_records`, with its first byte and its length, bytes.

    appended: whether the file is one that records are appended to. Only there is a torn last line
    the work of a kill; it is passed over.
    """
    if not path.exists():
        return
    start = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                if appended:
                    return
                raise RecordError(
                    f"{path}:{number}: the file was cut off: restore it from a backup",
                    code="damaged-log",
                )
            try:
                record = _json(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise RecordError(
                    f"{path}:{number}: not a JSON object: restore the file from a backup"
                    + (", or run `counterprior doctor FOLDER --repair`" if appended else ""),
                    code="damaged-log",
                )
            yield (start, len(line)), record
            start += len(line)


def _json(line: bytes) -> Any:
    """The value of a line of JSON. Raises ValueError or RecursionError for anything else."""
    try:
        return from_json(line, cache_strings="keys")  # a third of the time of `json`
    except ValueError:  # a lone surrogate is no text for it, and it nests 200 levels only
        return json.loads(line.decode("utf-8"))


class LineReader:
    """Reads single records of a log that may grow, by the offsets that `read_places` gives."""

    def __init__(self, path: Path) -> None:
        """The file is opened by the first `record`, and closed with this object."""
        self._path = path
        self._file: int | None = None

    def record(self, offset: int) -> dict[str, Any]:
        """The record whose first byte is at an offset."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
        size = 1024
        while b"\n" not in (read := os.pread(self._file, size, offset)) and len(read) == size:
            size *= 4
        record: dict[str, Any] = json.loads(read[: read.index(b"\n")].decode())
        return record


@contextmanager
def collector_paused() -> Iterator[None]:
    """While a log or the rows of a release come into memory: they are no garbage, and looking
    through them again and again for cycles takes a fifth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
"""Errors by which a disk says that it has no locks; any other says that a lock is held, or that
the disk fails."""
_HELD = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


class Lock:
    """Keeps a second process out of a folder; ends with the process, however that ends.

    The lock file is never removed: a removed one could be locked twice. A lease beside it, see
    `leases`, does the same on disks whose locks exclude nobody, or that have none.
    """

    def __init__(
        self, path: Path, resource: str, *, shared: bool = False, wait: bool = False
    ) -> None:
        """Raises InUseError, naming the `resource`, if another process holds the lock, and
        DataError if a link stands in place of the lock: it is not followed.

        shared: others may hold it too, if they share it; wait: until it is free, however long.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise DataError(f"{path} is a link and no lock: remove it", code="not-a-file") from None
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            if not _flock(self._file, how if wait else how | fcntl.LOCK_NB):
                raise _in_use(resource, leases.holder(path))
            while (owner := self._take(path, shared)) is not None:
                if not wait:
                    raise _in_use(resource, str(owner))
                time.sleep(random.uniform(0.01, 0.05))
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, path: Path, shared: bool) -> leases.Owner | None:
        """Writes a lease, or returns who has one that excludes it."""
        self._lease = leases.Lease(path, shared)
        try:
            owner = next(self._lease.others(), None)
        except BaseException:
            self._lease.release()
            raise
        if owner is not None:
            self._lease.release()
        return owner

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Lets the next process in."""
        try:
            self._lease.release()
        finally:
            # A child that was forked meanwhile has the file open too: closing ours would not
            # unlock it.
            _flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)


def _flock(file: int, how: int) -> bool:
    """Takes or gives back a lock of the system; False where another process holds it. A disk
    without locks gives it to everybody."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True


def _in_use(resource: str, owner: str) -> InUseError:
    return InUseError(f"{resource} is in use by {owner}: wait until it ends", code="in-use")


def holds_only_locks(folder: Path) -> bool:
    """Whether a folder has nothing but locks, and what a killed process left unfinished."""
    return all(path.suffix in (".lock", leases.SUFFIX, PARTIAL) for path in folder.iterdir())


class Turns:
    """Turns at a file that several processes write, for a moment each."""

    def __init__(self, path: Path) -> None:
        """path: of the file, which exists."""
        self._path = path
        self._excludes: bool | None = None

    @contextmanager
    def turn(self, file: int) -> Iterator[None]:
        """The turn of this process, whose open file it is; waits for those of others."""
        if self._excludes is None:
            self._excludes = _excludes(file, self._path)
        if not self._excludes:
            with Lock(self._path.with_suffix(".turn.lock"), str(self._path), wait=True):
                yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _excludes(file: int, path: Path) -> bool:
    """Whether a lock on an open file keeps out who opens it again: elsewhere locks may do nothing,
    or not be there."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    try:
        again = os.open(path, os.O_RDWR)
        try:
            return not _flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(again)
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def folder_lock(path: Path) -> Lock:
    """The lock of a folder that is written as a whole; it lies beside the folder."""
    path = path.resolve()
    return Lock(path.with_name(f".{path.name}.lock"), str(path))
