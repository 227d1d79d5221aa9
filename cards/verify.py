"""Is a release, in a folder or on the Hub, still what it was when it was built?

`validate` also checks that the rows are good; this checks that they are unchanged and that readers
get them from the Hub.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..release import Problem, ReleaseError, load, sha256_file
from .croissant_records import CROISSANT
from .errors import HubError
from .facts import MANIFEST, Facts, read_facts
from .remote import Repository
from .validate import ReleaseReport, integrity
from .versions import Version


@dataclass(frozen=True)
class VerifySettings:
    """What to verify, and how thoroughly."""

    path_or_repo: str
    """A release folder, or `namespace/name`."""
    revision: str | None = None
    """Tag, branch or commit of a repository; None for the newest commit."""
    load: bool = False
    """Also load every config as a reader would."""


def verify_release(settings: VerifySettings) -> ReleaseReport:
    """What differs from the release's own checksums, manifest and Croissant, without any cache.

    Raises ReleaseError if there is no release, and HubError if the Hub does not provide it.
    """
    root = Path(settings.path_or_repo)
    if root.is_dir():
        if settings.revision is not None:
            raise ReleaseError(f"{root} is a folder and has no revisions; leave out --revision")
        facts = read_facts(root)
        problems, notes = integrity(root, facts)
        loaded = _load_problems(facts, str(root), None) if settings.load else ()
        return ReleaseReport(settings.path_or_repo, (*problems, *loaded), tuple(notes))
    repository = Repository(settings.path_or_repo)
    commit = repository.commit_of(settings.revision)
    name = f"{repository.name}@{commit}"
    with TemporaryDirectory() as temporary:
        root = Path(temporary) / "release"
        try:
            repository.download(commit, root)
            facts = read_facts(root)
        except HubError as error:
            if error.reason != "damaged-file":
                raise
            return ReleaseReport(name, (Problem(repository.name, str(error)),))
        except ReleaseError as error:
            raise ReleaseError(str(error).replace(str(root), name)) from None
        problems, notes = integrity(root, facts)
        problems += _address_problems(root, facts, settings)
    if settings.load:
        problems += _load_problems(facts, repository.name, commit)
    return ReleaseReport(name, tuple(problems), tuple(notes))


def _address_problems(root: Path, facts: Facts, settings: VerifySettings) -> Iterator[Problem]:
    """The manifest names this repository; Croissant points at exactly the files in it."""
    if facts.repo_id != settings.path_or_repo:
        message = f"says {facts.repo_id!r}, but it is in {settings.path_or_repo!r}"
        yield Problem(MANIFEST, message, field="repo_id")
    if Version.of_tag(settings.revision or "") and facts.tag != settings.revision:
        message = f"says {facts.version}, but the tag is {settings.revision}"
        yield Problem(MANIFEST, message, field="changes")
    try:
        document: dict[str, Any] = json.loads((root / CROISSANT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # already reported: its bytes differ
    objects = {entry.get("@id"): entry for entry in document.get("distribution", [])}
    for config in facts.configs:
        expected = {
            "contentUrl": f"{facts.url}/resolve/{facts.tag}/{config.file}",
            "contentSize": f"{(root / config.file).stat().st_size} B",
            "sha256": sha256_file(root / config.file),
        }
        found = objects.get(config.file, {})
        for name, value in expected.items():
            if found.get(name) != value:
                message = f"says {found.get(name)}, but the Hub has {value}"
                yield Problem(CROISSANT, message, config.file, name)


def _load_problems(facts: Facts, path_or_repo: str, commit: str | None) -> Iterator[Problem]:
    """What goes wrong when a reader with an empty cache loads each config."""
    for config in facts.configs:
        with TemporaryDirectory() as cache:
            try:
                load(path_or_repo, config.name, revision=commit, cache_dir=cache)
            except ReleaseError as error:
                yield Problem(config.file, f"can't be loaded: {error}")
