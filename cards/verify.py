"""Is a release, in a folder or on the Hub, still what it was when it was built?

`validate` also checks that the rows are good; this checks that they are unchanged and that readers
get them from the Hub.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..clip_files import ClipError, read_clip
from ..errors import UsageError
from ..eval.publishing.card import card_problems
from ..eval.publishing.publication import CONFIGS, PUBLICATION, Publication, read_publication
from ..eval.publishing.restoring import recompute
from ..images import pixels_digest
from ..progress import Progress, silent
from ..release import (
    CHECKSUMS,
    SIGNATURE_FILE,
    Problem,
    ReleaseError,
    combined_rows_digest,
    load,
    means_folder,
    no_release,
    parquet_path,
    read_checksums,
    refuse_pipes,
    release_digest,
    sha256_file,
    unknown_configs,
    verify,
    verify_files,
)
from ..schema import ROWS, SPLIT
from ..storage import collector_paused
from .croissant_records import CROISSANT
from .errors import HubError
from .manifest import MANIFEST, Manifest, read_manifest
from .publications import as_entry, fetch_without_images
from .remote import Repository, Tree
from .signatures import signer
from .validate import ReleaseReport, integrity
from .versions import Version

SAMPLES = 16
"""Images of a publication on the Hub that are loaded, decoded and compared."""


@collector_paused()
def verify_release(
    path_or_repo: str,
    revision: str | None = None,
    *,
    as_reader: bool = False,
    sha256: str | None = None,
    signed_by: Path | None = None,
    entry: bool = False,
    jobs: int = 1,
) -> ReleaseReport:
    """Compares a release with its own checksums, manifest and Croissant file, without a cache, and
    with what is known outside of it: a digest, a signature, or the rows that this package knows.

    path_or_repo: a release folder, or `namespace/name`. revision: tag, branch or commit of a
    repository; None for the newest commit. as_reader: also load every config as a reader would.
    sha256: the digest of the release, or that of all its rows. signed_by: file of allowed signers,
    of whom one must have signed it. The scores of a publication are computed again; with `entry` it
    must also be fit to stand beside others. With several `jobs`, Croissant has its own process.
    Raises ReleaseError if there is neither a release nor a publication, HubError if the Hub does
    not provide it, and UsageError for `entry` of a release.
    """
    anchors = _Anchors(sha256, signed_by)
    root = Path(path_or_repo)
    if root.is_dir():
        if revision is not None:
            raise ReleaseError(
                f"{root} is a folder and has no revisions; leave out --revision", code="no-revision"
            )
        refuse_pipes(root)
        if (root / PUBLICATION).is_file():
            report = anchors.compare(check_publication(root), root)
            report = as_entry(report, root) if entry else report
            load_problems = _loading(read_publication(root), str(root), None) if as_reader else ()
            return replace(report, problems=(*report.problems, *load_problems))
        _refuse_entry(entry, path_or_repo)
        manifest = read_manifest(root)
        loading = partial(_load_problems, manifest, str(root), None) if as_reader else tuple
        problems, notes = integrity(root, manifest, loading, jobs)
        return anchors.compare(ReleaseReport(path_or_repo, tuple(problems), tuple(notes)), root)
    if means_folder(path_or_repo):
        raise ReleaseError(no_release(path_or_repo), code="no-such-file")
    repository = Repository(path_or_repo)
    commit = repository.commit_of(revision)
    name = f"{repository.name}@{commit}"
    tree = repository.tree(commit)
    if PUBLICATION in tree:
        return _verify_publication(repository, commit, tree, revision, as_reader, anchors, entry)
    _refuse_entry(entry, path_or_repo)
    with TemporaryDirectory() as temporary:
        root = Path(temporary) / "release"
        try:
            repository.download(commit, root)
            manifest = read_manifest(root)
        except HubError as error:
            if error.code != "damaged-file":
                raise
            return ReleaseReport(name, (Problem(repository.name, str(error)),))
        except ReleaseError as error:
            raise ReleaseError(
                str(error).replace(str(root), name), code="verification-failed"
            ) from None
        loading = partial(_load_problems, manifest, repository.name, commit) if as_reader else tuple
        problems, notes = integrity(root, manifest, loading, jobs)
        problems += _address_problems(root, manifest, path_or_repo, revision)
        return anchors.compare(ReleaseReport(name, tuple(problems), tuple(notes)), root)


@dataclass(frozen=True)
class _Anchors:
    """What the reader has from elsewhere: a digest, and a file of allowed signers."""

    sha256: str | None
    signed_by: Path | None

    def compare(self, report: ReleaseReport, root: Path) -> ReleaseReport:
        """The report with what is known outside of the release in `root`."""
        digest, rows = release_digest(root), _rows_digest(root)
        problems, anchors, notes = list(report.problems), list[str](), list(report.notes)
        if self.sha256 is not None:
            if self.sha256.lower() == digest:
                anchors.append("its digest is the one that you named")
            elif self.sha256.lower() == rows:
                anchors.append("the digest of its rows is the one that you named")
            else:
                of_rows = f" (that of its rows is {rows})" if rows else ""
                message = f"has the digest {digest}{of_rows}, not {self.sha256}"
                problems.append(Problem(CHECKSUMS, message))
        if self.signed_by is not None:
            try:
                anchors.append(f"signed by {signer(root, self.signed_by)}")
            except ReleaseError as error:
                problems.append(Problem(SIGNATURE_FILE, str(error)))
        elif (root / SIGNATURE_FILE).is_file():
            notes.append("it is signed, but nobody looked by whom: name --signed-by")
        # Nobody can know the answers of a publication beforehand.
        if not anchors and not problems and not (root / PUBLICATION).is_file():
            if unknown := unknown_configs(root):
                notes.append(f"rows that this package does not know: {', '.join(unknown)}")
            else:
                anchors.append("its rows are those that this package knows")
        return replace(
            report,
            problems=tuple(problems),
            notes=tuple(notes),
            anchor="; ".join(anchors),
            sha256=digest,
        )


def _rows_digest(root: Path) -> str:
    """The digest of all rows by a folder's checksums; empty where they list none."""
    listed = read_checksums(root)["files"]
    rows = {
        config: entry["rows_sha256"]
        for config in ROWS
        if "rows_sha256" in (entry := listed.get(parquet_path(config), {}))
    }
    return combined_rows_digest(rows) if rows else ""


def _refuse_entry(entry: bool, name: str) -> None:
    """Raises UsageError if a release of rows was to be verified as an entry."""
    if entry:
        raise UsageError(
            f"{name} is a release of rows, no publication of images and verdicts",
            "leave out --entry",
            code="conflicting-options",
        )


def check_publication(
    root: Path, progress: Progress = silent, *, quick: bool = False
) -> ReleaseReport:
    """Whether a folder is the publication that its checksums, card and numbers say.

    `quick` computes no number again.
    """
    progress("files", 0, 1)
    problems, notes = verify_files(root) if quick else verify(root), list[str]()
    progress("files", 1, 1)
    publication = read_publication(root)
    if not problems and not quick:
        checked = recompute(root)
        problems += checked.problems
        notes += checked.notes
    if publication.made_with.get("counterprior") == metadata.version("counterprior"):
        problems += card_problems(root, publication)
    else:
        notes.append("card not compared: another version rendered it")
    return ReleaseReport(str(root), tuple(problems), tuple(notes))


def _address_problems(
    root: Path, manifest: Manifest, repo_id: str, revision: str | None
) -> Iterator[Problem]:
    """The manifest names this repository; Croissant points at exactly the files in it."""
    if manifest.repo_id != repo_id:
        message = f"says {manifest.repo_id!r}, but it is in {repo_id!r}"
        yield Problem(MANIFEST, message, field="repo_id")
    if Version.of_tag(revision or "") and manifest.tag != revision:
        message = f"says {manifest.version}, but the tag is {revision}"
        yield Problem(MANIFEST, message, field="changes")
    try:
        document: dict[str, Any] = json.loads((root / CROISSANT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # already reported: its bytes differ
    objects = {entry.get("@id"): entry for entry in document.get("distribution", [])}
    for config in manifest.configs:
        expected = {
            "contentUrl": f"{manifest.url}/resolve/{manifest.tag}/{config.file}",
            "contentSize": f"{(root / config.file).stat().st_size} B",
            "sha256": sha256_file(root / config.file),
        }
        listed = objects.get(config.file, {})
        for name, value in expected.items():
            if listed.get(name) != value:
                message = f"says {listed.get(name)}, but the Hub has {value}"
                yield Problem(CROISSANT, message, config.file, name)


def _load_problems(manifest: Manifest, path_or_repo: str, commit: str | None) -> Iterator[Problem]:
    """Problems of a reader with an empty cache who loads each config."""
    for config in manifest.configs:
        with TemporaryDirectory() as cache:
            try:
                load(path_or_repo, config.name, revision=commit, cache_dir=cache)
            except ReleaseError as error:
                yield Problem(config.file, f"can't be loaded: {error}")


def _verify_publication(
    repository: Repository,
    commit: str,
    tree: Tree,
    revision: str | None,
    as_reader: bool,
    anchors: _Anchors,
    entry: bool,
) -> ReleaseReport:
    """A publication on the Hub: all but its images is fetched, and every digest compared."""
    with TemporaryDirectory() as temporary:
        root = Path(temporary) / "publication"
        publication, problems = fetch_without_images(repository, commit, tree, root)
        problems += card_problems(root, publication)
        checked = recompute(root)
        anchored = anchors.compare(ReleaseReport("", ()), root)
        anchored = as_entry(anchored, root) if entry else anchored
    if publication.repo_id != repository.name:
        message = f"says {publication.repo_id!r}, but it is in {repository.name!r}"
        problems.append(Problem(PUBLICATION, message, field="repo_id"))
    if Version.of_tag(revision or "") and publication.tag != revision:
        message = f"says {publication.version}, but the tag is {revision}"
        problems.append(Problem(PUBLICATION, message, field="changes"))
    if as_reader:
        problems += _loading(publication, repository.name, commit)
    name = f"{repository.name}@{commit}"
    problems += [*checked.problems, *anchored.problems]
    return replace(
        anchored, checked=name, problems=tuple(problems), notes=(*checked.notes, *anchored.notes)
    )


def _loading(publication: Publication, where: str, commit: str | None) -> Iterator[Problem]:
    """Problems of a reader with an empty cache who loads each config."""
    import datasets
    import httpx2

    broken = (OSError, ValueError, httpx2.HTTPError, datasets.exceptions.DatasetsError)
    for config in CONFIGS:
        rows = sum(file.rows for file in publication.of(config))
        with TemporaryDirectory() as cache:
            options: dict[str, Any] = {"split": SPLIT, "revision": commit, "cache_dir": cache}
            try:
                if config == "images":
                    stream = datasets.load_dataset(where, config, streaming=True, **options)
                    if "video" in (stream.column_names or ()):
                        stream = stream.cast_column("video", datasets.Video(decode=False))
                    for row in islice(stream, SAMPLES):
                        yield from _image_problems(publication, row)
                elif (loaded := len(datasets.load_dataset(where, config, **options))) != rows:
                    yield Problem(config, f"loads {loaded:,} rows, not {rows:,}")
            except broken as error:
                line = next(iter(str(error).splitlines()), "") or type(error).__name__
                yield Problem(config, f"can't be loaded: {line}")


def _image_problems(publication: Publication, row: dict[str, Any]) -> Iterator[Problem]:
    """Whether a loaded image, clip or text is the one that its row tells of."""
    image = row["image"]
    if (video := row.get("video")) is not None:
        yield from _clip_problems(row, video["bytes"])
        return
    if (text := row.get("text")) is not None:
        if hashlib.sha256(text.encode()).hexdigest() != row["sha256"]:
            yield Problem("images", "is not the text that was judged", row["case"], "text")
        return
    if (image is None) == (row["status"] == "made"):
        yield Problem("images", f"is {row['status']}", row["case"], "image")
    elif image is not None:
        if image.size != (row["width"], row["height"]):
            yield Problem("images", f"is of size {image.size}", row["case"], "image")
        digest = pixels_digest(image)
        if not publication.lossy and digest != row["pixels_sha256"]:
            yield Problem("images", "has other pixels than were judged", row["case"], "image")


def _clip_problems(row: dict[str, Any], data: bytes) -> Iterator[Problem]:
    try:
        frames = read_clip(data).frames
    except ClipError as error:
        yield Problem("images", f"its clip {error}", row["case"], "video")
        return
    if frames != row["frames"]:
        yield Problem("images", f"has {frames} frames, not {row['frames']}", row["case"], "video")
