"""What speaks against releasing a folder: each rule refuses by name, and says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .diff import ReleaseDiff, rows_by_id
from .documents import render_documents
from .errors import HubError
from .facts import read_facts
from .remote import Commit, Repository, Tree, differing, local_files
from .validate import Report
from .versions import Version

SIGNATURE = "Pushed by counterprior."
"""Last line of the message of every commit that `push` makes."""


def some(things: Iterable[object]) -> str:
    """The first few of them, and how many more there are."""
    texts = [str(thing) for thing in things]
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")


def check_report(report: Report) -> None:
    """Refuse a folder that `validate` finds fault with, or can't judge."""
    folder = report.checked
    canary = [problem for problem in report.problems if "canary" in str(problem).lower()]
    if canary:
        raise HubError("canary", f"{folder}: {some(canary)}; mend the bank and build anew")
    if report.problems:
        message = f"{folder}: {some(report.problems)}; mend the bank and build anew"
        raise HubError("invalid-folder", message)
    if report.notes:
        raise HubError("invalid-folder", f"{folder} can't be judged: {some(report.notes)}")


def check_drops(published: Path, stamped: Path, allowed: bool) -> None:
    """Refuse to lose a published file but on purpose."""
    dropped = sorted({*local_files(published)} - {*local_files(stamped)})
    if not dropped:
        return
    last, new = (Version.parse(read_facts(root).version) for root in (published, stamped))
    if not allowed or new.bump_from(last) != "MAJOR":
        raise HubError(
            "dropped-file",
            f"{last} has {some(dropped)}, {new} does not: build all of it; or drop it on purpose "
            f"with --allow-drop and --version {last.next('MAJOR')} or higher",
        )


def check_licences(published: Path, stamped: Path, found: ReleaseDiff) -> None:
    """Refuse to put what is published under other terms."""
    before, after = read_facts(published), read_facts(stamped)
    old, new = ({config.name: config.license for config in f.configs} for f in (before, after))
    changed = [
        f"{name} was {old[name]} and is {new[name]}"
        for name in old
        if name in new and old[name] != new[name]
    ]
    for config in found.configs:
        if config.edited:
            was, now = (rows_by_id(root, config.name) for root in (published, stamped))
            changed += [row for row in config.edited if was[row]["license"] != now[row]["license"]]
    # The text names the version, so it is compared as it would read under the old one.
    text = render_documents(after.model_copy(update={"changes": before.changes}))["LICENSE"]
    if text != (published / "LICENSE").read_text(encoding="utf-8"):
        changed.append("the text of LICENSE")
    if changed:
        raise HubError(
            "licence-change",
            f"{some(changed)}; where that is meant and allowed: --allow-license-change",
        )


def pushed_since(
    repository: Repository, head: str, tree: Tree, base: str, published: Path | None
) -> bool:
    """Whether main is ahead of the last release by commits of interrupted pushes alone.

    `head` and `tree` are those of main, `base` is the commit of the last release and `published`
    its files (empty and None: there is none). Raises HubError where somebody else changed main.
    """
    if head == base or not (differing(tree, published) if published else tree):
        return False
    history = repository.history(head)
    shas = [commit.sha for commit in history]
    since = history[: shas.index(base)] if base in shas else history
    if not base and not repository.tree(since[-1].sha):
        del since[-1]  # the commit with which the Hub makes a repository
    others = [repr(commit.title) for commit in since if not _is_pushed(commit)]
    if others:
        raise HubError(
            "foreign-head",
            f"main of {repository.name} is at {head[:12]}, ahead of the last release "
            f"({base[:12] or 'there is none'}) by {some(others)}. Take what that changes into the "
            f"bank, or drop it; put main back to the files of the last release (`hf download`, "
            f"then `hf upload --delete '*'`); and push again",
        )
    return True


def _is_pushed(commit: Commit) -> bool:
    title = re.fullmatch(r"Release \d+\.\d+\.\d+", commit.title)
    return title is not None and SIGNATURE in commit.message
