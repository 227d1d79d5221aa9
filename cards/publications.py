"""Publications of strangers, as entries of a leaderboard: verified, and scored side by side.

A maintainer keeps a list of publications. Each is verified on its own (`verify --entry`), and all
are drawn as one site (`report`), from the published verdicts, without fetching an image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import UsageError
from ..eval.publishing.entries import entry_faults
from ..eval.publishing.publication import (
    HUB,
    PUBLICATION,
    Publication,
    published_at,
    read_publication,
)
from ..eval.publishing.restoring import restore_runs
from ..release import (
    CHECKSUMS,
    OWN_FILES,
    Problem,
    ReleaseError,
    read_checksums,
    sha256_file,
    verify_files,
)
from .push_checks import some
from .remote import Repository, Tree
from .validate import ReleaseReport
from .versions import Version


@contextmanager
def runs_of(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The runs of a command. In place of a publication, a folder or `hub:NAMESPACE/NAME@TAG`, stand
    its runs, without images, as long as the block lasts.

    Raises ReleaseError where a publication is not what its checksums say, HubError if the Hub does
    not provide it, UsageError for an address without a tag.
    """
    with TemporaryDirectory() as temporary:
        runs: list[Path] = []
        for number, path in enumerate(paths):
            root, name = path, path.name
            if str(path).startswith(HUB):
                name = str(path).removeprefix(HUB)
                root = _fetched(name, Path(temporary) / "fetched" / str(number))
            if (root / PUBLICATION).is_file():
                _refuse_changed(str(path), verify_files(root) if root is path else [])
                runs += restore_runs(root, Path(temporary) / str(number), name)
            else:
                runs.append(path)
        yield runs


def _fetched(where: str, into: Path) -> Path:
    """Fetches a tagged publication; returns its folder."""
    name, tag = published_at(where)
    if Version.of_tag(tag) is None:
        raise UsageError(
            f"{HUB}{where}: names no version",
            f"say which, as {HUB}{name}@v1.0.0: what a branch holds changes",
            code="missing-option",
        )
    repository = Repository(name)
    commit = repository.commit_of(tag)
    tree = repository.tree(commit)
    if PUBLICATION not in tree:
        raise ReleaseError(f"{where}: is no publication", code="not-a-publication")
    _, problems = fetch_without_images(repository, commit, tree, into)
    _refuse_changed(where, problems)
    return into


def _refuse_changed(name: str, problems: Sequence[Problem]) -> None:
    """Raises ReleaseError if a publication is not what its checksums say."""
    if problems:
        raise ReleaseError(
            f"{name}: is not what {CHECKSUMS} says ({some([str(p) for p in problems])}); see "
            "`counterprior verify`",
            code="changed-file",
        )


def fetch_without_images(
    repository: Repository, commit: str, tree: Tree, root: Path
) -> tuple[Publication, list[Problem]]:
    """Fetches a publication but for its images into a new folder, and compares every digest.

    There may be more images than a disk holds, so of these the Hub's own digests are compared.
    Raises ReleaseError for anything but a publication, HubError if the Hub does not provide it.
    """
    small = [name for name in tree if not name.startswith("images/")]
    repository.download(commit, root, only=small)
    publication = read_publication(root)
    listed = read_checksums(root)["files"]
    problems = [
        Problem(name, f"is not in {CHECKSUMS}") for name in sorted({*tree} - {*listed, *OWN_FILES})
    ]
    for name, entry in listed.items():
        if name not in tree:
            problems.append(Problem(name, "is missing"))
            continue
        same = tree[name].digest == entry["sha256"]
        if not same and not (name in small and sha256_file(root / name) == entry["sha256"]):
            problems.append(Problem(name, f"bytes differ from {CHECKSUMS} (sha256)"))
    for file in publication.of("images"):
        if file.file in tree:
            repository.download_columns(commit, file.file, root, left_out=("image", "video"))
    return publication, problems


def as_entry(report: ReleaseReport, root: Path) -> ReleaseReport:
    """The report of a publication with what keeps it from standing beside others, and with how many
    prompts a server rewrote before it drew them, by its own account, as a note."""
    problems, notes = entry_faults(root)
    return replace(report, problems=(*report.problems, *problems), notes=(*report.notes, *notes))
