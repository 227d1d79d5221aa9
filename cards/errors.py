"""What stops a push or a request to the Hub: every reason has a name, every message a remedy."""

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
    "license-change",
    "too-many-files",
    "foreign-head",
    "not-a-benchmark",
    "head-moved",
    "hub-unreachable",
    "hub-refuses",
    "damaged-file",
    "verification-failed",
]
"""`hub-unreachable` may pass if tried again; `verification-failed` leaves a commit without a tag.
With every other reason, nothing has been released."""


class HubError(RunFailed):
    """A push that is refused or stopped, or a repository that can't be read."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
