"""Changes between two releases, and the version bump that they demand.

The rule is Croissant's (1.1, versioning): PATCH repackages the same data, MINOR only adds rows,
columns or configs, MAJOR edits, removes or reorders anything published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

from ..release import iter_records, parquet_path, read_checksums, sha256_file
from ..schema import row_digest
from .manifest import read_manifest
from .versions import BUMPS, Bump


@dataclass(frozen=True)
class ConfigDiff:
    """The rows and columns of one config that differ."""

    name: str
    """Config name."""
    standing: Literal["kept", "new", "dropped"]
    """Whether both releases have the config, only the new one, or only the old one."""
    added: tuple[str, ...]
    """Ids only in the new release."""
    removed: tuple[str, ...]
    """Ids only in the old release."""
    edited: tuple[str, ...]
    """Ids whose rows differ in a column that both releases have."""
    reordered: bool
    """Whether shared rows changed their order, so that row 7 is another row."""
    columns_added: tuple[str, ...]
    """Columns only in the new release."""
    columns_removed: tuple[str, ...]
    """Columns only in the old release."""
    prompts: dict[str, str]
    """Prompt of each row that differs, by id, as published where it was."""
    edits: dict[str, dict[str, tuple[str, str]]]
    """Id of an edited row -> column -> what it was and what it is now."""

    @property
    def bump(self) -> Bump:
        if self.removed or self.edited or self.reordered or self.columns_removed:
            return "MAJOR"
        return "MINOR" if self.added or self.columns_added else "NONE"

    def sentence(self) -> str:
        """A changelog line: `spatial_uc: 3 rows added, 1 row edited`."""
        if self.standing != "kept":
            count = len(self.added if self.standing == "new" else self.removed)
            return f"{self.name}: {self.standing}, {_rows(count)}"
        counts = {"added": self.added, "edited": self.edited, "removed": self.removed}
        changes = [f"{_rows(len(ids))} {change}" for change, ids in counts.items() if ids]
        changes += ["rows reordered"] * self.reordered
        changes += [f"column `{name}` added" for name in self.columns_added]
        changes += [f"column `{name}` removed" for name in self.columns_removed]
        return f"{self.name}: {', '.join(changes) or 'unchanged'}"


@dataclass(frozen=True)
class ReleaseDiff:
    """Everything that differs between two releases."""

    configs: tuple[ConfigDiff, ...]
    """Every config of either release."""
    files: tuple[str, ...]
    """Files whose bytes differ, or that only one release has."""

    @property
    def bump(self) -> Bump:
        """The smallest version bump that the change allows."""
        bumps = [config.bump for config in self.configs] + ["PATCH" if self.files else "NONE"]
        return max(bumps, key=BUMPS.index)

    def to_json(self) -> str:
        """Bump, configs with the ids that differ, and files, as JSON."""
        configs = [asdict(config) | {"bump": config.bump} for config in self.configs]
        return json.dumps({"bump": self.bump, "configs": configs, "files": self.files}, indent=1)


def diff(old: Path, new: Path) -> ReleaseDiff:
    """Compares two release folders. Raises ReleaseError if one of them is not a release."""
    config_names = [{config.name for config in read_manifest(root).configs} for root in (old, new)]
    all_names = sorted(config_names[0] | config_names[1])
    files = [
        {name: entry["sha256"] for name, entry in read_checksums(root)["files"].items()}
        for root in (old, new)
    ]
    return ReleaseDiff(
        configs=tuple(
            _compared(
                name,
                _Table.of(old, name, files[0]) if name in config_names[0] else None,
                _Table.of(new, name, files[1]) if name in config_names[1] else None,
            )
            for name in all_names
        ),
        files=tuple(
            name
            for name in sorted({*files[0], *files[1]})
            if files[0].get(name) != files[1].get(name)
        ),
    )


@dataclass(frozen=True)
class _Table:
    """The rows of a config: the same ones wherever its file has the same bytes."""

    sha256: str
    """Digest of the file as it is now; empty if there is none to read."""
    is_recorded: bool
    """Whether the release records this digest; else nobody knows that the file can be read."""
    root: Path = field(compare=False)
    """A release folder that has it."""

    @classmethod
    def of(cls, root: Path, config: str, recorded: Mapping[str, str]) -> Self:
        """recorded: file -> SHA-256, as the release's checksums say."""
        path, digest = root / parquet_path(config), ""
        with suppress(OSError):  # named when the rows are read
            digest = sha256_file(path) if path.is_file() else ""
        return cls(digest, digest == recorded.get(parquet_path(config)), root)


@lru_cache(maxsize=64)
def _compared(name: str, old: _Table | None, new: _Table | None) -> ConfigDiff:
    """Cached, because a push compares the same files for its version, its text and its licenses.

    Files of the same bytes have the same rows, which are not read unless both files are damaged.
    """
    if old is not None and old == new and old.is_recorded:
        return ConfigDiff(name, "kept", (), (), (), False, (), (), {}, {})
    return _compare(
        name,
        None if old is None else rows_by_id(old.root, name),
        None if new is None else rows_by_id(new.root, name),
    )


def rows_by_id(root: Path, config: str) -> dict[str, dict[str, Any]]:
    """The rows of one config of a release folder, images as encoded bytes."""
    return {record["id"]: record for record in iter_records(root, config)}


def _compare(
    name: str, published: dict[str, dict[str, Any]] | None, next_: dict[str, dict[str, Any]] | None
) -> ConfigDiff:
    old, new = published or {}, next_ or {}
    columns = [set(next(iter(rows.values()), {})) for rows in (old, new)]
    shared_columns = columns[0] & columns[1]

    def shared(record: dict[str, Any]) -> str:
        return row_digest({column: record[column] for column in shared_columns})

    edited = tuple(sorted(i for i in old.keys() & new.keys() if shared(old[i]) != shared(new[i])))
    differing = sorted((old.keys() ^ new.keys()) | set(edited))
    comparable = bool(old) and bool(new)
    stayed = [[row for row in rows if row in old and row in new] for rows in (old, new)]
    return ConfigDiff(
        name=name,
        standing="new" if published is None else "dropped" if next_ is None else "kept",
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        edited=edited,
        reordered=stayed[0] != stayed[1],
        columns_added=tuple(sorted(columns[1] - columns[0])) if comparable else (),
        columns_removed=tuple(sorted(columns[0] - columns[1])) if comparable else (),
        prompts={i: _prompt(old[i] if i in old else new[i]) for i in differing},
        edits={i: _edits(old[i], new[i], shared_columns) for i in edited},
    )


PROMPT_COLUMNS = (
    *("prompt", "aligned_prompt", "aligned_instruction", "instruction"),
    *("correct_caption", "caption"),
)
"""Columns that may hold what is asked for, the first that a row has."""


def _prompt(record: dict[str, Any]) -> str:
    return next((str(record[name]) for name in PROMPT_COLUMNS if record.get(name)), "")


def _edits(
    old: dict[str, Any], new: dict[str, Any], columns: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Column -> both values as text, where they differ; bytes as their number."""
    changed = (name for name in sorted(columns) if old[name] != new[name])
    return {name: (_text(old[name]), _text(new[name])) for name in changed}


def _text(value: Any) -> str:
    if isinstance(value, dict) and isinstance(data := value.get("bytes"), bytes):
        return f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"
