"""Rows that are not held: they lie in an unnamed file, and one at a time is in memory."""

from __future__ import annotations

import os
import pickle
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from tempfile import TemporaryFile
from typing import Any, overload

from ...schema import Row, lines_digest, record_line


class SpooledRows(Sequence[Row]):
    """The rows of records, in their order, read anew whenever one is asked for."""

    def __init__(
        self, records: Iterable[dict[str, Any]], read: Callable[[dict[str, Any]], Row]
    ) -> None:
        """read: makes a row of a record. The file ends with this object."""
        self._read = read
        self._places = array("Q", [0])
        self._ids: list[str] = []
        with TemporaryFile() as file:
            for record in records:
                file.write(pickle.dumps(record))
                self._places.append(file.tell())
                self._ids.append(record["id"])
            file.flush()
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | Sequence[Row]:
        if isinstance(number, slice):
            return ChosenRows(self, range(len(self))[number])
        return self._read(self.record(range(len(self))[number]))

    def digest(self) -> str:
        """As `schema.rows_digest` of the records."""
        ids = self._ids.__getitem__
        of_one_id = groupby(sorted(range(len(self)), key=ids), key=ids)
        lines = (sorted(record_line(self.record(n)) for n in numbers) for _, numbers in of_one_id)
        return lines_digest(chain.from_iterable(lines))

    def record(self, number: int) -> dict[str, Any]:
        """A row as it was given; from 0."""
        start, end = self._places[number : number + 2]
        read = b""
        while len(read) < end - start:  # one call gives 2 GB at most
            read += os.pread(self._file, end - start - len(read), start + len(read))
        record: dict[str, Any] = pickle.loads(read)
        return record


class ChosenRows(Sequence[Row]):
    """Some of other rows."""

    def __init__(self, rows: Sequence[Row], numbers: Iterable[int]) -> None:
        """numbers: places in `rows`, from 0."""
        self._rows = rows
        self._numbers = array("Q", numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | Sequence[Row]:
        if isinstance(number, slice):
            return ChosenRows(self._rows, self._numbers[number])
        return self._rows[self._numbers[number]]


class RowIndex(Mapping[str, Row]):
    """Id -> row, in their order; the one that was asked for last stays in memory."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._numbers = {row.id: number for number, row in enumerate(rows)}
        self._last: tuple[str, Row] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __getitem__(self, name: str) -> Row:
        last = self._last
        if last is None or last[0] != name:
            self._last = last = name, self._rows[self._numbers[name]]
        return last[1]
