"""Semantic versions of a release: which one a change demands, and which ones are refused.

Croissant 1.1 defines what each number means (see `diff`). The rule also holds for 0.x, since
readers pin 0.1.0 just as they pin 1.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

from ..errors import UsageError
from .errors import HubError

Bump = Literal["NONE", "PATCH", "MINOR", "MAJOR"]
BUMPS: tuple[Bump, ...] = ("NONE", "PATCH", "MINOR", "MAJOR")

_NUMBERS = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)


@dataclass(frozen=True, order=True)
class Version:
    """`major.minor.patch`, ordered.

    >>> Version.parse("1.10.0") > Version.parse("1.9.3")
    True
    """

    major: int
    """Increases when something is edited or removed."""
    minor: int
    """Increases when something is added."""
    patch: int
    """Increases when the same data are repackaged."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `1.0.0`. Raises UsageError for anything but three plain numbers."""
        if not (match := _NUMBERS.fullmatch(text)):
            raise UsageError(
                f"version {text!r} is not of the form 1.0.0: write three numbers and nothing else",
                code="bad-option",
            )
        return cls(*map(int, match.groups()))

    @classmethod
    def of_tag(cls, tag: str) -> Self | None:
        """The version that a tag names; None for a tag that isn't of the form `v1.0.0`.

        >>> Version.of_tag("v1.2.3"), Version.of_tag("pilot")
        (Version(major=1, minor=2, patch=3), None)
        """
        return cls.parse(tag[1:]) if tag[:1] == "v" and _NUMBERS.fullmatch(tag[1:]) else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def tag(self) -> str:
        return f"v{self}"

    def bump_from(self, last: Version) -> Bump:
        """The size of the step up from `last`, a lower version."""
        if self.major != last.major:
            return "MAJOR"
        if self.minor != last.minor:
            return "MINOR"
        return "PATCH" if self.patch != last.patch else "NONE"

    def next(self, bump: Bump) -> Version:
        """The smallest version that is one `bump` above this one.

        >>> str(Version(1, 4, 2).next("MINOR"))
        '1.5.0'
        """
        if bump == "MAJOR":
            return Version(self.major + 1, 0, 0)
        if bump == "MINOR":
            return Version(self.major, self.minor + 1, 0)
        return Version(self.major, self.minor, self.patch + 1)


def latest(tags: Iterable[str], below: Version | None = None) -> Version | None:
    """The highest version among the tags, below `below` if it is passed; None without one."""
    versions = [version for tag in tags if (version := Version.of_tag(tag))]
    return max((v for v in versions if below is None or v < below), default=None)


def check_above(version: Version, tags: Iterable[str]) -> None:
    """Raises HubError unless the version is above every released one."""
    last = latest(tags)
    if last is not None and version <= last:
        raise HubError(
            f"{version} is not above {last}, the last release; choose "
            f"--version {last.next('PATCH')} or higher",
            code="version-not-above",
        )


def check_step(version: Version, last: Version, demanded: Bump) -> None:
    """Raises HubError if the step from `last` to `version` is smaller than the change demands."""
    step = version.bump_from(last)
    if BUMPS.index(step) < BUMPS.index(demanded):
        raise HubError(
            f"the step from {last} to {version} is {step}, but the change is {demanded}: choose "
            f"--version {last.next(demanded)} or higher (`counterprior diff` shows which rows)",
            code="version-too-small",
        )
