"""The cases of a run, read one at a time: a run may have more than fit into memory."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

from ...errors import DataError
from ...parsing import parse_as
from ...storage import LineReader, collector_paused, read_places
from ..core import Case
from .shards import RunShard, owns_row
from .shared import RecordParser, is_whole

_SOURCE = re.compile(r"(sources/[0-9a-f]{64}\.png)?")
_NAME = re.compile(r"[^/\\\0]+")


class CaseFile(Sequence[Case]):
    """The cases of a run, read from their file one by one."""

    def __init__(self, path: Path, shard: RunShard | None = None) -> None:
        """Only the cases of a shard, where one is given. Raises DataError without a file."""
        if not path.exists():
            raise DataError(
                f"{path}: no such file; run the command that made the run again",
                code="no-such-file",
            )
        self._path = path
        self._places = array("Q")
        self._file = LineReader(path)
        row, number = "", -1
        for (place, _), record in read_places(path, appended=False):
            if record.get("row") != row:
                row, number = record.get("row", ""), number + 1
            if owns_row(shard, number):
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

    def __eq__(self, value: object) -> bool:
        """As lists are equal."""
        return isinstance(value, Sequence) and list(self) == list(value)

    __hash__ = None  # type: ignore[assignment]

    def _case(self, place: int) -> Case:
        return _case(self._file.record(place), self._path, place)


def read_cases(path: Path) -> list[Case]:
    """All cases of a run, in one pass. Raises DataError without a file."""
    if not path.exists():
        raise DataError(
            f"{path}: no such file; run the command that made the run again", code="no-such-file"
        )
    cases = RecordParser(Case, {"seed": is_whole, "number": is_whole})
    with collector_paused():
        return [
            cases.parsed(record, partial(_case, record, path, place))
            for (place, _), record in read_places(path, appended=False)
        ]


def _case(record: dict[str, Any], path: Path, place: int) -> Case:
    case = parse_as(Case, record, f"{path} at byte {place}")
    if not _SOURCE.fullmatch(case.source) or not _NAME.fullmatch(case.file):
        raise DataError(f"{path}: {case.id} would lie outside the run", code="outside-folder")
    return case
