"""Is a release, in a folder or on the Hub, still what it was when it was made?

`validate` also asks whether its rows are good; this asks whether they are the same, and whether the
Hub gives them to a reader.
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
from .validate import Report, integrity
from .versions import Version


@dataclass(frozen=True)
class VerifySettings:
    """What is verified, and how far."""

    path_or_repo: str
    """A release folder, or `namespace/name`."""
    revision: str | None = None
    """Tag, branch or commit of a repository; None: the newest commit."""
    load: bool = False
    """Also load every config as a reader does."""


def verify_release(settings: VerifySettings) -> Report:
    """What differs from the release's own checksums, manifest and Croissant, from nobody's cache.

    Raises ReleaseError where there is no release to compare, HubError where the Hub gives none.
    """
    root = Path(settings.path_or_repo)
    if root.is_dir():
        if settings.revision is not None:
            raise ReleaseError(f"{root} is a folder and has no revisions; leave out --revision")
        facts = read_facts(root)
        problems, notes = integrity(root, facts)
        loaded = _load_problems(facts, str(root), None) if settings.load else ()
        return Report(settings.path_or_repo, (*problems, *loaded), tuple(notes))
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
            return Report(name, (Problem(repository.name, str(error)),))
        except ReleaseError as error:
            raise ReleaseError(str(error).replace(str(root), name)) from None
        problems, notes = integrity(root, facts)
        problems += _address_problems(root, facts, settings)
    if settings.load:
        problems += _load_problems(facts, repository.name, commit)
    return Report(name, tuple(problems), tuple(notes))


def _address_problems(root: Path, facts: Facts, settings: VerifySettings) -> Iterator[Problem]:
    """The release says where it lies; its Croissant points at exactly the files that lie there."""
    if facts.repo_id != settings.path_or_repo:
        message = f"says {facts.repo_id!r}, it lies in {settings.path_or_repo!r}"
        yield Problem(MANIFEST, message, field="repo_id")
    if Version.of_tag(settings.revision or "") and facts.tag != settings.revision:
        yield Problem(
            MANIFEST, f"says {facts.version}, the tag is {settings.revision}", "", "changes"
        )
    try:
        document: dict[str, Any] = json.loads((root / CROISSANT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # already a problem of its bytes
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
                message = f"says {found.get(name)}, the Hub has {value}"
                yield Problem(CROISSANT, message, config.file, name)


def _load_problems(facts: Facts, path_or_repo: str, commit: str | None) -> Iterator[Problem]:
    """What `load_dataset` gives a reader who has nothing cached."""
    for config in facts.configs:
        with TemporaryDirectory() as cache:
            try:
                load(path_or_repo, config.name, revision=commit, cache_dir=cache)
            except ReleaseError as error:
                yield Problem(config.file, f"can't be loaded: {error}")
