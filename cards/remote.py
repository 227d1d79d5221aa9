"""A repository on the Hub, without any cache.

huggingface_hub falls back to its cache if the Hub does not answer, and has no timeout. Here every
answer is the Hub's own, every request ends, and transient failures (5xx, a cut connection, a
timeout) are tried again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from ..errors import UsageError
from ..release import sha256_file
from ..storage import ArrowSink, whole_file
from .errors import HubError

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    CommitOperations = list[CommitOperationAdd | CommitOperationDelete]

T = TypeVar("T")

KEPT = frozenset({".gitattributes"})
"""The Hub's own files: never compared, never deleted."""

BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses that may pass if tried again."""

REMEDIES = dict.fromkeys(
    (413, 507),
    "the Hub has no room for it: free storage in your account's settings, or push less",
)
"""HTTP status -> remedy, for those that aren't about the token."""

CONFLICT = 409
STALE_PARENT = 412


class Blob(NamedTuple):
    """A file of a revision, as the Hub describes it."""

    size: int
    """Bytes."""
    digest: str
    """SHA-256 of the content for LFS and xet, otherwise git's SHA-1 of the blob."""

    def is_of(self, path: Path) -> bool:
        """Whether the file at `path` has this content."""
        if path.stat().st_size != self.size:
            return False
        if len(self.digest) == hashlib.sha256().digest_size * 2:
            return sha256_file(path) == self.digest
        content = path.read_bytes()
        header = b"blob %d\0" % len(content)
        return hashlib.sha1(header + content, usedforsecurity=False).hexdigest() == self.digest


Tree = Mapping[str, Blob]
"""Path -> file, without the Hub's own files."""


class Head(NamedTuple):
    """The newest commit of main."""

    commit: str
    """40 hex digits."""
    private: bool
    """Whether reading it is restricted: private or gated."""


class Commit(NamedTuple):
    """One commit of a history."""

    sha: str
    """40 hex digits."""
    title: str
    """First line of its message."""
    message: str
    """The rest."""


def local_files(folder: Path) -> dict[str, Path]:
    """Maps paths relative to `folder` to files."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in files}


def differing(tree: Tree, folder: Path) -> list[str]:
    """Files that only one of the two has or whose content differs; sorted."""
    local = local_files(folder)
    return sorted(
        {*tree, *local} - {n for n in {*tree} & {*local} if tree[n].is_of(local[n])} - KEPT
    )


def is_passing(error: BaseException) -> bool:
    """Whether the failure may pass if tried again."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return False
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in BUSY
    if isinstance(error, (httpx2.TransportError, json.JSONDecodeError)):
        return True
    if _lacks_xet(error):
        return False
    # The libraries wrap broken uploads and downloads in errors without an errno. An error of this
    # machine, such as a full disk, has one.
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno is None):
        return error.__cause__ is None or is_passing(error.__cause__)
    return False


def _lacks_xet(error: BaseException | None) -> bool:
    """Whether an upload failed because the Hub has no Xet storage: it has no address for the
    token, which hf_xet says in words alone."""
    while error is not None:
        if re.search(r"\b404\b.*/xet-write-token/", str(error), re.DOTALL):
            return True
        error = error.__cause__
    return False


def status_of(error: BaseException) -> int:
    """HTTP status of the Hub's answer; 0 if there was none."""
    from huggingface_hub.errors import HfHubHTTPError

    return error.response.status_code if isinstance(error, HfHubHTTPError) else 0


class _Damaged(OSError):
    """A downloaded file differs from what the tree lists: tried again, then reported."""


@dataclass(frozen=True)
class Repository:
    """A repository. Every method raises HubError if the Hub refuses or can't be reached."""

    name: str
    """`namespace/name`."""
    endpoint: str | None = None
    """URL of the Hub; None: `HF_ENDPOINT`, or huggingface.co."""
    waits: Sequence[float] = (1, 2, 4, 8, 16)
    """Seconds between attempts of one request."""
    timeout: float = 120
    """Seconds without a byte after which a request fails."""
    kind: Literal["dataset", "model"] = "dataset"
    """Type of the repository on the Hub."""
    api: HfApi = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from huggingface_hub import HfApi

        object.__setattr__(self, "api", HfApi(endpoint=self.endpoint))

    def persist(self, ask: Callable[[], T]) -> T:
        """Returns what `ask` returns; transient failures are tried again."""
        for wait in self.waits:
            try:
                return self.once(ask)
            except Exception as error:
                if not is_passing(error):
                    raise self.named(error) from error
            time.sleep(wait)
        try:
            return self.once(ask)
        except Exception as error:
            raise self.named(error) from error

    def once(self, ask: Callable[[], T]) -> T:
        """Returns what `ask` returns, with a timeout on each request and no progress bars."""
        from huggingface_hub import get_session
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()
        get_session().timeout = self.timeout
        return ask()

    def named(self, error: Exception) -> Exception:
        """The error as one that says what to do; errors of this machine are returned unchanged."""
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            OfflineModeIsEnabled,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        if isinstance(error, HFValidationError):
            return UsageError(
                f"{self.name!r} is neither a folder nor a repository NAMESPACE/NAME",
                code="no-such-file",
            )

        if isinstance(error, OfflineModeIsEnabled):
            return HubError(
                "HF_HUB_OFFLINE forbids requests; unset the variable", code="hub-unreachable"
            )
        if isinstance(error, _Damaged):
            return HubError(str(error), code="damaged-file")
        if _lacks_xet(error):
            return HubError(
                f"{self.name}: this Hub has no Xet storage: set HF_HUB_DISABLE_XET=1 and run the "
                f"same command again",
                code="hub-refuses",
            )
        if is_passing(error):
            return HubError(
                f"{len(self.waits) + 1} attempts failed, the last with {_first_line(error)}; "
                f"nothing is lost: run the same command again later",
                code="hub-unreachable",
            )
        if isinstance(error, RevisionNotFoundError):
            return HubError(
                f"{self.name} has no such revision; give a tag or commit", code="no-revision"
            )
        if isinstance(error, RepositoryNotFoundError):
            return HubError(
                f"{self.name} does not exist, or your token can't see it: check the name and "
                f"`hf auth whoami`",
                code="no-repository",
            )
        cause = _cause(error)
        if isinstance(cause, HfHubHTTPError):
            outer = "" if cause is error else f"{_first_line(error)} "
            remedy = REMEDIES.get(
                cause.response.status_code,
                "for 401 and 403, use a token with write access (HF_TOKEN, or `hf auth login`)",
            )
            return HubError(
                f"{self.name}: {outer}{_first_line(cause)}; {remedy}", code="hub-refuses"
            )
        return error

    def head(self) -> Head | None:
        """The newest commit; None if the repository does not exist or is not visible."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def ask() -> Head | None:
            try:
                info = self.api.repo_info(self.name, repo_type=self.kind)
            except RepositoryNotFoundError:
                return None
            return Head(info.sha or "", bool(info.private or info.gated))

        return self.persist(ask)

    def commit_of(self, revision: str | None) -> str:
        """The commit that a tag, branch or commit currently names."""
        info = self.persist(
            lambda: self.api.repo_info(self.name, revision=revision, repo_type=self.kind)
        )
        return info.sha or ""

    def tags(self) -> dict[str, str]:
        """Tag -> commit."""
        refs = self.persist(lambda: self.api.list_repo_refs(self.name, repo_type=self.kind))
        return {tag.name: tag.target_commit for tag in refs.tags}

    def history(self, commit: str) -> list[Commit]:
        """Commits from `commit` back to the first."""
        listed = self.persist(
            lambda: self.api.list_repo_commits(self.name, repo_type=self.kind, revision=commit)
        )
        return [Commit(c.commit_id, c.title, c.message) for c in listed]

    def tree(self, commit: str) -> Tree:
        """The files of a commit."""
        from huggingface_hub import RepoFile

        listed = self.persist(
            lambda: list(
                self.api.list_repo_tree(
                    self.name, repo_type=self.kind, revision=commit, recursive=True
                )
            )
        )
        return {
            entry.path: Blob(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
            for entry in listed
            if isinstance(entry, RepoFile) and entry.path not in KEPT
        }

    def download(self, commit: str, into: Path, only: Iterable[str] | None = None) -> Tree:
        """Fetches the files of a commit into the new folder `into`; returns them as listed.

        Every file is compared with the tree, since the client may return what is in the folder if
        the Hub can't be reached.
        """
        tree = self.tree(commit)
        wanted = {name: tree[name] for name in (tree if only is None else only) if name in tree}
        into.mkdir(parents=True)

        def fetch() -> None:
            self.api.snapshot_download(
                self.name,
                repo_type=self.kind,
                revision=commit,
                local_dir=into,
                allow_patterns=[name.replace("[", "[[]") for name in wanted],
            )
            shutil.rmtree(into / ".cache", ignore_errors=True)
            for name in (wrong := differing(wanted, into)):
                (into / name).unlink(missing_ok=True)
            if wrong:
                raise _Damaged(
                    f"{self.name}@{commit} serves other bytes of {wrong[0]} than it lists; report "
                    f"this to the Hub and don't use the file"
                )

        if wanted:
            self.persist(fetch)
        return wanted

    def download_columns(self, commit: str, file: str, into: Path, left_out: Sequence[str]) -> None:
        """Fetches a parquet file of a commit without some columns, by ranges of its bytes."""
        import pyarrow.parquet as pq
        from huggingface_hub import HfFileSystem

        def fetch() -> None:
            files = HfFileSystem(endpoint=self.api.endpoint, skip_instance_cache=True)
            path = into / file
            with (
                files.open(f"datasets/{self.name}@{commit}/{file}") as remote,
                pq.ParquetFile(remote, pre_buffer=False) as opened,
            ):
                schema = opened.schema_arrow
                columns = [name for name in schema.names if name not in left_out]
                kept = schema.empty_table().select(columns).schema
                with whole_file(path) as out, pq.ParquetWriter(ArrowSink(out), kept) as written:
                    for number in range(opened.num_row_groups):
                        written.write_table(opened.read_row_group(number, columns=columns))

        self.persist(fetch)

    def create(self, private: bool) -> None:
        """Creates the repository; an existing one stays as it is."""
        self.persist(
            lambda: self.api.create_repo(
                self.name, repo_type=self.kind, private=private, exist_ok=True
            )
        )


def _cause(error: BaseException) -> BaseException:
    """The cause of a failed upload or download, which the libraries wrap in errors of their own."""
    while isinstance(error, RuntimeError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    """First line of an error, without secrets."""
    return hide_secrets(next(iter(str(error).splitlines()), "") or type(error).__name__)


def hide_secrets(text: str) -> str:
    """The text on one line, without the token and the signatures of addresses."""
    from huggingface_hub import get_token

    line = " ".join(text.split())
    line = re.sub(r"(https?://[^\s?']+)\?[^\s']*", r"\1", line)
    token = get_token()
    return line.replace(token, "[token]") if token else line
