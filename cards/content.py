"""The content of a push: a release of rows, or a publication of images and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..eval.publishing.card import WRITTEN, count_text, write_card
from ..eval.publishing.publication import (
    PUBLICATION,
    Publication,
    read_publication,
    write_publication,
)
from ..release import Change, ReleaseError, read_checksums
from .diff import diff
from .manifest import MANIFEST, read_manifest
from .push_checks import check_drops, check_licenses
from .version_stamp import Mark, link, stamp
from .versions import Bump


@dataclass(frozen=True)
class PushSettings:
    """A push as asked for. The token is not here: huggingface_hub finds it."""

    repo_id: str
    """Dataset repository, `namespace/name`."""
    version: str | None = None
    """Semantic version, without `v`; None: the smallest that the change allows, never a MAJOR
    step."""
    date: str = ""
    """Release day, YYYY-MM-DD; empty: today, or the day of the push being continued."""
    create: bool = False
    """Create the repository if it does not exist."""
    private: bool = False
    """The repository must be private or gated; a public one is refused."""
    sign: Path | None = None
    """SSH key that signs the pushed folder; None: it is not signed."""
    dry_run: bool = False
    """Only plan: reading a public repository takes no token."""
    allow_drop: bool = False
    """Let a MAJOR version drop published files."""
    allow_license_change: bool = False
    """Let published data change their license."""
    endpoint: str | None = None
    """URL of the Hub; None: `HF_ENDPOINT`, or huggingface.co."""
    waits: tuple[float, ...] = (1, 2, 4, 8, 16)
    """Seconds between attempts of one request."""
    timeout: float = 120
    """Seconds without a byte after which a request fails."""


class Content(Protocol):
    """A kind of folder that can be pushed: how it is stamped, compared and refused."""

    manifest: str
    """The file that says which version it is."""
    compared: tuple[str, ...] | None
    """Files of the last version that `demanded` and `stamp` read; None: all."""

    def is_secret(self, folder: Path) -> bool:
        """Whether the folder must not become public. Raises ReleaseError for another folder."""
        ...

    def stamp(self, folder: Path, out: Path, mark: Mark, published: Path | None) -> None:
        """Writes the folder as a version into the new folder `out`."""
        ...

    def newest(self, folder: Path) -> Change:
        """Version, day and notes of a stamped folder. Raises ReleaseError without them."""
        ...

    def demanded(self, published: Path, folder: Path) -> Bump:
        """The smallest step that the change from the last version allows."""
        ...

    def refuse(self, published: Path, stamped: Path, settings: PushSettings) -> None:
        """Raises HubError for a change that must be agreed to."""
        ...


class ReleaseContent:
    """A release of rows, as `build` makes it."""

    manifest = MANIFEST
    compared: tuple[str, ...] | None = None

    def is_secret(self, folder: Path) -> bool:
        return read_manifest(folder).private

    def stamp(self, folder: Path, out: Path, mark: Mark, published: Path | None) -> None:
        stamp(folder, out, mark, published)

    def newest(self, folder: Path) -> Change:
        return read_manifest(folder).changes[0]

    def demanded(self, published: Path, folder: Path) -> Bump:
        return diff(published, folder).bump

    def refuse(self, published: Path, stamped: Path, settings: PushSettings) -> None:
        check_drops(published, stamped, settings.allow_drop)
        if not settings.allow_license_change:
            check_licenses(published, stamped, diff(published, stamped))


class PublicationContent:
    """A publication, as `counterprior publish` makes it."""

    manifest = PUBLICATION
    compared: tuple[str, ...] | None = (PUBLICATION,)

    def is_secret(self, folder: Path) -> bool:
        return read_publication(folder).secret

    def stamp(self, folder: Path, out: Path, mark: Mark, published: Path | None) -> None:
        publication = read_publication(folder)
        before = read_publication(published) if published is not None else None
        change = Change(version=mark.version, date=mark.date, notes=_notes(before, publication))
        changes = [change, *(before.changes if before else ())]
        stamped = publication.model_copy(update={"repo_id": mark.repo_id, "changes": changes})
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name = path.relative_to(folder).as_posix()
            if name not in WRITTEN:
                link(path, out / name)
        write_publication(stamped, out)
        write_card(stamped, out, read_checksums(folder)["files"])

    def newest(self, folder: Path) -> Change:
        changes = read_publication(folder).changes
        if not changes:
            raise ReleaseError(f"{folder / PUBLICATION}: has no version yet", code="missing-field")
        return changes[0]

    def demanded(self, published: Path, folder: Path) -> Bump:
        return _demanded(read_publication(published), read_publication(folder))

    def refuse(self, published: Path, stamped: Path, settings: object) -> None:
        """Nothing more: a MAJOR version has to be asked for by its number."""


def _demanded(before: Publication, now: Publication) -> Bump:
    """MAJOR if something published is edited or gone, MINOR if something is new, else PATCH."""
    if before.facts() == now.facts():
        return "NONE"
    old, new = _contents(before), _contents(now)
    if any(new.get(name) != digest for name, digest in old.items()):
        return "MAJOR"
    return "MINOR" if new.keys() - old.keys() else "PATCH"


def _contents(publication: Publication) -> dict[tuple[str, ...], str]:
    """Content whose change is never silent: license, images of every run, verdicts and scores."""
    contents: dict[tuple[str, ...], str] = {("the license",): publication.license}
    for run in publication.runs:
        contents[run.name, "images"] = f"{run.images_sha256} {publication.quality}"
        for judge in run.judges:
            contents[run.name, judge.id] = judge.verdicts_sha256 + judge.scores_sha256
    return contents


def _notes(before: Publication | None, now: Publication) -> list[str]:
    """Changes that a version brought, one line each."""
    if before is None:
        return [f"First release: {len(now.runs)} runs, {count_text(now)}."]
    old, new = _contents(before), _contents(now)
    notes = []
    for change, changed in (
        ("new", [n for n in new if n not in old]),
        ("changed", [n for n in new if n in old and new[n] != old[n]]),
        ("gone", [n for n in old if n not in new]),
    ):
        if changed:
            notes.append(f"{change}: {', '.join(' by '.join(name) for name in sorted(changed))}")
    return notes or ["Every image, verdict and score is unchanged."]
