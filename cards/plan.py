"""What a push would do, found out by reading alone; whatever speaks against it is found here.

The plan that `--dry-run` prints is the very object that `push.execute` carries out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

from ..progress import Progress, silent
from ..release import ReleaseError
from .diff import diff
from .errors import HubError
from .facts import MANIFEST, read_facts
from .remote import Head, Repository, Tree, differing, local_files
from .rules import check_drops, check_licences, check_report, pushed_since, some
from .stamp import Mark, stamp
from .validate import Report
from .versions import BUMPS, Bump, Version, check_above, check_step, latest
from .write import locked

MOST_OPERATIONS = 99
"""Files that one commit may touch: the Hub advises below 100, and one commit is what is atomic."""

Validate = Callable[[Path], Report]
"""Says what is wrong with a release folder."""

Step = Literal["create", "commit", "verify", "tag"]


@dataclass(frozen=True)
class PushSettings:
    """What is asked of a push. The token stays where huggingface_hub finds it."""

    repo_id: str
    """Dataset repository, `namespace/name`."""
    version: str
    """Semantic version, without `v`."""
    date: str = ""
    """Day of the release, YYYY-MM-DD; empty: today, or the day of the push that is continued."""
    create: bool = False
    """Make the repository where it does not exist."""
    private: bool = False
    """It is to be private or gated; a public one is refused."""
    allow_drop: bool = False
    """A MAJOR version may drop published files."""
    allow_licence_change: bool = False
    """What is published may come under another licence."""
    endpoint: str | None = None
    """URL of the Hub; None: `HF_ENDPOINT`, or huggingface.co."""
    waits: tuple[float, ...] = (1, 2, 4, 8, 16)
    """Seconds between the tries of one request."""
    timeout: float = 120
    """Seconds without a byte after which a request has failed."""


@dataclass(frozen=True)
class Operation:
    """One file of the commit."""

    kind: Literal["add", "replace", "delete"]
    """What happens to it."""
    file: str
    """Path in the repository."""
    bytes: int
    """Size of the new content; 0 for a deletion."""


@dataclass(frozen=True)
class Plan:
    """What a push does; nothing in it is still to be decided."""

    version: str
    """The version that it releases."""
    date: str
    """Day of the release."""
    last: str
    """The version before; empty for the first."""
    demanded: Bump
    """The step that the change from `last` demands; NONE for the first."""
    steps: tuple[Step, ...]
    """What is left to do: all of it, the rest of an interrupted push, or nothing."""
    head: str
    """Commit that the new one goes on top of; empty where the repository is still to be made."""
    private: bool
    """Whether the repository is, or will be, private."""
    operations: tuple[Operation, ...]
    """The files of the one commit."""
    notes: str
    """Release notes: the changelog's entry, and the message of commit and tag."""
    repository: Repository
    """Where it goes."""
    folder: Path
    """The stamped release; there while the plan is."""

    @property
    def title(self) -> str:
        """First line of the messages of commit and tag."""
        return f"Release {self.version}"

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    def to_json(self) -> str:
        """The plan for a machine."""
        hidden = ("repository", "folder", "operations")
        facts = {name: value for name, value in vars(self).items() if name not in hidden}
        facts |= {"repo_id": self.repository.name, "tag": self.tag, "title": self.title}
        facts |= {"operations": [asdict(operation) for operation in self.operations]}
        return json.dumps(facts, indent=1, ensure_ascii=False)


@contextmanager
def planned(
    folder: Path,
    settings: PushSettings,
    validate: Validate,
    progress: Progress = silent,
) -> Iterator[Plan]:
    """The plan of pushing `folder`; its stamped copy lasts as long as the block.

    `validate` knows the content rules of the rows, which belong to the builders. Raises HubError
    for everything that speaks against the push, ReleaseError where `folder` is no release, and
    ValueError for a version or date that is none.
    """
    from huggingface_hub import get_token

    folder = folder.absolute()
    version = Version.parse(settings.version)
    if settings.date and date.fromisoformat(settings.date).isoformat() != settings.date:
        raise ValueError(f"date {settings.date!r} is not of the form 2026-11-21")
    if get_token() is None:
        raise HubError("no-token", "set HF_TOKEN to a token that may write, or `hf auth login`")
    work = folder.with_name(f".{folder.name}.push")
    with locked(folder):
        shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
        try:
            progress("validate", 0, 1)
            check_report(validate(folder))
            progress("validate", 1, 1)
            progress("compare with the Hub", 0, 1)
            plan = _Planner(folder, work, settings, version).plan()
            progress("compare with the Hub", 1, 1)
            yield plan
        finally:
            shutil.rmtree(work, ignore_errors=True)


class _Planner:
    """One look at the Hub, and what follows from it for one folder."""

    def __init__(self, folder: Path, work: Path, settings: PushSettings, version: Version) -> None:
        self.folder, self.work = folder, work
        self.settings, self.version = settings, version
        self.repository = Repository(
            settings.repo_id, settings.endpoint, settings.waits, settings.timeout
        )

    def plan(self) -> Plan:
        if read_facts(self.folder).private and not self.settings.private:
            raise HubError(
                "visibility", f"{self.folder} is a hold-out, which nobody may read: --private"
            )
        head = self.repository.head()
        if head is None:
            return self._onto_nothing()
        if self.settings.private and not head.private:
            raise HubError(
                "visibility",
                f"{self.repository.name} is public and --private was asked: choose another "
                f"repository, or make this one private or gated in its settings first",
            )
        tags = self.repository.tags()
        last = latest(tags, below=self.version)
        published = None
        if last is not None:
            published = self.work / "published"
            self.repository.download(tags[last.tag], published)
        if self.version.tag in tags:
            released = head._replace(commit=tags[self.version.tag])
            return self._onto_itself(released, published)
        check_above(self.version, tags)
        return self._onto(head, tags[last.tag] if last else "", published)

    def _onto_nothing(self) -> Plan:
        """The plan for a repository that is not there."""
        if not self.settings.create:
            raise HubError(
                "no-repository",
                f"{self.repository.name} does not exist, or your token does not see it: --create "
                f"makes it (with --private for members only)",
            )
        self._stamp("", None)
        nothing = Head("", self.settings.private)
        return self._planned(nothing, {}, "", "NONE", ("create", "commit", "verify", "tag"))

    def _onto_itself(self, released: Head, published: Path | None) -> Plan:
        """Nothing to do where the tag holds what would be pushed; else a refusal."""
        stamped = self._stamp(self._date_of(released.commit), published)
        tree = self.repository.tree(released.commit)
        if wrong := differing(tree, stamped):
            raise HubError(
                "version-reused",
                f"{self.version.tag} is released with other content ({some(wrong)}), and tags "
                f"never move: push it as a new version",
            )
        last = read_facts(published).version if published else ""
        return self._planned(
            released, tree, last, diff(published, stamped).bump if published else "NONE", ()
        )

    def _onto(self, head: Head, base: str, published: Path | None) -> Plan:
        """The plan for a repository whose last release is the commit `base`."""
        tree = self.repository.tree(head.commit)
        resumed = pushed_since(self.repository, head.commit, tree, base, published)
        stamped = self._stamp(self._date_of(head.commit) if resumed else "", published)
        last, demanded = "", BUMPS[0]
        if published is not None:
            found = diff(published, stamped)
            last, demanded = read_facts(published).version, found.bump
            check_step(self.version, Version.parse(last), demanded)
            check_drops(published, stamped, self.settings.allow_drop)
            if not self.settings.allow_licence_change:
                check_licences(published, stamped, found)
        steps: tuple[Step, ...] = ("commit", "verify", "tag")
        return self._planned(
            head, tree, last, demanded, steps if differing(tree, stamped) else steps[1:]
        )

    def _stamp(self, earlier: str, published: Path | None) -> Path:
        """The stamped folder; `earlier` is the day of a push that is continued."""
        day = self.settings.date or earlier or datetime.now(UTC).date().isoformat()
        mark = Mark(self.repository.name, str(self.version), day)
        stamp(self.folder, self.work / "stamped", mark, published)
        return self.work / "stamped"

    def _date_of(self, commit: str) -> str:
        """The day that a commit gives this version; empty where it is of another."""
        into = self.work / "manifest"
        self.repository.download(commit, into, only=[MANIFEST])
        try:
            change = read_facts(into).changes[0]
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
                "too-many-files",
                f"{len(operations)} files would change and one commit may touch {MOST_OPERATIONS}: "
                f"release fewer configs at a time",
            )
        change = read_facts(stamped).changes[0]
        return Plan(
            version=change.version,
            date=change.date,
            last=last,
            demanded=demanded,
            steps=steps,
            head=head.commit,
            private=head.private,
            operations=operations,
            notes="\n".join(f"* {note}" for note in change.notes),
            repository=self.repository,
            folder=stamped,
        )


def _operations(tree: Tree, folder: Path) -> tuple[Operation, ...]:
    """What turns `tree` into `folder`, in the order of the paths."""
    local = local_files(folder)
    return tuple(
        Operation("replace" if name in tree else "add", name, local[name].stat().st_size)
        if name in local
        else Operation("delete", name, 0)
        for name in differing(tree, folder)
    )
