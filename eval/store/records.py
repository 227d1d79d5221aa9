"""What a run's files hold, read without holding it: cases, and records of several processes.

A run of 100,000 images is gone through line by line; in memory is where each line stands. A shard
of a run writes logs of its own (`images.1-of-2.jsonl` beside `images.jsonl`), and whoever reads
takes all logs of a kind as one.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from ...errors import DataError, InUseError, UsageError
from ...storage import Lock, RecordLog, collector_paused, read_places
from ...tables import parse_as
from ..core import Case
from .places import At, PlaceIndex

RunShard = tuple[int, int]
"""Which part of how many, from (1, N) to (N, N)."""

SESSION = "session"
"""Key of a record: how many processes had written about its run before; none is 0."""

Parsed = TypeVar("Parsed")

_PLACE_BITS = 44
"""Of a place in a file; the number of the file is above them."""
_SOURCE = re.compile(r"(sources/[0-9a-f]{64}\.png)?")
_NAME = re.compile(r"[^/\\\0]+")


def parse_shard(text: str) -> RunShard:
    """The shard that ``I/N`` names. Raises UsageError for anything else.

    >>> parse_shard("2/8")
    (2, 8)
    """
    part, _, count = text.partition("/")
    if part.isdecimal() and count.isdecimal() and 1 <= int(part) <= int(count):
        return int(part), int(count)
    raise UsageError(f"shard {text!r}: write I/N with I from 1 to N, e.g. 2/8")


def shard_log(stem: str, shard: RunShard | None) -> str:
    """The file that a process writes.

    >>> shard_log("images", None), shard_log("images", (1, 2))
    ('images.jsonl', 'images.1-of-2.jsonl')
    """
    return f"{stem}.jsonl" if shard is None else f"{stem}.{shard[0]}-of-{shard[1]}.jsonl"


def shard_name(shard: RunShard) -> str:
    """A shard in words.

    >>> shard_name((2, 8))
    'shard 2/8'
    """
    return f"shard {shard[0]}/{shard[1]}"


def owned(shard: RunShard | None, row: int) -> bool:
    """Whether a shard has the cases of the row with this number: every Nth row is one's own, so
    that the seeds of a prompt stay together."""
    return shard is None or part_of(row, shard[1]) == shard[0]


def part_of(row: int, count: int) -> int:
    """Which of so many shards has the row with this number, from 1."""
    return row % count + 1


class RunLock:
    """Keeps others out of a run, or of a study: one process has all of it, or one each shard."""

    def __init__(self, root: Path, shard: RunShard | None = None, kind: str = "run") -> None:
        """Raises InUseError where another process has the run, this shard of it, or a shard of
        another number of shards, which may own the same cases."""
        what = f"the {kind} {root}"
        self._held: list[Lock] = []
        try:
            self._held.append(Lock(root / f"{kind}.lock", what, shared=shard is not None))
            if shard is not None:
                own = root / f"{kind}.of-{shard[1]}.lock"
                self._held.append(Lock(own, what, shared=True))
                # After our own: of two that start together, at least one sees the other.
                for other in sorted(root.glob(f"{kind}.of-*.lock")):
                    if other != own:
                        _refuse_shards(other, what)
                part = f"{shard_name(shard)} of {what}"
                self._held.append(Lock(root / f"{kind}.{shard[0]}-of-{shard[1]}.lock", part))
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Lets the next process in."""
        while self._held:
            self._held.pop().release()


def _refuse_shards(path: Path, what: str) -> None:
    try:
        Lock(path, what).release()
    except InUseError:
        count = path.stem.rpartition("-")[2]
        raise InUseError(
            f"{what} is in use by shards of {count}; wait for their end, or run shards of {count}"
        ) from None


class CaseFile(Sequence[Case]):
    """The cases of a run, read from their file one by one."""

    def __init__(self, path: Path, shard: RunShard | None = None) -> None:
        """Only the cases of a shard, where one is given. Raises DataError without a file."""
        if not path.exists():
            raise DataError(f"{path}: no such file; run the command that made the run again")
        self._path = path
        self._places = array("Q")
        self._file = _Reader(path)
        row, number = "", -1
        for (place, _), record in read_places(path):
            if record.get("row") != row:
                row, number = record.get("row", ""), number + 1
            if owned(shard, number):
                self._places.append(place)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> Case: ...
    @overload
    def __getitem__(self, number: slice) -> list[Case]: ...
    def __getitem__(self, number: int | slice) -> Case | list[Case]:
        if isinstance(number, slice):
            return [self._case(place) for place in self._places[number]]
        return self._case(self._places[number])

    def __iter__(self) -> Iterator[Case]:
        return map(self._case, self._places)

    def __eq__(self, other: object) -> bool:
        """As lists are equal."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _case(self, place: int) -> Case:
        return _case(self._file.record(place), self._path, place)


def read_cases(path: Path) -> list[Case]:
    """All cases of a run, in one pass. Raises DataError without a file."""
    if not path.exists():
        raise DataError(f"{path}: no such file; run the command that made the run again")
    with collector_paused():
        return [_case(record, path, place) for (place, _), record in read_places(path)]


def _case(record: dict[str, Any], path: Path, place: int) -> Case:
    case = parse_as(Case, record, f"{path} at byte {place}")
    if not _SOURCE.fullmatch(case.source) or not _NAME.fullmatch(case.file):
        raise DataError(f"{path}: {case.id} would lie outside the run")
    return case


def read_by_case(folder: Path, stem: str) -> dict[str, list[dict[str, Any]]]:
    """The records of every case, oldest first, as `CaseRecords` has them, in one pass: for who
    needs all of them and adds nothing. Raises DataError for a record of no case."""
    found: dict[str, list[tuple[At, dict[str, Any]]]] = {}
    with collector_paused():
        for case, at, record in _noted(_logs(folder, stem), "case"):
            record.pop(SESSION, None)
            found.setdefault(case, []).append((at, record))
    return {case: [r for _, r in sorted(of_case, key=_at)] for case, of_case in found.items()}


def holds_record(folder: Path, stem: str) -> bool:
    """Whether any log of a kind holds a whole record."""
    return any(True for path in _logs(folder, stem) for _ in read_places(path))


def _at(noted: tuple[At, dict[str, Any]]) -> At:
    return noted[0]


def _logs(folder: Path, stem: str) -> list[Path]:
    """The log of the whole run, and those of its shards."""
    return [folder / shard_log(stem, None), *sorted(folder.glob(f"{stem}.*-of-*.jsonl"))]


def _noted(paths: Sequence[Path], key: str) -> Iterator[tuple[str, At, dict[str, Any]]]:
    """Every record of some logs, with its case, and its session and place."""
    for number, path in enumerate(paths):
        for line, ((place, _), record) in enumerate(read_places(path), 1):
            if not isinstance(case := record.get(key), str):
                raise DataError(f"{path}:{line}: a record of no {key}; restore the file")
            session = record.get(SESSION, 0)
            if type(session) is not int or not 0 <= session < 1 << 32:
                raise DataError(f"{path}:{line}: {SESSION}: no number of processes")
            yield case, (session, (number << _PLACE_BITS) | place), record


class CaseRecords:
    """Every record of one kind about a run's cases, oldest first, whoever wrote it; or about the
    cells of a study, whose key is another.

    A process that goes on with what others wrote stamps its records with a higher `SESSION`. Two
    processes that write at the same time have other cases, so the newest record of a case is that
    of the highest session, and in one log the last.
    """

    def __init__(
        self, folder: Path, stem: str, shard: RunShard | None = None, key: str = "case"
    ) -> None:
        """shard: which process this is, if it writes. Raises DataError for a record of no case."""
        self._key = key
        self.path = folder / shard_log(stem, shard)
        """The log that this process writes."""
        self._paths = _logs(folder, stem)
        others = len(self._paths) > 1
        if self.path not in self._paths:
            self._paths.append(self.path)
        self._files = [_Reader(path) for path in self._paths]
        self._places = PlaceIndex()
        self._last: tuple[str, dict[str, Any]] = ("", {})
        """The case that was met last when all were gone through, with its newest record."""
        newest = 0
        for case, at, _ in _noted(self._paths, key):
            newest = max(newest, at[0])
            self._places.add(case, at)
        # One process after the other in one log needs no stamp: the last line is the newest.
        self._session = newest + 1 if others or shard is not None else 0

    def __len__(self) -> int:
        """Cases with a record."""
        return len(self._places)

    def __contains__(self, case: object) -> bool:
        return isinstance(case, str) and case in self._places

    def cases(self) -> Iterator[str]:
        """Ids of the cases that have a record."""
        for at in self._places.newest():
            record = self._read(at)
            case: str = record[self._key]
            self._last = case, record
            yield case

    def of(self, case: str) -> list[dict[str, Any]]:
        """The records of a case, oldest first."""
        found = map(self._read, self._places.of(case))
        return [record for record in found if record[self._key] == case]

    def newest(self, case: str) -> dict[str, Any] | None:
        """The last record of a case; None where it has none."""
        last, record = self._last
        if last == case:
            return record
        records = self.of(case)
        return records[-1] if records else None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every record, oldest first."""
        return map(self._read, self._places)

    def append(self, log: RecordLog, record: Mapping[str, Any]) -> None:
        """Writes a record of a case to this process' log."""
        stamped = {**record, SESSION: self._session} if self._session else record
        number, self._last = self._paths.index(log.path), ("", {})
        at = self._session, (number << _PLACE_BITS) | log.append(stamped)
        self._places.add(record[self._key], at)

    def parse(
        self, read: Callable[[Mapping[str, Any], str], Parsed], record: Mapping[str, Any]
    ) -> Parsed:
        """What `read` makes of a record and its place. Raises DataError, which names file and line,
        where it makes nothing of it."""
        return parsed(read, record, lambda: self.where(record))

    def where(self, record: Mapping[str, Any]) -> str:
        """File and line of a record, for messages."""
        for path in self._paths:
            for line, (_, found) in enumerate(read_places(path), 1):
                if {k: v for k, v in found.items() if k != SESSION} == record:
                    return f"{path}:{line}"
        return str(self.path)

    def _read(self, at: At) -> dict[str, Any]:
        log, place = at[1] >> _PLACE_BITS, at[1] & ((1 << _PLACE_BITS) - 1)
        record = self._files[log].record(place)
        record.pop(SESSION, None)
        return record


def parsed(
    read: Callable[[Mapping[str, Any], str], Parsed],
    record: Mapping[str, Any],
    where: Callable[[], str],
) -> Parsed:
    """What `read` makes of a record and its place. Raises DataError, which names what `where` says,
    where it makes nothing of it."""
    try:
        return read(record, "")
    except DataError:  # looking for the line takes its time
        return read(record, where())


class _Reader:
    """Reads single lines of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def record(self, place: int) -> dict[str, Any]:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
        size = 1024
        while b"\n" not in (read := os.pread(self._file, size, place)) and len(read) == size:
            size *= 4
        record: dict[str, Any] = json.loads(read[: read.index(b"\n")].decode())
        return record
