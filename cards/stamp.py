"""The stamp: turns a validated build into version X of repository Y without changing its data.

A build knows neither its version nor its repository, so the texts that state them are rendered
again. The result depends only on the build, the previous release and the mark: repeating a push
repeats its bytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..builders.manifest import Erratum
from ..release import CHECKSUMS, Change
from .diff import ReleaseDiff, diff, rows_by_id
from .documents import render_documents
from .facts import MANIFEST, Facts, read_facts
from .write import write_texts

ErratumStatus = Literal["revised", "retired", "removed"]


@dataclass(frozen=True)
class Mark:
    """What the stamp writes into a build."""

    repo_id: str
    """Dataset repository, `namespace/name`."""
    version: str
    """Semantic version, without `v`."""
    date: str
    """Release day, YYYY-MM-DD."""


def stamp(folder: Path, out: Path, mark: Mark, published: Path | None) -> Facts:
    """Writes `folder` as version `mark` into the new folder `out`; returns its facts.

    `published` is the highest release below that version, None for the first. Data files become
    hard links if the file system has them. Raises ReleaseError if a folder is not a release.
    """
    facts = read_facts(folder)
    before = None if published is None else read_facts(published)
    found = None if published is None else diff(published, folder)
    change = Change(version=mark.version, date=mark.date, notes=_notes(facts, found, mark.version))
    errata = [] if before is None else list(before.errata)
    if found is not None and published is not None:
        errata += _changed_rows(found, published, folder, facts, mark.version)
    listed = {(e.config, e.entry) for e in errata}
    errata += [e for e in facts.errata if (e.config, e.entry) not in listed]
    stamped = facts.model_copy(
        update={
            "repo_id": mark.repo_id,
            "changes": [change, *(before.changes if before else ())],
            "errata": errata,
        }
    )
    rendered = {*render_documents(stamped), MANIFEST, CHECKSUMS}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in rendered:
            link(path, out / name)
    write_texts(stamped, out)
    return stamped


def _notes(facts: Facts, found: ReleaseDiff | None, version: str) -> list[str]:
    """The bank's notes on this version, then what changed in the rows."""
    banked = facts.changes[0].notes if facts.changes[0].version == version else []
    if found is None:
        return banked or [f"First release: {facts.rows:,} rows."]
    changed = [config.sentence() for config in found.configs if config.bump != "NONE"]
    return [*banked, *(changed or ["Every row is unchanged."])]


def _changed_rows(
    found: ReleaseDiff, published: Path, folder: Path, facts: Facts, version: str
) -> Iterator[Erratum]:
    """Every edited or removed row, with the bank's reason if it gives one."""
    banked = {(e.config, e.entry): e for e in facts.errata}
    for config in found.configs:
        if config.standing == "dropped":
            yield Erratum(
                config=config.name,
                entry="all",
                status="removed",
                reason="The config was dropped.",
                version=version,
            )
        elif config.removed or config.edited:
            old, new = rows_by_id(published, config.name), rows_by_id(folder, config.name)
            for row in (*config.removed, *config.edited):
                entry = old[row]["provenance"]["entry"]
                status, reason = _what_happened(old[row], new.get(row))
                if told := banked.get((config.name, entry)):
                    status, reason = told.status, told.reason
                yield Erratum(
                    config=config.name,
                    entry=entry,
                    status=status,
                    reason=reason,
                    row=row,
                    version=version,
                )


def _what_happened(old: dict[str, Any], new: dict[str, Any] | None) -> tuple[ErratumStatus, str]:
    """Status and reason of a row that the bank does not explain."""
    if new is None:
        return "removed", "The row is no longer in the release."
    changed = [name for name in old if name in new and old[name] != new[name]]
    return "retired" if new["status"] == "retired" else "revised", f"Changed: {', '.join(changed)}."


def link(source: Path, target: Path) -> None:
    """Puts a file at another place too: as a hard link, or a copy where there are none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copyfile(source, target)
