"""What stops a push, or a look at the Hub: each reason has a name, and its message a remedy."""

from __future__ import annotations

from typing import Literal

from ..errors import RunFailed

Reason = Literal[
    "invalid-folder",
    "canary",
    "no-token",
    "no-repository",
    "no-revision",
    "visibility",
    "version-reused",
    "version-not-above",
    "version-too-small",
    "dropped-file",
    "licence-change",
    "too-many-files",
    "foreign-head",
    "head-moved",
    "hub-unreachable",
    "hub-refuses",
    "damaged-file",
    "verification-failed",
]
"""`hub-unreachable` is worth another try, `verification-failed` leaves a commit without a tag; with
every other reason nothing has been released."""


class HubError(RunFailed):
    """A push that won't begin or won't go on, a repository that can't be read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
