"""Answers on disk: one log of JSON lines per process, each line the answer to what its key asks.

A log is `STEM.jsonl`, or `STEM.I-of-N.jsonl` of each shard; a reader merges all of them. A line
holds a payload of one type, its key, and `by`, the digest of who answered, where a folder belongs
to one answerer: a file of another's answers is refused. The newest answer to a key wins. Lines of
one file are in order; across files the higher `session` is newer (a process that continues what
others wrote stamps its lines with one more than they did). Each line is on disk before `append`
returns; a torn last line is cut off by the next writer and ignored by readers; any other damaged
line is a DataError that names file and line. Readers keep the byte offsets of lines, 36 bytes
each, and read a payload when it is needed, or hold all payloads in memory if told to. Whether a
failure is asked again is up to the payload's owner, who appends a newer answer to the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from ...errors import DataError, RunFailed
from ...parsing import parse_as, read_json
from ...storage import (
    LineReader,
    RecordError,
    RecordLog,
    collector_paused,
    read_places,
    write_json,
)
from ..core import identity_digest
from .places import At, PlaceIndex
from .shards import RunShard, shard_log, shard_logs
from .shared import SharedValues

BY = "by"
"""Key of a record: `identity_digest` of who answered; earlier versions wrote none."""
SESSION = "session"
"""Key of a record: how many processes had written to its logs before; absent for none."""

_PLACE_BITS = 44
"""Bits of a place that are the offset in its file; those above are the number of the file."""


class AnswerPayload(Protocol):
    """A payload: what a line says beside its session and its answerer."""

    def to_record(self) -> dict[str, Any]:
        """Plain values, the key among them."""
        ...

    @classmethod
    def from_record(cls, record: dict[str, Any], place: str) -> Self:
        """The inverse of `to_record`. Raises DataError, which names the place."""
        ...


@runtime_checkable
class AlikePayload(Protocol):
    """A payload whose records have much in common."""

    @classmethod
    def parser(cls) -> Callable[[dict[str, Any]], Self]:
        """Returns `from_record` for many records, which it may change; what they have in common is
        parsed and held once. It raises DataError as for no place."""
        ...


Payload = TypeVar("Payload", bound=AnswerPayload)


class AnswerLog(Mapping[str, Payload]):
    """Key -> newest payload, whichever process wrote it; in the order in which keys were first
    answered.

    One thread may append while others read.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        payload: type[Payload],
        *,
        key: str = "key",
        shard: RunShard | None = None,
        by: str = "",
        in_memory: bool = False,
        sessions: bool = True,
    ) -> None:
        """Nothing is read before it is needed.

        key: field of a record. shard: of this process, if it writes. by: digest of the answerer, if
        the log belongs to one. in_memory: reads all payloads at once, in one pass.
        sessions: without them, answers in several files are in the order of the files' names.
        """
        self.path = folder / shard_log(stem, shard)
        """The file that this process writes."""
        self._folder, self._stem, self._payload = folder, stem, payload
        self._key, self._by, self._in_memory = key, by, in_memory
        self._stamps = sessions
        self._highest = self._session = 0
        self._writer: RecordLog | None = None
        self._writers = 0
        self._was_there = folder.is_dir()
        self._last: tuple[str, At, dict[str, Any]] | None = None
        """The key met last by who goes through all, with its newest record."""

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._answers

    def __iter__(self) -> Iterator[str]:
        if isinstance(self._answers, dict):
            yield from list(self._answers)  # a thread may append meanwhile
            return
        for at in self._answers.newest():
            record = self._record(at)
            key: str = record[self._key]
            self._last = key, at, record
            yield key

    def __getitem__(self, key: str) -> Payload:
        last = self._last
        if last is not None and last[0] == key:
            return self._parse(last[1], dict(last[2]))
        if not (answers := self.of(key)):
            raise KeyError(key)
        return answers[-1]

    def of(self, key: str) -> list[Payload]:
        """Every answer to a key, oldest first."""
        if isinstance(self._answers, dict):
            return self._answers.get(key, [])
        records = ((at, self._record(at)) for at in self._answers.of(key))
        # Two keys may have one hash.
        return [self._parse(at, record) for at, record in records if record[self._key] == key]

    def every(self) -> Iterator[Payload]:
        """Every payload, replaced ones too, oldest first; key by key if they are in memory."""
        if isinstance(self._answers, dict):
            return (payload for answers in self._answers.values() for payload in answers)
        return (self._parse(at, self._record(at)) for at in self._answers)

    def read(self, keys: Mapping[str, Any] | None = None) -> dict[str, list[Payload]]:
        """Key -> every answer, oldest first, in one pass that keeps no offsets; of `keys`, or of
        all."""
        answers: dict[str, list[Payload]] = {}
        places: dict[str, list[At]] = {}
        parse = self._parser()
        with collector_paused():
            for key, at, record in self._scan():
                if keys is None or key in keys:
                    answers.setdefault(key, []).append(parse(at, record))
                    if len(self._files) > 1:  # lines of one file are in order
                        places.setdefault(key, []).append(at)
            for key, of_key in places.items():
                if len(of_key) > 1:  # most keys have one answer, and sorting takes its time
                    placed = sorted(zip(of_key, answers[key], strict=True), key=_at)
                    answers[key] = [payload for _, payload in placed]
        return answers

    @property
    def is_empty(self) -> bool:
        """Whether no file holds a whole record."""
        return not any(True for path in self._files for _ in read_places(path))

    def __enter__(self) -> Self:
        """Keeps the file open for what is appended until the block ends."""
        if self._writer is None:
            if self._was_there and not self._folder.is_dir():
                raise moved(self._folder)
            self._writer = RecordLog(self.path)
        self._writers += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._writers -= 1
        if not self._writers and self._writer is not None:
            self._writer.close()
            self._writer = None

    def append(self, payload: Payload) -> None:
        """Adds the newest answer to its key; on disk when this returns."""
        record = payload.to_record()
        key: str = record[self._key]
        answers = self._answers
        session = self._session
        stamps = {**({BY: self._by} if self._by else {}), **({SESSION: session} if session else {})}
        with self:
            assert self._writer is not None
            offset = self._writer.append({**record, **stamps})
        self._last = None
        if isinstance(answers, dict):
            answers.setdefault(key, []).append(payload)
        else:
            number = self._files.index(self.path)
            answers.add(key, (session, number << _PLACE_BITS | offset))

    @cached_property
    def _files(self) -> list[Path]:
        files = shard_logs(self._folder, self._stem)
        return files if self.path in files else [*files, self.path]

    @cached_property
    def _readers(self) -> list[LineReader]:
        return [LineReader(path) for path in self._files]

    @cached_property
    def _answers(self) -> PlaceIndex | dict[str, list[Payload]]:
        """Places or payloads of the records in all files."""
        if self._in_memory:
            answers: PlaceIndex | dict[str, list[Payload]] = self.read()
        else:
            answers = PlaceIndex()
            for key, at, _ in self._scan():
                answers.add(key, at)
        # In one file the last line is the newest: one process after the other needs no stamp.
        self._session = self._highest + 1 if self._stamps and len(self._files) > 1 else 0
        return answers

    def _scan(self) -> Iterator[tuple[str, At, dict[str, Any]]]:
        """Key, place and record of every line, file by file."""
        for number, path in enumerate(self._files):
            for line, ((offset, _), record) in enumerate(read_places(path), 1):
                if not isinstance(key := record.get(self._key), str):
                    raise _damaged(f"{path}:{line}: the record has no {self._key}")
                session = record.get(SESSION, 0)
                if type(session) is not int or not 0 <= session < 1 << 32:
                    raise _damaged(f"{path}:{line}: {SESSION}: not the number of a process")
                self._highest = max(self._highest, session)
                yield key, (session, number << _PLACE_BITS | offset), record

    def _record(self, at: At) -> dict[str, Any]:
        return self._readers[at[1] >> _PLACE_BITS].record(at[1] & ((1 << _PLACE_BITS) - 1))

    def _parser(self) -> Callable[[At, dict[str, Any]], Payload]:
        """Returns `_parse` for many records, which share their values."""
        if not isinstance(self._payload, AlikePayload):
            shared = SharedValues()
            return lambda at, record: shared.share(self._parse(at, record))
        parse_alike = self._payload.parser()

        def parse(at: At, record: dict[str, Any]) -> Payload:
            try:
                self._check_source(record, "")
                payload: Payload = parse_alike(record)
            except DataError:
                return self._payload_of(self._record(at), self._where(at))
            return payload

        return parse

    def _parse(self, at: At, record: dict[str, Any]) -> Payload:
        """The payload of a record, which it takes apart."""
        try:
            return self._payload_of(record, "")
        except DataError:  # counting the lines before it takes its time
            return self._payload_of(self._record(at), self._where(at))

    def _payload_of(self, record: dict[str, Any], place: str) -> Payload:
        self._check_source(record, place)
        return self._payload.from_record(record, place)

    def _check_source(self, record: dict[str, Any], place: str) -> None:
        """Takes session and answerer out of a record. Raises DataError for another answerer."""
        record.pop(SESSION, None)
        if self._by and (by := record.pop(BY, self._by)) != self._by:
            raise DataError(
                f"{place}: made by {by!r}, and this folder is of {self._by!r}",
                "put back the file that belongs here",
                code="another-run",
            )

    def _where(self, at: At) -> str:
        """File and line of a record."""
        path, offset = self._files[at[1] >> _PLACE_BITS], at[1] & ((1 << _PLACE_BITS) - 1)
        with path.open("rb") as file:
            line = file.read(offset).count(b"\n") + 1
        return f"{path}:{line}"


def answerer_folder(root: Path, identity: Mapping[str, str]) -> Path:
    """The folder of one answerer's logs."""
    return root / f"{identity['kind']}-{identity_digest(identity)}"


def keep_identity(path: Path, identity: Mapping[str, str]) -> None:
    """Writes who answers into a folder, unless it is there."""
    if not path.exists():
        write_json(path, dict(identity))


def read_identity(path: Path) -> dict[str, str]:
    """Reads whose answers a folder holds. Raises DataError for a damaged file."""
    identity = parse_as(dict[str, str], read_json(path), str(path))
    if "kind" not in identity:
        raise DataError(f"{path}: kind: missing", code="damaged-file")
    return identity


def moved(folder: Path) -> RunFailed:
    """The error of a folder that is not there any more while something is written into it."""
    return RunFailed(
        f"{folder} was moved or removed meanwhile: what is recorded is still in it",
        "run the same command on it where it is now",
        code="changed-file",
    )


def _at(placed: tuple[At, Any]) -> At:
    return placed[0]


def _damaged(problem: str) -> RecordError:
    return RecordError(problem, "restore the file", code="damaged-log")
