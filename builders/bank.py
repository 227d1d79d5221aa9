"""Reading bank files: YAML lists of entries, each checked against its model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ..errors import DataError
from ..parsing import read_yaml
from ..schema import Struct

E = TypeVar("E", bound=Struct)

DEFAULT_BANK = Path(__file__).parent / "bank"
"""The curated bank that ships with the package."""


class BankError(DataError):
    """A bank file that can't be used; the message names file, entry and field."""

    exit_code = 1


def read_entries(path: Path, model: type[E]) -> list[E]:
    """Every entry of one bank file, in its order. Raises BankError for the first bad one."""
    entries = []
    for number, item in enumerate(_read_list(path), 1):
        try:
            entries.append(model.model_validate(item))
        except ValidationError as error:
            name = next(iter(item.values()), "") if isinstance(item, dict) else item
            raise BankError(
                f"{path}, entry {number} ({name}): {reasons(error)}", code="bad-entry"
            ) from None
    return entries


def read_folder(folder: Path, model: type[E]) -> dict[str, list[E]]:
    """Entries of every ``*.yaml`` of a folder, by file name without suffix, sorted."""
    return {path.stem: read_entries(path, model) for path in sorted(folder.glob("*.yaml"))}


def read_by_name(path: Path, model: type[E], field: str) -> dict[str, E]:
    """Entries of a file that a bank need not have, by a field that must be unique.

    Raises BankError for an entry that can't be read and a repeated value.
    """
    return by_name(read_entries(path, model), field, str(path)) if path.exists() else {}


def by_name(entries: Iterable[E], field: str, where: str) -> dict[str, E]:
    """Entries by a field that must be unique. Raises BankError naming a repeated value."""
    table: dict[str, E] = {}
    for entry in entries:
        name = getattr(entry, field)
        if name in table:
            raise BankError(f"{where}: {field} {name!r} is used twice", code="duplicate-id")
        table[name] = entry
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
