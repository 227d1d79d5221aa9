"""Append-only JSONL files: what is written stays, whenever the process dies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any


class RecordError(ValueError):
    """A file of records that can't be read; the message names file and line."""


class RecordLog:
    """One file of records, each a JSON object on a line, on disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        """Opens or creates the file; a last line without its line feed is cut off."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        self._file.seek(0)
        end = sum(len(line) for line in self._file if line.endswith(b"\n"))
        self._file.truncate(end)

    def append(self, record: Mapping[str, Any]) -> None:
        """Writes a record and waits until it is on disk."""
        line = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        self._file.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole record, oldest first; nothing where there is no file yet.

    Raises RecordError for a whole line that is no JSON object.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise RecordError(f"{path}:{number}: not a JSON object; restore the file")
            yield record
