"""Stamps a validated build as version X of repository Y without changing its data.

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

from ..builders.build_result import Erratum
from ..release import CHECKSUMS, Change
from .diff import ReleaseDiff, diff, rows_by_id
from .documents import count_rows, render_documents
from .manifest import MANIFEST, Manifest, read_manifest
from .write import write_texts

ErratumStatus = Literal["revised", "retired", "removed"]


@dataclass(frozen=True)
class Mark:
    """Facts that the stamp writes into a build."""

    repo_id: str
    """Dataset repository, `namespace/name`."""
    version: str
    """Semantic version, without `v`."""
    date: str
    """Release day, YYYY-MM-DD."""


def stamp(folder: Path, out: Path, mark: Mark, published: Path | None) -> Manifest:
    """Writes `folder` as version `mark` into the new folder `out`; returns its manifest.

    `published` is the highest release below that version, None for the first. Data files become
    hard links if the file system has them. Raises ReleaseError if a folder is not a release.
    """
    manifest = read_manifest(folder)
    before = None if published is None else read_manifest(published)
    changes = None if published is None else diff(published, folder)
    change = Change(
        version=mark.version, date=mark.date, notes=_notes(manifest, changes, mark.version)
    )
    errata = [] if before is None else list(before.errata)
    if changes is not None and published is not None:
        errata += _changed_rows(changes, published, folder, manifest, mark.version)
    listed = {(e.config, e.entry) for e in errata}
    errata += [e for e in manifest.errata if (e.config, e.entry) not in listed]
    stamped = manifest.model_copy(
        update={
            "repo_id": mark.repo_id,
            "changes": [change, *(before.changes if before else ())],
            "errata": errata,
        }
    )
    documents = render_documents(stamped)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in {*documents, MANIFEST, CHECKSUMS}:
            link(path, out / name)
    write_texts(stamped, documents, out)
    return stamped


def _notes(manifest: Manifest, changes: ReleaseDiff | None, version: str) -> list[str]:
    """The bank's notes on this version, then what changed in the rows."""
    banked = manifest.changes[0].notes if manifest.changes[0].version == version else []
    if changes is None:
        return banked or [f"First release: {count_rows(manifest)}."]
    changed = [config.sentence() for config in changes.configs if config.bump != "NONE"]
    return [*banked, *(changed or ["Every row is unchanged."])]


def _changed_rows(
    changes: ReleaseDiff, published: Path, folder: Path, manifest: Manifest, version: str
) -> Iterator[Erratum]:
    """Every edited or removed row, with the bank's reason if it gives one."""
    banked = {(e.config, e.entry): e for e in manifest.errata}
    for config in changes.configs:
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
                status, reason = _explanation(old[row], new.get(row))
                if erratum := banked.get((config.name, entry)):
                    status, reason = erratum.status, erratum.reason
                yield Erratum(
                    config=config.name,
                    entry=entry,
                    status=status,
                    reason=reason,
                    row=row,
                    version=version,
                )


def _explanation(old: dict[str, Any], new: dict[str, Any] | None) -> tuple[ErratumStatus, str]:
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
