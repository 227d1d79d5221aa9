"""Reads JSON, YAML and tables of rows (JSONL, JSON, CSV), and writes rows whole or not at all.

Every error names file, line and field, and says what to do.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from .errors import DataError
from .storage import whole_file

Model = TypeVar("Model", bound=BaseModel)
Record = TypeVar("Record")
PlainRow = dict[str, Any]
MALFORMED = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)
"""Errors that a value of an unexpected form may raise in a reader: `except MALFORMED`."""
DEEPEST = 64
"""Levels of lists and mappings in a YAML file; ours have five."""
MOST_NODES = 100_000
"""Values of a YAML file with aliases, each counted as often as an alias repeats it."""
_DEEP_LINE = re.compile(r"^ {30}|([-?:] +){16}", re.MULTILINE)
SHA256 = re.compile("[0-9a-f]{64}")
"""A SHA-256 in hex digits."""
Digest = Annotated[str, Field(pattern=f"^({SHA256.pattern})?$")]
"""The same, or nothing; it may become part of a file's name."""
Dollars = Annotated[str, Field(pattern=r"^(\d+(\.\d+)?(E[+-]?\d{1,2})?)?$")]
"""A cost as `str(Decimal)` writes it, never negative; empty if unknown or nothing was paid."""


class RowError(DataError):
    """A row that cannot be used; the message names file, line and field."""


def read_rows(path: Path) -> Iterator[tuple[int, PlainRow]]:
    """Line number and row of a `.jsonl`, `.json` (a list) or `.csv` file.

    Raises RowError for a missing file, a line that is no JSON object (a half-written last line
    among them), or another suffix.
    """
    if not path.is_file():
        raise RowError(f"{path}: no such file: check the path", code="no-such-file")
    readers = {".jsonl": _json_lines, ".json": _json_list, ".csv": _csv_rows}
    if path.suffix not in readers:
        raise RowError(
            f"{path}: write the rows as one of {', '.join(sorted(readers))}", code="unknown-format"
        )
    return readers[path.suffix](path)


def _json_lines(path: Path) -> Iterator[tuple[int, PlainRow]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                row = json.loads(text, object_pairs_hook=_once)
            except (ValueError, RecursionError) as error:
                torn = "" if line.endswith(b"\n") else "; the last line was cut off: delete it"
                raise RowError(
                    f"{path}:{number}: not JSON ({error}){torn}", code="bad-json"
                ) from None
            yield number, _object(row, path, number)


def _json_list(path: Path) -> Iterator[tuple[int, PlainRow]]:
    try:
        rows = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise RowError(f"{path}: not JSON ({error})", code="bad-json") from None
    if not isinstance(rows, list):
        raise RowError(f"{path}: is a {type(rows).__name__}, not a list of rows", code="wrong-type")
    for number, row in enumerate(rows, 1):
        yield number, _object(row, path, number)


def _csv_rows(path: Path) -> Iterator[tuple[int, PlainRow]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        number = 1
        try:
            rows = csv.DictReader(file)
            columns = [name for name in rows.fieldnames or () if name]
            if len(columns) == 1 and (other := next((c for c in ";\t" if c in columns[0]), "")):
                raise RowError(
                    f"{path}:1: fields are divided by {other!r}: save it with commas",
                    code="bad-csv",
                )
            if twice := [name for name in columns if columns.count(name) > 1]:
                raise RowError(
                    f"{path}:1: the column {twice[0]!r} is there twice: remove one",
                    code="duplicate-id",
                )
            for number, row in enumerate(rows, 2):
                if None in row or None in row.values():
                    raise RowError(
                        f"{path}:{number}: the row has more or fewer fields than the header",
                        code="bad-csv",
                    )
                yield number, row
        except UnicodeError:
            raise RowError(
                f"{path}: not UTF-8 after line {number}: save it as UTF-8", code="bad-csv"
            ) from None
        except csv.Error as error:
            raise RowError(
                f"{path}: not CSV after line {number} ({error})", code="bad-csv"
            ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError for a key that is there twice: nobody knows which counts."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {max(names, key=names.count)!r} is there twice")
    return row


def _object(row: object, path: Path, number: int) -> PlainRow:
    if not isinstance(row, dict):
        raise RowError(
            f"{path}:{number}: is a {type(row).__name__}, not a JSON object", code="wrong-type"
        )
    return row


def read_json(path: Path) -> Any:
    """Reads a JSON file. Raises DataError if it is missing or not JSON."""
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file", code="no-such-file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})", code="bad-json") from None


def read_yaml(path: Path) -> Any:
    """Reads a YAML file. Raises DataError if it is missing, not YAML, or nested too deeply."""
    try:
        return load_yaml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file", code="no-such-file") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(yaml_fault(error, str(path)), code="bad-yaml") from None


def yaml_fault(error: Exception, source: str) -> str:
    """Returns file, line and what is wrong there with a text that is not YAML, in one line."""
    mark = getattr(error, "problem_mark", None)
    place = f"{source}:{mark.line + 1}" if mark else source
    parts = (getattr(error, name, None) for name in ("context", "problem"))
    text = ": ".join(filter(None, parts)) or " ".join(str(error).split())
    return f"{place}: not YAML: {text}"


def load_yaml(text: str, source: str) -> Any:
    """The plain values of a YAML text; `source` names it in messages.

    Raises DataError if it is nested too deeply or too large with its aliases, and yaml.YAMLError,
    ValueError or RecursionError if it is not YAML.
    """
    check_yaml(text, source)
    return yaml.load(text, Loader=_loader())


def check_yaml(text: str, source: str) -> None:
    """Raises DataError for a YAML text that nests beyond `DEEPEST`, whose aliases contain
    themselves, or that has more than `MOST_NODES` nodes once its aliases are written out."""
    # The loader recurses in C, where nothing stops it, and all that walks its values meets an
    # alias as often as it stands there.
    if not _may_be_deep(text) and ("*" not in text or "&" not in text):
        return
    anchors: dict[str, tuple[int, int]] = {}  # name -> nodes and levels
    open_nodes: list[list[Any]] = [["", 0, 0]]
    aliases = False
    name: str | None
    for event in yaml.parse(text, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append([event.anchor, 1, 0])
            if len(open_nodes) - 1 > DEEPEST:
                raise _too_deep(source)
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                problem = f"the alias *{event.anchor} stands before its end"
                raise DataError(f"{source}: not YAML ({problem})", code="bad-yaml")
            name, (nodes, levels), aliases = "", anchors[event.anchor], True
        elif isinstance(event, yaml.ScalarEvent):
            name, nodes, levels = event.anchor, 1, 0
        elif isinstance(event, yaml.CollectionEndEvent):
            name, nodes, levels = open_nodes.pop()
            levels += 1
        else:
            continue
        if name:
            anchors[name] = nodes, levels
        parent = open_nodes[-1]
        parent[1], parent[2] = parent[1] + nodes, max(parent[2], levels)
        if aliases and parent[1] > MOST_NODES:
            problem = f"more than {MOST_NODES:,} values with its aliases written out"
            raise DataError(f"{source}: {problem}", code="out-of-range")
        if len(open_nodes) - 1 + parent[2] > DEEPEST:
            raise _too_deep(source)


def _too_deep(source: str) -> DataError:
    return DataError(f"{source}: nested more than {DEEPEST} levels deep", code="too-deep")


def _loader() -> Any:
    # The C loader is ten times faster and a wheel of PyYAML always has it; others may not.
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _may_be_deep(text: str) -> bool:
    """Whether a text could nest beyond `DEEPEST`: by brackets, by dashes in a line, by indents."""
    brackets = text.count("[") + text.count("{")
    return brackets > DEEPEST or re.search(_DEEP_LINE, text) is not None


def parse(model: type[Model], row: Mapping[str, Any], path: Path, number: int) -> Model:
    """The row as a model; RowError names the first field that does not fit."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        problem, code = _first_problem(error)
        raise RowError(f"{path}:{number}: {problem}", code=code) from None


def parse_as(kind: type[Record], value: Any, place: str) -> Record:
    """Returns a parsed value as a dataclass or another type, every field of its type.

    Raises RowError, which names the place and the first field that does not fit, an unknown one
    too.
    """
    field_names = _fields_of(kind)  # type: ignore[arg-type]
    if field_names and isinstance(value, dict) and not value.keys() <= field_names:
        raise RowError(
            f"{place}: {min(value.keys() - field_names)}: unknown field", code="unknown-field"
        )
    try:
        record: Record = _adapter(kind).validate_python(value)  # type: ignore[arg-type]
    except ValidationError as error:
        problem, code = _first_problem(error)
        raise RowError(f"{place}: {problem}", code=code) from None
    return record


@cache
def _fields_of(kind: Any) -> frozenset[str]:
    """Names of the fields of a dataclass; empty for another type."""
    return frozenset(f.name for f in fields(kind)) if is_dataclass(kind) else frozenset()


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def fault_code(kind: str) -> str:
    """The code of an error for a fault that pydantic names.

    >>> [fault_code(kind) for kind in ("missing", "int_parsing", "greater_than", "value_error")]
    ['missing-field', 'wrong-type', 'out-of-range', 'bad-value']
    """
    if kind in ("missing", "extra_forbidden"):
        return {"missing": "missing-field", "extra_forbidden": "unknown-field"}[kind]
    if kind.endswith(("_type", "_parsing", "_from_float")):
        return "wrong-type"
    if kind.startswith(("greater_than", "less_than", "too_long", "too_short")):
        return "out-of-range"
    return "unknown-name" if kind in ("literal_error", "enum") else "bad-value"


def _first_problem(error: ValidationError) -> tuple[str, str]:
    """The first field that does not fit, with what is wrong, and the code of the error."""
    first = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(segment) for segment in first["loc"]) or "row"
    empty = first["type"] == "string_too_short" and not first["input"]
    problem = "is empty: write a value" if empty else first["msg"]
    return f"{field}: {problem}", fault_code(first["type"])


def csv_text(lines: Iterable[Iterable[Any]]) -> str:
    """Lines of values as CSV, the header first."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSONL, row by row; the file appears whole or stays as it was.

    A lone surrogate is written as its escape.
    """
    with whole_file(path) as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False) + "\n"
            file.write(line.encode("utf-8", "backslashreplace"))
