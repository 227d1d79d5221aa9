"""What changed between two releases, and the version bump that it demands.

The rule is Croissant's (1.1, versioning): PATCH repackages the same data, MINOR only adds (rows,
columns, configs), MAJOR edits or removes anything that was published.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ..release import iter_records, read_checksums
from ..schema import row_digest
from .facts import read_facts

Bump = Literal["NONE", "PATCH", "MINOR", "MAJOR"]
BUMPS: tuple[Bump, ...] = ("NONE", "PATCH", "MINOR", "MAJOR")


@dataclass(frozen=True)
class ConfigDiff:
    """Rows and columns of one config that differ."""

    name: str
    """Config name."""
    added: tuple[str, ...]
    """Ids that only the new release has."""
    removed: tuple[str, ...]
    """Ids that only the old release has."""
    edited: tuple[str, ...]
    """Ids whose rows differ in a column that both have."""
    columns_added: tuple[str, ...]
    """Columns that only the new release has."""
    columns_removed: tuple[str, ...]
    """Columns that only the old release has."""

    @property
    def bump(self) -> Bump:
        if self.removed or self.edited or self.columns_removed:
            return "MAJOR"
        return "MINOR" if self.added or self.columns_added else "NONE"


@dataclass(frozen=True)
class ReleaseDiff:
    """Everything that differs between two releases."""

    configs: tuple[ConfigDiff, ...]
    """Every config of either."""
    files: tuple[str, ...]
    """Files whose bytes differ, or that only one of the two has."""

    @property
    def bump(self) -> Bump:
        """The smallest version bump that tells the truth."""
        found = [config.bump for config in self.configs] + ["PATCH" if self.files else "NONE"]
        return max(found, key=BUMPS.index)

    def to_json(self) -> str:
        """Configs with the ids that differ, files and bump."""
        configs = [asdict(config) | {"bump": config.bump} for config in self.configs]
        return json.dumps({"bump": self.bump, "configs": configs, "files": self.files}, indent=1)


def diff(old: Path, new: Path) -> ReleaseDiff:
    """Compare two release folders. Raises ReleaseError where one of them is none."""
    configs = [{config.name for config in read_facts(root).configs} for root in (old, new)]
    names = sorted(configs[0] | configs[1])
    files = [
        {name: entry["sha256"] for name, entry in read_checksums(root)["files"].items()}
        for root in (old, new)
    ]
    return ReleaseDiff(
        configs=tuple(
            _compare(
                name,
                _rows(old, name) if name in configs[0] else {},
                _rows(new, name) if name in configs[1] else {},
            )
            for name in names
        ),
        files=tuple(
            name
            for name in sorted({*files[0], *files[1]})
            if files[0].get(name) != files[1].get(name)
        ),
    )


def _rows(root: Path, config: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in iter_records(root, config)}


def _compare(
    name: str, old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]
) -> ConfigDiff:
    columns = [set(next(iter(rows.values()), {})) for rows in (old, new)]
    both = columns[0] & columns[1]

    def shared(record: dict[str, Any]) -> str:
        return row_digest({column: record[column] for column in both})

    known = bool(old) and bool(new)
    return ConfigDiff(
        name=name,
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        edited=tuple(
            sorted(i for i in old.keys() & new.keys() if shared(old[i]) != shared(new[i]))
        ),
        columns_added=tuple(sorted(columns[1] - columns[0])) if known else (),
        columns_removed=tuple(sorted(columns[0] - columns[1])) if known else (),
    )
