"""Reads a release: `load` one config or `verify` all of it, against the release's own checksums.

`datasets` keys its cache of a local folder on the card, not on the data, and falls back to any
cached version when the Hub or a revision can't be reached. So rows are returned only after their
logical digest matches `checksums.json` of the requested revision.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DataError
from .schema import ROWS, SPLIT, Struct, columns, image_columns, rows_digest

if TYPE_CHECKING:
    import datasets

CHECKSUMS = "checksums.json"
SIGNATURE_FILE = "checksums.json.sig"
"""Signature of the checksums, if the release is signed."""
KNOWN = "known_rows.json"
"""File of this package with the digests of rows that it knows."""
OWN_FILES = (CHECKSUMS, SIGNATURE_FILE, ".gitattributes")
"""Files that the checksums don't list; the Hub adds the last one to every repository. Deeper down,
files of these names are neither the Hub's nor ours."""
UNVOUCHED = "not a release that this package knows, and nothing outside of it vouches for it"
_log = logging.getLogger(__name__)
_DIGEST = re.compile("[0-9a-f]{64}")


class ReleaseError(DataError):
    """A release that can't be used; the message names file, config and remedy."""


class Change(Struct):
    """One released version and what it brought."""

    version: str
    """Semantic version, without `v`."""
    date: str
    """Day of the release, YYYY-MM-DD."""
    notes: list[str]
    """One sentence each."""


@dataclass(frozen=True)
class Problem:
    """A fault of a release."""

    file: str
    """Path relative to the release folder."""
    message: str
    """The fault, and its remedy if that isn't obvious."""
    row: str = ""
    """Id or number of the row; empty for the whole file."""
    field: str = ""
    """Column, key or line; empty for the whole row or file."""

    def __str__(self) -> str:
        place = ":".join(piece for piece in (self.file, self.row, self.field) if piece)
        return f"{place}: {self.message}"


def parquet_path(config: str) -> str:
    """Path of a config's file, relative to the release folder."""
    return f"{config}/{SPLIT}-00000-of-00001.parquet"


_digests: ContextVar[dict[tuple[int, ...], str] | None] = ContextVar("digests", default=None)
SETTLED_NS = 2_000_000_000
"""Nanoseconds since a file was written after which another change gives it another time."""


@contextmanager
def digests_remembered() -> Iterator[None]:
    """Within the block `sha256_file` reads a file once, at whatever places it lies, until its size
    or the time of its last change is another: for a command that compares the same files again
    and again."""
    if _digests.get() is not None:
        yield
        return
    token = _digests.set({})
    try:
        yield
    finally:
        _digests.reset(token)


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, as hex digits."""
    remembered = _digests.get()
    with path.open("rb") as file:
        facts = os.fstat(file.fileno())
        key = facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
        if remembered is not None and key in remembered:
            return remembered[key]
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if remembered is not None and time.time_ns() - facts.st_mtime_ns > SETTLED_NS:
        remembered[key] = digest
    return digest


def release_digest(root: Path) -> str:
    """The digest of a whole release: SHA-256 of its `checksums.json`, which has those of all other
    files. Raises ReleaseError without one."""
    try:
        return sha256_file(root / CHECKSUMS)
    except OSError:
        read_checksums(root)  # says what is missing
        raise


def combined_rows_digest(digests: Mapping[str, str]) -> str:
    """The digest of all rows of a release, which its documents can state because it is not of them:
    SHA-256 of a line `CONFIG DIGEST` for each config, sorted.

    digests: config -> logical digest of its rows.
    """
    lines = "".join(f"{config} {digest}\n" for config, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def known_rows() -> dict[str, list[str]]:
    """Config -> logical digests of its rows in the releases that this package knows: what the bank
    that it carries gives, and what earlier ones gave.
    """
    text = resources.files(__package__).joinpath(KNOWN).read_text("utf-8")
    known: dict[str, list[str]] = json.loads(text)
    return known


def unknown_configs(root: Path) -> list[str]:
    """Configs of a release folder whose rows, by its own checksums, this package doesn't know."""
    known, listed = known_rows(), read_checksums(root)["files"]
    return [
        config
        for config in ROWS
        if (entry := listed.get(parquet_path(config))) is not None
        and entry.get("rows_sha256") not in known.get(config, ())
    ]


def warn_if_unknown(name: str, config: str, digest: object) -> None:
    """Logs a warning where rows are none that this package knows, by their logical digest."""
    if digest not in known_rows().get(config, ()):
        _log.warning(
            "%s, %s: %s; it may be your own, of another version, or forged: `counterprior verify` "
            "compares it with a digest that you got elsewhere",
            name,
            config,
            UNVOUCHED,
        )


def read_checksums(root: Path) -> dict[str, Any]:
    """Reads `checksums.json` of a release folder. Raises ReleaseError if it can't be used."""
    path = root / CHECKSUMS
    try:
        checksums: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReleaseError(
            f"{path}: no such file; is {root} a release made by `build`?", code="no-such-file"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ReleaseError(
            f"{path}: not JSON ({error}); download or build it again", code="bad-json"
        ) from None
    if not isinstance(checksums, dict) or not isinstance(checksums.get("files"), dict):
        raise ReleaseError(
            f"{path}: has no `files` table; download or build the release again",
            code="not-a-release",
        )
    for name, entry in checksums["files"].items():
        if {"..", "/"} & set(Path(name).parts) or "\0" in name:
            raise ReleaseError(f"{path}: {name!r} lies outside the release", code="outside-folder")
        if not isinstance(entry, dict):
            raise ReleaseError(f"{path}: {name}: not an entry of a file", code="bad-value")
        for field in entry.keys() & {"sha256", "rows_sha256"}:
            if not _DIGEST.fullmatch(str(entry[field])):
                raise ReleaseError(f"{path}: {name}: {field}: not a digest", code="bad-value")
    return checksums


def published_file(root: Path, config: str, name: str) -> dict[str, Any]:
    """Returns the entry of `checksums.json` for a config's file.

    name: name of the release in the ReleaseError for an unknown config.
    """
    files = read_checksums(root)["files"]
    if (entry := files.get(parquet_path(config))) is not None:
        return dict(entry)
    folders = sorted({file.partition("/")[0] for file in files if file.endswith(".parquet")})
    raise ReleaseError(
        f"{name} has no config {config!r}; it has {', '.join(folders) or 'none'}",
        code="unknown-name",
    )


def refuse_pipes(root: Path) -> None:
    """Raises ReleaseError if a folder holds what is no file: a pipe would be waited for."""
    for path in sorted(root.rglob("*")):
        if not path.is_dir() and not path.is_file():
            raise ReleaseError(f"{path}: not a regular file; remove it", code="not-a-file")


def foreign_files(root: Path) -> list[str]:
    """Files of a folder that its `checksums.json` does not list, sorted; links are files.

    Raises ReleaseError if that file is not the folder's own: who replaces a folder must know
    that everything in it was written by this package.
    """
    listed = read_checksums(root)["files"]
    entries = (p for p in sorted(root.rglob("*")) if p.is_symlink() or not p.is_dir())
    paths = [path.relative_to(root).as_posix() for path in entries]
    return [name for name in paths if name not in listed and name != CHECKSUMS]


def iter_records(root: Path, config: str) -> Iterator[dict[str, Any]]:
    """The rows of one config of a release folder, images as encoded bytes.

    Raises ReleaseError, caused by the reader's own error, if the file can't be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = root / parquet_path(config)
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise ReleaseError(f"{path}: no regular file", code="not-a-file") from OSError(
            "no regular file"
        )
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> ReleaseError:
    """The error for a parquet file that its reader can't read."""
    return ReleaseError(f"{path}: not a readable parquet file ({error})", code="unreadable-file")


def load(
    path_or_repo: str | Path,
    config: str,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    verify: bool = False,
) -> datasets.Dataset:
    """Loads one config of a release and checks it against the release's own logical digest; with
    `verify` also against those that this package knows, which no mirror can change.

    `path_or_repo` is a release folder or the id of a dataset repository on the Hub; `revision` is a
    tag or commit of the latter (default: the newest commit, resolved once, so that checksums and
    rows belong together). Images stay encoded until they are accessed.

    A tag or branch is looked up on the Hub each time. A 40-digit commit never changes, so a cached
    one loads without the Hub.

    Raises ReleaseError if the release has no such config, if `verify` finds unknown rows, if the
    Hub can't be reached, or if `datasets` returned something else than what was published (a stale
    or foreign cache, a changed file).
    """
    import datasets
    import httpx2

    root = Path(path_or_repo)
    local = root.is_dir()
    if local and revision is not None:
        raise ReleaseError(
            f"{root} is a folder and has no revisions; leave out revision=", code="no-revision"
        )
    if not local:
        root, revision = fetch_checksums(str(path_or_repo), revision)
    expected = published_file(root, config, str(path_or_repo))
    name = f"{path_or_repo}, {config}"
    if config not in ROWS:
        raise ReleaseError(
            f"{name}: unknown to this version of counterprior; upgrade it", code="another-version"
        )
    if verify and expected.get("rows_sha256") not in known_rows().get(config, ()):
        raise ReleaseError(
            f"{name}: its rows are none that counterprior knows: a release of another version or "
            "bank, or a forged one; compare its digest by `counterprior verify --sha256`",
            code="changed-file",
        )
    if not verify:
        warn_if_unknown(str(path_or_repo), config, expected.get("rows_sha256"))
    try:
        dataset = datasets.load_dataset(
            str(path_or_repo),
            config,
            split=SPLIT,
            revision=None if local else revision,
            cache_dir=None if cache_dir is None else str(cache_dir),
        )
    except (OSError, ValueError, httpx2.HTTPError, datasets.exceptions.DatasetsError) as error:
        raise ReleaseError(
            f"{name}: can't be loaded ({_first_line(error)}); try again", code="server-unreachable"
        ) from error
    digest = _digest(dataset, config)
    if digest != expected.get("rows_sha256"):
        raise ReleaseError(
            f"{name}: the rows that `datasets` returned have digest {digest}, but {CHECKSUMS} says "
            f"{expected['rows_sha256']}: a stale cache or a changed file. Load with another "
            f"cache_dir= while the Hub can be reached, or run `counterprior verify` on the release",
            code="changed-file",
        )
    return dataset


def has_config(path_or_repo: str | Path, config: str, revision: str | None = None) -> bool:
    """Whether a release folder or dataset repository holds a config. Raises ReleaseError as `load`
    where there is no release."""
    root = Path(path_or_repo)
    if not root.is_dir():
        root, _ = fetch_checksums(str(path_or_repo), revision)
    return parquet_path(config) in read_checksums(root)["files"]


def _digest(dataset: datasets.Dataset, config: str) -> str:
    """Logical digest of the loaded rows, or a text about columns that don't fit."""
    import datasets

    if dataset.column_names != list(columns(config)):
        return f"of other columns ({', '.join(dataset.column_names)})"
    for column in image_columns(config):
        dataset = dataset.cast_column(column, datasets.Image(decode=False))
    batches = dataset.with_format("arrow").iter(batch_size=256)  # its rows one by one take longer
    return rows_digest(record for batch in batches for record in batch.to_pylist())


def means_folder(path_or_repo: str | Path) -> bool:
    """Whether a path can only be a folder's: it has not the form NAMESPACE/NAME, or begins as a
    folder of this machine does.

    >>> [means_folder(name) for name in ("dist/counterprior", "./a/b", "a/b/c", "a/b@v1.0.0")]
    [True, True, True, False]
    """
    text = str(path_or_repo)
    return text.startswith((".", "/", "~", "dist/")) or text.count("/") != 1


def no_release(path_or_repo: str | Path) -> str:
    """Returns the message for a release folder that does not exist."""
    return (
        f"there is no release at {path_or_repo}: build it with "
        f"`counterprior build --out {path_or_repo}`, or name a pinned one on the Hub"
    )


def fetch_checksums(repo: str, revision: str | None) -> tuple[Path, str]:
    """The folder with the checksums of one revision, and its commit.

    `revision` is a tag, branch or commit; None for the newest commit. Tags and branches are never
    resolved from a cache. Raises ReleaseError.
    """
    import httpx2
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import (
        HFValidationError,
        RemoteEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if means_folder(repo):
        raise ReleaseError(no_release(repo), code="no-such-file")
    which = f"revision {revision!r}" if revision else "its newest revision"
    commit = revision if re.fullmatch("[0-9a-f]{40}", revision or "") else None
    try:
        commit = commit or HfApi().dataset_info(repo, revision=revision).sha
        path = hf_hub_download(repo, CHECKSUMS, repo_type="dataset", revision=commit)
    except RevisionNotFoundError:
        raise ReleaseError(
            f"{repo} has no revision {revision!r}: see the tags on its page", code="no-revision"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ReleaseError(
            f"{repo} is neither a folder nor a dataset that your token can see: check the name "
            f"and, if it is private, `hf auth whoami`",
            code="no-such-file",
        ) from None
    except RemoteEntryNotFoundError:
        raise ReleaseError(
            f"{repo}@{commit} has no {CHECKSUMS}: it is not a release", code="not-a-release"
        ) from None
    except (OSError, httpx2.HTTPError) as error:
        raise ReleaseError(
            f"{repo}: the Hub can't be asked for {which} ({_first_line(error)}), and "
            f"a cached version may be another one: try again later, or give the 40-digit commit "
            f"of a revision that you have loaded before",
            code="server-unreachable",
        ) from error
    if commit is None:
        raise ReleaseError(f"{repo}: the Hub names no commit for {which}", code="server-error")
    return Path(path).parent, commit


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def verify(path_or_repo: str | Path, *, revision: str | None = None) -> list[Problem]:
    """Compares every file of a release with its checksums: bytes, number of rows, logical digest.

    A repository is downloaded first, at one commit. Returns what is wrong; an empty list means
    that the release is unchanged since it was built. Raises ReleaseError if there are no checksums
    to compare with.
    """
    root = Path(path_or_repo)
    refuse_pipes(root)
    if not root.is_dir():
        from huggingface_hub import snapshot_download

        _, commit = fetch_checksums(str(path_or_repo), revision)
        root = Path(snapshot_download(str(path_or_repo), repo_type="dataset", revision=commit))
    problems = verify_files(root)
    for config, entry in listed_configs(root).items():
        try:
            problems += row_problems(config, entry, list(iter_records(root, config)))
        except ReleaseError as error:
            problems += row_problems(config, entry, error)
    return problems


def listed_configs(root: Path) -> dict[str, dict[str, Any]]:
    """Config -> what the checksums of a release folder say of its file, if there is one."""
    listed: dict[str, dict[str, Any]] = read_checksums(root)["files"]
    files = {config: parquet_path(config) for config in ROWS}
    return {c: listed[f] for c, f in files.items() if f in listed and (root / f).is_file()}


def verify_files(root: Path) -> list[Problem]:
    """Compares the bytes of every file of a release folder with its checksums, without their rows.

    Raises ReleaseError if there are no checksums to compare with.
    """
    listed: dict[str, dict[str, Any]] = read_checksums(root)["files"]
    problems = []
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    present = {name for name in files if name not in OWN_FILES}
    for name in sorted(present - set(listed)):
        problems.append(Problem(name, f"is not in {CHECKSUMS}"))
    for name, entry in listed.items():
        if name not in present:
            problems.append(Problem(name, "is missing"))
        elif sha256_file(root / name) != entry.get("sha256"):
            problems.append(Problem(name, f"bytes differ from {CHECKSUMS} (sha256)"))
        elif (size := (root / name).stat().st_size) != entry.get("bytes"):
            message = f"has {size:,} bytes, but {CHECKSUMS} says {entry.get('bytes')}"
            problems.append(Problem(name, message))
    return problems


def row_problems(
    config: str,
    entry: Mapping[str, Any],
    records: Sequence[dict[str, Any]] | ReleaseError,
    lines: Sequence[bytes] | None = None,
) -> list[Problem]:
    """Compares the rows of a config, or why they can't be read, with their entry of the checksums.

    lines: the `record_line` of each, if they were made before.
    """
    file = parquet_path(config)
    if isinstance(records, ReleaseError):
        return [Problem(file, f"is not a readable parquet file ({records.__cause__})")]
    if len(records) != entry.get("rows"):
        message = f"has {len(records)} rows, but {CHECKSUMS} says {entry.get('rows')}"
        return [Problem(file, message)]
    if not all("id" in r for r in records) or rows_digest(records, lines) != entry.get(
        "rows_sha256"
    ):
        return [Problem(file, f"content differs from {CHECKSUMS} (rows_sha256)")]
    return []
