"""A dataset repository on the Hub, asked and never remembered.

huggingface_hub answers from its cache where the Hub does not, and has no timeout; here an answer is
the Hub's own, a request ends, and what may pass (5xx, a cut connection, a timeout) is tried again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..release import sha256_file
from .errors import HubError

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    CommitOperations = list[CommitOperationAdd | CommitOperationDelete]

T = TypeVar("T")

KEPT = frozenset({".gitattributes"})
"""The Hub's own file: never compared, never deleted."""

BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that another try may change."""

CONFLICT = 409
STALE_PARENT = 412


class Blob(NamedTuple):
    """A file of a revision, as the Hub describes it."""

    size: int
    """Bytes."""
    digest: str
    """SHA-256 of the content where it is stored as LFS or xet, else git's SHA-1 of the blob."""

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
"""Path -> file, without the Hub's own."""


class Head(NamedTuple):
    """The newest commit of main."""

    commit: str
    """40 hex digits."""
    private: bool
    """Whether not everybody may read it: it is private, or gated."""


class Commit(NamedTuple):
    """One line of a history."""

    sha: str
    """40 hex digits."""
    title: str
    """First line of its message."""
    message: str
    """The rest."""


def local_files(folder: Path) -> dict[str, Path]:
    """Path relative to `folder` -> file."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in files}


def differing(tree: Tree, folder: Path) -> list[str]:
    """Files that only one of the two has, or whose content differs; sorted."""
    local = local_files(folder)
    return sorted(
        {*tree, *local} - {n for n in {*tree} & {*local} if tree[n].is_of(local[n])} - KEPT
    )


def is_passing(error: BaseException) -> bool:
    """Whether another try may end better."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return False
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in BUSY
    if isinstance(error, (httpx2.TransportError, json.JSONDecodeError)):
        return True
    # The libraries wrap what happened in errors without a number: an upload or a download that
    # broke off. An error of this machine (a full disk) has one.
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno is None):
        return error.__cause__ is None or is_passing(error.__cause__)
    return False


def status_of(error: BaseException) -> int:
    """HTTP status that the Hub answered with; 0 where it did not answer."""
    from huggingface_hub.errors import HfHubHTTPError

    return error.response.status_code if isinstance(error, HfHubHTTPError) else 0


class _Damaged(OSError):
    """What arrived is not what the tree lists: worth another try, and then a finding."""


@dataclass(frozen=True)
class Repository:
    """One dataset repository. Every method raises HubError where the Hub refuses or is away."""

    name: str
    """`namespace/name`."""
    endpoint: str | None = None
    """URL of the Hub; None: `HF_ENDPOINT`, or huggingface.co."""
    waits: Sequence[float] = (1, 2, 4, 8, 16)
    """Seconds between the tries of one request."""
    timeout: float = 120
    """Seconds without a byte after which a request has failed."""
    api: HfApi = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from huggingface_hub import HfApi

        object.__setattr__(self, "api", HfApi(endpoint=self.endpoint))

    def persist(self, ask: Callable[[], T]) -> T:
        """What `ask` returns, tried again while it fails of what may pass."""
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
        """What `ask` returns, each of its requests bounded in time, without bars of its own."""
        from huggingface_hub import get_session
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

        disable_progress_bars()
        get_session().timeout = self.timeout
        return ask()

    def named(self, error: Exception) -> Exception:
        """The error as a HubError that says what to do; one of this machine as it is."""
        from huggingface_hub.errors import (
            HfHubHTTPError,
            OfflineModeIsEnabled,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        if isinstance(error, OfflineModeIsEnabled):
            return HubError("hub-unreachable", "HF_HUB_OFFLINE forbids it; unset the variable")
        if isinstance(error, _Damaged):
            return HubError("damaged-file", str(error))
        if is_passing(error):
            return HubError(
                "hub-unreachable",
                f"{len(self.waits) + 1} tries failed, the last with {_told(error)}; nothing is "
                f"lost: run the same command again later",
            )
        if isinstance(error, RevisionNotFoundError):
            return HubError(
                "no-revision", f"{self.name} has no such revision; name a tag or commit"
            )
        if isinstance(error, RepositoryNotFoundError):
            return HubError(
                "no-repository",
                f"{self.name} does not exist, or your token does not see it: check the name and "
                f"`hf auth whoami`",
            )
        if isinstance(error, HfHubHTTPError):
            return HubError(
                "hub-refuses",
                f"{self.name}: {_told(error)}; for 401 and 403, use a token that may write there "
                f"(HF_TOKEN, or `hf auth login`)",
            )
        return error

    def head(self) -> Head | None:
        """The newest commit; None where there is no such repository, or none that is visible."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def ask() -> Head | None:
            try:
                info = self.api.dataset_info(self.name)
            except RepositoryNotFoundError:
                return None
            return Head(info.sha or "", bool(info.private or info.gated))

        return self.persist(ask)

    def commit_of(self, revision: str | None) -> str:
        """The commit that a tag, branch or commit means now."""
        return self.persist(lambda: self.api.dataset_info(self.name, revision=revision)).sha or ""

    def tags(self) -> dict[str, str]:
        """Tag -> commit."""
        refs = self.persist(lambda: self.api.list_repo_refs(self.name, repo_type="dataset"))
        return {tag.name: tag.target_commit for tag in refs.tags}

    def history(self, commit: str) -> list[Commit]:
        """Commits from `commit` back to the first."""
        listed = self.persist(
            lambda: self.api.list_repo_commits(self.name, repo_type="dataset", revision=commit)
        )
        return [Commit(c.commit_id, c.title, c.message) for c in listed]

    def tree(self, commit: str) -> Tree:
        """The files of a commit."""
        from huggingface_hub import RepoFile

        listed = self.persist(
            lambda: list(
                self.api.list_repo_tree(
                    self.name, repo_type="dataset", revision=commit, recursive=True
                )
            )
        )
        return {
            entry.path: Blob(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
            for entry in listed
            if isinstance(entry, RepoFile) and entry.path not in KEPT
        }

    def download(self, commit: str, into: Path, only: Iterable[str] | None = None) -> Tree:
        """Fetch the files of a commit into the new folder `into`; returns what they are.

        Compared with the tree before it is believed: the client may hand out what is in the folder
        when the Hub is away.
        """
        tree = self.tree(commit)
        wanted = {name: tree[name] for name in (tree if only is None else only) if name in tree}
        into.mkdir(parents=True)

        def fetch() -> None:
            self.api.snapshot_download(
                self.name,
                repo_type="dataset",
                revision=commit,
                local_dir=into,
                allow_patterns=[name.replace("[", "[[]") for name in wanted],
            )
            shutil.rmtree(into / ".cache", ignore_errors=True)
            for name in (wrong := differing(wanted, into)):
                (into / name).unlink(missing_ok=True)
            if wrong:
                raise _Damaged(
                    f"{self.name}@{commit} hands out other bytes of {wrong[0]} than it "
                    f"lists; report it to the Hub, and don't use the file"
                )

        if wanted:
            self.persist(fetch)
        return wanted

    def create(self, private: bool) -> None:
        """Make the repository; one that is there already stays as it is."""
        self.persist(
            lambda: self.api.create_repo(
                self.name, repo_type="dataset", private=private, exist_ok=True
            )
        )


def _told(error: Exception) -> str:
    """First line of an error, without what may be a token."""
    from huggingface_hub import get_token

    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    token = get_token()
    return line.replace(token, "[token]") if token else line
