"""Plans a push by reading alone, and refuses it here if anything is wrong.

The plan that `--dry-run` prints is the very object that `push.execute` carries out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, Protocol

from ..errors import UsageError
from ..progress import Progress, silent
from ..release import SIGNATURE_FILE, ReleaseError, digests_remembered
from ..storage import folder_lock
from .content import Content, PushSettings, ReleaseContent
from .errors import HubError
from .push_checks import check_report, pushed_since, some
from .remote import Head, Repository, Tree, differing, local_files
from .signatures import sign
from .validate import ReleaseReport
from .version_stamp import Mark
from .versions import BUMPS, Bump, Version, check_above, check_step, latest

MOST_OPERATIONS = 99
"""Most files in one commit: the Hub advises fewer than 100, and only a single commit is atomic."""

FIRST = Version(1, 0, 0)
"""Where no version is asked for."""


class Validate(Protocol):
    """Says what is wrong with a folder; `quick`: only what can be said within seconds."""

    def __call__(
        self, folder: Path, progress: Progress = silent, /, *, quick: bool = False
    ) -> ReleaseReport: ...


Step = Literal["create", "commit", "verify", "tag"]


@dataclass(frozen=True)
class Operation:
    """One file of the commit."""

    kind: Literal["add", "replace", "delete"]
    """How the commit changes the file."""
    file: str
    """Path in the repository."""
    bytes: int
    """Size of the new content; 0 for a deletion."""


@dataclass(frozen=True)
class Plan:
    """Everything a push will do, fully decided."""

    version: str
    """The version to release."""
    date: str
    """Release day."""
    last: str
    """The previous version; empty for the first."""
    demanded: Bump
    """The version step that the change from `last` demands; NONE for the first."""
    steps: tuple[Step, ...]
    """The steps left: all, the rest of an interrupted push, or none."""
    head: str
    """Parent of the new commit; empty if the repository has to be created."""
    private: bool
    """Whether the repository is or will be private."""
    secret: bool
    """Whether it must stay so: looked at again before the commit and before the tag."""
    operations: tuple[Operation, ...]
    """The file changes of the commit."""
    notes: str
    """Release notes: the changelog entry and the message of commit and tag."""
    repository: Repository
    """The target repository."""
    folder: Path
    """The stamped release; deleted with the plan."""

    @property
    def title(self) -> str:
        """First line of the commit and tag messages."""
        return f"Release {self.version}"

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    def to_json(self) -> str:
        """The plan as JSON."""
        hidden = ("repository", "folder", "operations")
        values = {name: value for name, value in vars(self).items() if name not in hidden}
        values |= {"repo_id": self.repository.name, "tag": self.tag, "title": self.title}
        values |= {"operations": [asdict(operation) for operation in self.operations]}
        return json.dumps(values, indent=1, ensure_ascii=False)


@contextmanager
def planned(
    folder: Path,
    settings: PushSettings,
    validate: Validate,
    progress: Progress = silent,
    content: Content | None = None,
) -> Iterator[Plan]:
    """The plan for pushing `folder`; its stamped copy lasts as long as the block.

    What is cheap to find is looked for first: the folder's files, what can't be checked here, and
    then the Hub. The rows are checked last, for minutes.

    `validate` applies the content rules of the rows, which belong to the builders; `content` says
    what kind of folder it is, a release where None. Raises HubError if the push is refused,
    ReleaseError if `folder` is not a release, InUseError if another process builds or pushes the
    folder, and the errors of `check_settings`.
    """
    folder, version = folder.resolve(), check_settings(settings)
    work = folder.with_name(f".{folder.name}.push")
    with folder_lock(folder), digests_remembered():
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
        try:
            check_report(validate(folder, quick=True))
            progress("compare with the Hub", 0, 1)
            planner = _Planner(folder, work, settings, content or ReleaseContent())
            try:
                plan = planner.plan(version)
            except HubError:
                raise
            except Exception:  # rows that are wrong may break their comparison anywhere
                check_report(validate(folder, progress))
                raise
            progress("compare with the Hub", 1, 1)
            check_report(validate(folder, progress))
            yield plan
        finally:
            shutil.rmtree(work, ignore_errors=True)


def check_settings(settings: PushSettings) -> Version | None:
    """Returns the version that was asked for, None for the smallest; looks at no folder.

    Raises UsageError for an invalid repository, version or date, HubError without a token.
    """
    from huggingface_hub import get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    version = None if settings.version is None else Version.parse(settings.version)
    _check_date(settings.date)
    try:
        validate_repo_id(settings.repo_id)
        valid = "/" in settings.repo_id
    except HFValidationError:
        valid = False
    if not valid:
        raise UsageError(
            f"--repo-id {settings.repo_id!r} is not of the form NAMESPACE/NAME", code="bad-option"
        )
    if get_token() is None and not settings.dry_run:
        raise HubError(
            "set HF_TOKEN to a token with write access or `hf auth login`", code="no-token"
        )
    return version


def _check_date(day: str) -> None:
    """Raises UsageError unless the text is empty or a date such as 2026-11-21."""
    try:
        valid = not day or date.fromisoformat(day).isoformat() == day
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"date {day!r} is not of the form 2026-11-21", code="bad-option")


class _Planner:
    """Plans the push of one folder from one look at the Hub."""

    def __init__(self, folder: Path, work: Path, settings: PushSettings, content: Content) -> None:
        self.folder, self.work = folder, work
        self.settings, self.content = settings, content
        self.repository = Repository(
            name=settings.repo_id,
            endpoint=settings.endpoint,
            waits=settings.waits,
            timeout=settings.timeout,
        )

    def plan(self, version: Version | None) -> Plan:
        """The plan; `version` is the one that was asked for."""
        if self.content.is_secret(self.folder) and not self.settings.private:
            raise HubError(
                f"{self.folder} is a hold-out and must stay secret: add --private",
                code="visibility",
            )
        head = self.repository.head()
        if head is None:
            self.version = version or FIRST
            return self._onto_nothing()
        if self.settings.private and not head.private:
            raise HubError(
                f"{self.repository.name} is public, but --private was given: choose another "
                f"repository, or first make this one private or gated in its settings",
                code="visibility",
            )
        tags = self.repository.tags()
        last = latest(tags, below=version)
        published = self._download(tags, last)
        self.version = version or self._next(last, published)
        if self.version == last:
            last = latest(tags, below=last)
            published = self._download(tags, last)
        if self.version.tag in tags:
            released = head._replace(commit=tags[self.version.tag])
            return self._onto_itself(released, published)
        check_above(self.version, tags)
        return self._onto(head, tags[last.tag] if last else "", published)

    def _download(self, tags: Mapping[str, str], version: Version | None) -> Path | None:
        """Downloads the files of a version that are compared; None without a version."""
        if version is None:
            return None
        published = self.work / f"published-{version}"
        self.repository.download(tags[version.tag], published, self.content.compared)
        return published

    def _next(self, last: Version | None, published: Path | None) -> Version:
        """The version if none was requested: that of the Hub if nothing changed."""
        if last is None or published is None:
            return FIRST
        demanded = self.content.demanded(published, self.folder)
        if demanded == "MAJOR":
            raise HubError(
                f"something that {last} published is edited or gone; if that is intended, say "
                f"--version {last.next(demanded)}",
                code="version-too-small",
            )
        return last if demanded == "NONE" else last.next(demanded)

    def _onto_nothing(self) -> Plan:
        """The plan for a repository that does not exist."""
        if not self.settings.create:
            raise HubError(
                f"{self.repository.name} does not exist, or your token can't see it: make it with "
                f"--create (and --private for members only)",
                code="no-repository",
            )
        self._stamp("", None)
        nothing = Head("", self.settings.private)
        return self._planned(nothing, {}, "", "NONE", ("create", "commit", "verify", "tag"))

    def _onto_itself(self, released: Head, published: Path | None) -> Plan:
        """Nothing to do if the tag holds what would be pushed; otherwise a refusal."""
        stamped = self._stamp(self._date_of(released.commit), published)
        tree = self.repository.tree(released.commit)
        if wrong := differing(tree, stamped):
            raise HubError(
                f"{self.version.tag} is already released with other content ({some(wrong)}), and "
                f"tags never move: push a new version",
                code="version-reused",
            )
        last = self.content.newest(published).version if published else ""
        demanded = self.content.demanded(published, stamped) if published else "NONE"
        return self._planned(released, tree, last, demanded, ())

    def _onto(self, head: Head, base: str, published: Path | None) -> Plan:
        """The plan for a repository whose last release is the commit `base`."""
        tree = self.repository.tree(head.commit)
        resumed = pushed_since(self.repository, head.commit, tree, base)
        stamped = self._stamp(self._date_of(head.commit) if resumed else "", published)
        last, demanded = "", BUMPS[0]
        if published is not None:
            demanded = self.content.demanded(published, stamped)
            last = self.content.newest(published).version
            check_step(self.version, Version.parse(last), demanded)
            self.content.refuse(published, stamped, self.settings)
        steps: tuple[Step, ...] = ("commit", "verify", "tag")
        return self._planned(
            head, tree, last, demanded, steps if differing(tree, stamped) else steps[1:]
        )

    def _stamp(self, earlier: str, published: Path | None) -> Path:
        """The stamped folder; `earlier` is the day of a push being continued."""
        day = self.settings.date or earlier or datetime.now(UTC).date().isoformat()
        mark = Mark(self.repository.name, str(self.version), day)
        stamped = self.work / "stamped"
        self.content.stamp(self.folder, stamped, mark, published)
        (stamped / SIGNATURE_FILE).unlink(missing_ok=True)  # of the version that was downloaded
        if self.settings.sign is not None:
            sign(stamped, self.settings.sign)
        return stamped

    def _date_of(self, commit: str) -> str:
        """The release day in a commit's manifest; empty if that is of another version."""
        into = self.work / "manifest"
        self.repository.download(commit, into, only=[self.content.manifest])
        try:
            change = self.content.newest(into)
        except ReleaseError:
            return ""
        return change.date if change.version == str(self.version) else ""

    def _planned(
        self, head: Head, tree: Tree, last: str, demanded: Bump, steps: tuple[Step, ...]
    ) -> Plan:
        stamped = self.work / "stamped"
        operations = _operations(tree, stamped)
        if len(operations) > MOST_OPERATIONS:
            raise HubError(
                f"{len(operations)} files would change, one commit may touch {MOST_OPERATIONS}: "
                f"release fewer configs at a time",
                code="too-many-files",
            )
        change = self.content.newest(stamped)
        return Plan(
            version=change.version,
            date=change.date,
            last=last,
            demanded=demanded,
            steps=steps,
            head=head.commit,
            private=head.private,
            secret=self.settings.private,
            operations=operations,
            notes="\n".join(f"* {note}" for note in change.notes),
            repository=self.repository,
            folder=stamped,
        )


def _operations(tree: Tree, folder: Path) -> tuple[Operation, ...]:
    """The changes that turn `tree` into `folder`, ordered by path."""
    local = local_files(folder)
    return tuple(
        Operation("replace" if name in tree else "add", name, local[name].stat().st_size)
        if name in local
        else Operation("delete", name, 0)
        for name in differing(tree, folder)
    )
