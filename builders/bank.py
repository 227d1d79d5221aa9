"""Reading bank files: YAML lists of entries, each checked against its model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError
from yaml import YAMLError

from ..errors import DataError
from ..parsing import MALFORMED, load_yaml, read_yaml
from ..schema import Struct
from .drawings import drawings

E = TypeVar("E", bound=Struct)

DEFAULT_BANK = Path(__file__).parent / "bank"
"""The curated bank that ships with the package."""


class BankError(DataError):
    """A bank file that can't be used; the message names file, entry and field."""

    exit_code = 1


class BankFaults:
    """The faults of a bank: one error names them all, a line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._code = ""

    def add(self, fault: str, code: str = "bad-entry") -> None:
        """Notes a fault; the code of the first is that of the error."""
        self.lines += (line for line in fault.splitlines() if line not in self.lines)
        self._code = self._code or code

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Notes the faults of a BankError that is raised in the block."""
        try:
            yield
        except BankError as error:
            self.add(str(error), error.code)

    def raise_any(self) -> None:
        """Raises BankError if there is a fault."""
        if self.lines:
            raise BankError("\n".join(self.lines), code=self._code)


def read_entries(path: Path, model: type[E], faults: BankFaults | None = None) -> list[E]:
    """Every entry of one bank file, in its order.

    Raises BankError naming all bad ones, or adds them to `faults` and leaves them out.
    """
    entries, own = [], BankFaults() if faults is None else faults
    with suppress(*MALFORMED, OSError, YAMLError):  # what is wrong is named below
        return list(_sound_entries(path.read_text(encoding="utf-8"), model))
    for number, item in enumerate(_read_list(path), 1):
        try:
            entries.append(model.model_validate(item))
        except ValidationError as error:
            name = next(iter(item.values()), "") if isinstance(item, dict) else item
            own.add(f"{path}, entry {number} ({name}): {reasons(error)}")
    if faults is None:
        own.raise_any()
    return entries


class FileRequest(NamedTuple):
    """One bank file to parse: YAML takes most of the time in which a bank is read."""

    text: str

    @property
    def key(self) -> str:
        """The file's text."""
        return f"bank {self.text}"

    def draw(self) -> bytes:
        """Its values as JSON; nothing if it is not YAML, or holds what JSON can't (a date)."""
        return _parsed(self.text)


@lru_cache(maxsize=512)
def _parsed(text: str) -> bytes:
    """As `FileRequest.draw`.

    Cached, because each build of a process parses a sample of what was kept again.
    """
    try:
        values = load_yaml(text, "")
        plain = json.dumps(values)
        return plain.encode() if json.loads(plain) == values else b""
    except (*MALFORMED, DataError, YAMLError):
        return b""  # who reads the entries says what is wrong


def begin_bank(folder: Path) -> None:
    """Parses the files of a bank that were not kept since an earlier run, and a sample again."""
    requests = []
    for path in sorted(folder.rglob("*.yaml")):
        with suppress(OSError, UnicodeDecodeError):  # named when it is read
            requests.append(FileRequest(path.read_text(encoding="utf-8")))
    drawings().begin(requests)


@lru_cache(maxsize=512)
def _sound_entries(text: str, model: type[E]) -> tuple[E, ...]:
    """Every entry of a file without faults; raises anything for another one.

    Cached, because tables that are made of the same file read it each, and a bank that somebody
    edits has most files in common with the shipped one.
    """
    items = json.loads(drawings()(FileRequest(text)))
    if not isinstance(items, list):
        raise ValueError
    return tuple(map(model.model_validate, items))


def read_folder(
    folder: Path, model: type[E], faults: BankFaults | None = None
) -> dict[str, list[E]]:
    """Entries of every ``*.yaml`` of a folder, by file name without suffix, sorted.

    Raises BankError naming the bad ones of all files, or adds them to `faults`.
    """
    files, own = {}, BankFaults() if faults is None else faults
    for path in sorted(folder.glob("*.yaml")):
        with own.caught():
            files[path.stem] = read_entries(path, model, own)
    if faults is None:
        own.raise_any()
    return files


def read_by_name(path: Path, model: type[E], field: str) -> dict[str, E]:
    """Entries of a file that a bank need not have, by a field that must be unique.

    Raises BankError for an entry that can't be read and a repeated value.
    """
    return by_name(read_entries(path, model), field, str(path)) if path.exists() else {}


def by_name(
    entries: Iterable[E], field: str, where: str, files: Mapping[str, Sequence[E]] | None = None
) -> dict[str, E]:
    """Entries by a field that must be unique. Raises BankError naming repeated values.

    files: file name without suffix -> its entries, where these are of a folder's files.
    """
    table: dict[str, E] = {}
    faults = BankFaults()
    for entry in entries:
        name = getattr(entry, field)
        if name in table:
            of_files = (f"{stem}.yaml" for stem, some in (files or {}).items() if entry in some)
            place = "/".join((where, *islice(of_files, 1)))
            faults.add(f"{place}: {field} {name!r} is used twice", "duplicate-id")
        table[name] = entry
    faults.raise_any()
    return table


def _read_list(path: Path) -> list[Any]:
    try:
        data = read_yaml(path)
    except DataError as error:
        raise BankError(str(error), code=error.code) from None
    if not isinstance(data, list):
        raise BankError(f"{path}: a bank file is a list of entries", code="wrong-type")
    return data


def reasons(error: ValidationError) -> str:
    """All faults that the validation found, by field."""
    return "; ".join(
        ".".join(map(str, e["loc"])) + ": " + e["msg"] if e["loc"] else e["msg"]
        for e in error.errors()
    )
