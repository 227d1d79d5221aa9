"""Checks that refuse a push; each has a name and a remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ..release import SIGNATURE_FILE
from .diff import ReleaseDiff, rows_by_id
from .documents import render_documents
from .errors import HubError
from .manifest import read_manifest
from .remote import Commit, Repository, Tree, local_files
from .validate import ReleaseReport
from .versions import Version

SIGNATURE = "Pushed by counterprior."
"""Last line of the message of every commit that `push` makes."""

MOST_NAMED = 4
"""Problems that a message names."""


def some(things: Iterable[object]) -> str:
    """The first few, and how many more there are."""
    texts = [str(thing) for thing in things]
    more = len(texts) - MOST_NAMED
    return ", ".join(texts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_report(report: ReleaseReport) -> None:
    """Raises HubError for a folder that is invalid or could not be fully checked."""
    folder = report.checked
    canary = [problem for problem in report.problems if "canary" in str(problem).lower()]
    if canary:
        raise HubError(f"{folder}: {some(canary)}; fix the bank and build again", code="canary")
    if report.problems:
        message = f"{folder}: {some(report.problems)}; fix the bank and build again"
        if len(report.problems) > MOST_NAMED:
            message += f" (`counterprior validate {folder}` lists all)"
        raise HubError(message, code="invalid-folder")
    if report.notes:
        raise HubError(
            f"{folder} could not be fully checked: {some(report.notes)}", code="invalid-folder"
        )


def check_drops(published: Path, stamped: Path, allowed: bool) -> None:
    """Raises HubError if a published file would be lost without `allowed` and a MAJOR step."""
    # A version is signed or not, whatever its last one was.
    dropped = sorted({*local_files(published)} - {*local_files(stamped), SIGNATURE_FILE})
    if not dropped:
        return
    last, new = (Version.parse(read_manifest(root).version) for root in (published, stamped))
    if not allowed or new.bump_from(last) != "MAJOR":
        raise HubError(
            f"{last} has {some(dropped)}, {new} does not: build all configs, or drop the files on "
            f"purpose with --allow-drop and --version {last.next('MAJOR')} or higher",
            code="dropped-file",
        )


def check_licenses(published: Path, stamped: Path, differences: ReleaseDiff) -> None:
    """Raises HubError if published data would change their license."""
    before, after = read_manifest(published), read_manifest(stamped)
    old, new = ({config.name: config.license for config in f.configs} for f in (before, after))
    changed = [
        f"{name} was {old[name]} and is {new[name]}"
        for name in old
        if name in new and old[name] != new[name]
    ]
    for config in differences.configs:
        if config.edited:
            was, now = (rows_by_id(root, config.name) for root in (published, stamped))
            changed += [row for row in config.edited if was[row]["license"] != now[row]["license"]]
    # The text names the version, so it is compared as it would read under the old one.
    text = render_documents(after.model_copy(update={"changes": before.changes}))["LICENSE"]
    if text != (published / "LICENSE").read_text(encoding="utf-8"):
        changed.append("the text of LICENSE")
    if changed:
        raise HubError(
            f"{some(changed)}; if that is intended and permitted, add --allow-license-change",
            code="license-change",
        )


def pushed_since(repository: Repository, head: str, tree: Tree, base: str) -> bool:
    """Whether main is ahead of the last release only by commits of interrupted pushes.

    `head` and `tree` are those of main, `base` is the commit of the last release (empty if there
    is none). Raises HubError if somebody else changed main.
    """
    if head == base or tree == (repository.tree(base) if base else {}):
        return False
    history = repository.history(head)
    shas = [commit.sha for commit in history]
    since = history[: shas.index(base)] if base in shas else history
    if not base and not repository.tree(since[-1].sha):
        del since[-1]  # the commit with which the Hub creates a repository
    foreign = [repr(commit.title) for commit in since if not _is_pushed(commit)]
    if foreign:
        raise HubError(
            f"main of {repository.name} is at {head[:12]}, ahead of the last release "
            f"({base[:12] or 'there is none'}) by {some(foreign)}. Take those changes into the "
            f"bank or drop them; restore the files of the last release on main (`hf download`, "
            f"then `hf upload --delete '*'`); and push again",
            code="foreign-head",
        )
    return True


def _is_pushed(commit: Commit) -> bool:
    title = re.fullmatch(r"Release \d+\.\d+\.\d+", commit.title)
    return title is not None and SIGNATURE in commit.message
