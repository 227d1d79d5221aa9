"""Reading tables of rows (JSONL, JSON, CSV) and writing them whole or not at all.

Every error names file, line and field, and says what to do.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from .errors import DataError
from .storage import write_whole

Model = TypeVar("Model", bound=BaseModel)
PlainRow = dict[str, Any]


class RowError(DataError):
    """A row that cannot be used; the message names file, line and field."""


def read_rows(path: Path) -> Iterator[tuple[int, PlainRow]]:
    """Line number and row of a `.jsonl`, `.json` (a list) or `.csv` file.

    Raises RowError for a missing file, a line that is no JSON object (a half-written last line
    among them), or another suffix.
    """
    if not path.is_file():
        raise RowError(f"{path}: no such file")
    readers = {".jsonl": _json_lines, ".json": _json_list, ".csv": _csv_rows}
    if path.suffix not in readers:
        raise RowError(f"{path}: write the rows as one of {', '.join(sorted(readers))}")
    return readers[path.suffix](path)


def _json_lines(path: Path) -> Iterator[tuple[int, PlainRow]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                torn = "" if line.endswith("\n") else "; the last line is half-written: delete it"
                raise RowError(f"{path}:{number}: not JSON ({error}){torn}") from None
            yield number, _object(row, path, number)


def _json_list(path: Path) -> Iterator[tuple[int, PlainRow]]:
    try:
        rows = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise RowError(f"{path}: not JSON ({error})") from None
    if not isinstance(rows, list):
        raise RowError(f"{path}: holds a {type(rows).__name__}, a list of rows is needed")
    for number, row in enumerate(rows, 1):
        yield number, _object(row, path, number)


def _csv_rows(path: Path) -> Iterator[tuple[int, PlainRow]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            if None in row or None in row.values():
                raise RowError(f"{path}:{number}: the row has not as many fields as the header")
            yield number, row


def _object(row: object, path: Path, number: int) -> PlainRow:
    if not isinstance(row, dict):
        raise RowError(f"{path}:{number}: a {type(row).__name__}, a JSON object is needed")
    return row


def parse(model: type[Model], row: Mapping[str, Any], path: Path, number: int) -> Model:
    """The row as a model; RowError names the first field that does not fit."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "row"
        raise RowError(f"{path}:{number}: {field}: {first['msg']}") from None


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSONL; the file appears whole or stays as it was."""
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
