"""The frozen draw of a bank: entries from which the fixed sizes of a release are drawn.

An entry beyond these is an addition. It gives rows of its own after the frozen ones and moves none
of them, so a bank that only grew makes a MINOR version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..schema import Struct
from .bank import BankError, by_name, read_entries

FILE = "frozen.yaml"

DrawTable = Literal["occupations", "animals", "objects", "actions", "pairs", "scenes", "rules"]
"""What can be added to without displacing rows."""


class FrozenTable(Struct):
    """The frozen entries of one table."""

    table: DrawTable
    """Which of them."""
    entries: list[str]
    """Ids of actions, pairs, scenes and rules, names of occupations, animals and objects."""


@dataclass(frozen=True)
class Frozen:
    """Frozen entries by table. A table that is not listed is frozen as it is."""

    entries: dict[DrawTable, frozenset[str]] = field(default_factory=dict)

    def holds(self, table: DrawTable, name: str) -> bool:
        """Whether an entry is in the frozen draw, and not an addition."""
        return table not in self.entries or name in self.entries[table]


ALL = Frozen()
"""Of a bank without the file: every entry takes part in the draw."""


def read_frozen(bank: Path) -> Frozen:
    """Reads the frozen draw; all entries where a bank has no such file.

    Raises BankError for a wrong file, and for an entry listed twice.
    """
    file = bank / FILE
    if not file.exists():
        return ALL
    tables = by_name(read_entries(file, FrozenTable), "table", str(file))
    for table in tables.values():
        for name in sorted({name for name in table.entries if table.entries.count(name) > 1}):
            raise BankError(f"{file}, {table.table}: {name!r} is listed twice", code="duplicate-id")
    return Frozen({table.table: frozenset(table.entries) for table in tables.values()})
