"""Carries out a plan: one commit, verified from a cold cache, and only then the tag.

Each step can be repeated: what the Hub shows decides whether it is done, not what the Hub
answered. So a run that lost a response or was killed resumes without a second commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ..progress import Progress, silent
from ..release import Problem, ReleaseError
from .diff import diff
from .errors import HubError
from .push_checks import SIGNATURE, some
from .push_plan import Plan
from .remote import (
    CONFLICT,
    STALE_PARENT,
    Repository,
    differing,
    hide_secrets,
    is_passing,
    status_of,
)

Verify = Callable[[Repository, str], list[str]]
"""Given a repository and a commit, lists what is wrong with what a reader gets."""


def execute(
    plan: Plan,
    progress: Progress = silent,
    verify: Verify | None = None,
) -> str:
    """Does what is left of the plan; returns the tagged commit.

    After a HubError, the remote holds the old release whole, or the new one whole without its tag;
    running the same push again resumes it.
    """
    commit = plan.head
    for step in plan.steps:
        progress(step, 0, 1)
        if step == "create":
            commit = _create(plan)
        elif step == "commit":
            _check_secrecy(plan)
            commit = _commit(plan, commit)
        elif step == "verify":
            _check(plan, commit, verify or verify_cold)
        else:
            _check_secrecy(plan)
            _tag(plan, commit)
        progress(step, 1, 1)
    return commit


def _create(plan: Plan) -> str:
    """Creates the repository; returns its first commit."""
    repository = plan.repository
    repository.create(plan.private)
    head = repository.head()
    if head is None or head.private != plan.private or repository.tree(head.commit):
        raise HubError(
            f"somebody else just created {repository.name}; push again", code="head-moved"
        )
    return head.commit


def _check_secrecy(plan: Plan) -> None:
    """Raises HubError if a repository that must be private is public by now."""
    if not plan.secret:
        return
    head = plan.repository.head()
    if head is None or not head.private:
        raise HubError(
            f"{plan.repository.name} was made public meanwhile: make it private or gated in its "
            f"settings, look at what it shows, and push again",
            code="visibility",
        )


def _commit(plan: Plan, parent: str) -> str:
    """Makes the commit once and returns it; never overwrites a parent that has moved."""
    repository = plan.repository
    waits = [*repository.waits, None]
    for wait in waits:
        try:
            return repository.once(lambda: _send(plan, parent))
        except Exception as error:
            if not (is_passing(error) or status_of(error) == STALE_PARENT):
                raise _refused(repository, error) from error
            failed = error
        # A failed request proves nothing: its answer may have been lost after the commit was made.
        head = repository.head()
        now = head.commit if head else ""
        if now != parent:
            if not differing(repository.tree(now), plan.folder):
                return now
            raise HubError(_describe_move(repository, parent, now), code="head-moved") from failed
        if wait is None:
            raise repository.named(failed) from failed
        time.sleep(wait)
    raise AssertionError("unreachable")


def _send(plan: Plan, parent: str) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    # Created anew for each attempt: the client marks them as sent.
    operations = [
        CommitOperationDelete(operation.file)
        if operation.kind == "delete"
        else CommitOperationAdd(operation.file, plan.folder / operation.file)
        for operation in plan.operations
    ]
    return plan.repository.api.create_commit(
        plan.repository.name,
        operations,
        repo_type="dataset",
        commit_message=plan.title,
        commit_description=f"{plan.notes}\n\n{SIGNATURE}",
        parent_commit=parent,
    ).oid


def _refused(repository: Repository, error: Exception) -> Exception:
    """The error as a HubError; huggingface_hub reports a faulty card as a ValueError."""
    if isinstance(error, ValueError) and not status_of(error):
        return HubError(f"{repository.name}: {hide_secrets(str(error))}", code="hub-refuses")
    return repository.named(error)


def _describe_move(repository: Repository, parent: str, now: str) -> str:
    """Describes what somebody else changed on main during the push, and what to do about it."""
    before, after = repository.tree(parent), repository.tree(now)
    files = sorted(n for n in {*before, *after} if before.get(n) != after.get(n))
    titles = []
    for commit in repository.history(now):
        if commit.sha == parent:
            break
        titles.append(commit.title)
    with TemporaryDirectory() as folder:
        rows = _moved_rows(repository, parent, now, Path(folder))
    return (
        f"somebody else pushed to main of {repository.name} meanwhile ({'; '.join(titles)}), "
        f"changing {', '.join(files) or 'nothing'}{rows}. Nothing of yours was written. Take their "
        f"change into the bank or agree to drop it, build again, and push again"
    )


def _moved_rows(repository: Repository, parent: str, now: str, folder: Path) -> str:
    """The rows that differ, if both commits are releases."""
    for commit in (parent, now):
        repository.download(commit, folder / commit)
    try:
        changes = diff(folder / parent, folder / now)
    except (ReleaseError, OSError):
        return ""
    changed = [config.sentence() for config in changes.configs if config.bump != "NONE"]
    return f"; {'; '.join(changed)}" if changed else "; no row"


def _check(plan: Plan, commit: str, verify: Verify) -> None:
    """Compares the commit with the plan, then reads it as a reader would."""
    name = plan.repository.name
    wrong = [f"{file} differs" for file in differing(plan.repository.tree(commit), plan.folder)]
    wrong = wrong or verify(plan.repository, commit)
    if not wrong:
        return
    message = (
        f"main of {name} is at {commit}, which has no tag: {some(wrong)}. Readers of tags are "
        f"not affected. Push again to replace the files that differ"
    )
    if plan.last:
        message += (
            f". Or go back: `hf download {name} --repo-type dataset --revision v{plan.last} "
            f"--local-dir last`, then `hf upload {name} last . --repo-type dataset --delete '*'`"
        )
    raise HubError(message, code="verification-failed")


def verify_cold(repository: Repository, commit: str) -> list[str]:
    """Runs `counterprior verify --load` on a commit in a process with nothing cached.

    The token goes through the environment. Raises HubError if the Hub could not be reached.
    """
    from huggingface_hub import get_token

    command = [sys.executable, "-P", "-m", "counterprior", "verify", repository.name]
    command += ["--revision", commit, "--load", "--json"]
    with TemporaryDirectory() as home:
        inherited = {k: v for k, v in os.environ.items() if not k.endswith(("_CACHE", "_OFFLINE"))}
        environment = inherited | {
            "HF_HOME": home,
            "HF_ENDPOINT": repository.api.endpoint,
            "HF_TOKEN": get_token() or "",
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise HubError(
            f"{repository.name}@{commit} was pushed but could not be verified "
            f"({hide_secrets(lines[0])}), so it has no tag yet: run the same command again to "
            f"resume",
            code="hub-unreachable",
        ) from None
    return [str(Problem(**problem)) for problem in report["problems"]]


def _tag(plan: Plan, commit: str) -> None:
    """Sets the tag once; an existing tag must hold the same content."""
    repository = plan.repository
    for wait in [*repository.waits, None]:
        failed: Exception | None = None
        try:
            repository.once(
                lambda: repository.api.create_tag(
                    repository.name,
                    tag=plan.tag,
                    tag_message=f"{plan.title}\n\n{plan.notes}",
                    revision=commit,
                    repo_type="dataset",
                )
            )
        except Exception as error:
            if not (is_passing(error) or status_of(error) == CONFLICT):
                raise repository.named(error) from error
            failed = error
        target = repository.tags().get(plan.tag)
        if target == commit or (target and not differing(repository.tree(target), plan.folder)):
            return
        if target:
            raise HubError(
                f"somebody else tagged {target[:12]} as {plan.tag} meanwhile, with other content; "
                f"tags never move: push a new version",
                code="version-reused",
            ) from failed
        if wait is None:
            break
        time.sleep(wait)
    raise repository.named(failed or OSError(f"the Hub does not show {plan.tag}")) from failed
