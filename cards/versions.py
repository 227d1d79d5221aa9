"""Semantic versions of a release: which one a change demands, and which ones are refused.

Croissant 1.1 says what a number means (see `diff`); here it is enforced, from the first version on:
0.x makes no exception, since a reader pins 0.1.0 as much as 1.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

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
    """Counts releases that edited or removed something."""
    minor: int
    """Counts those that added something since."""
    patch: int
    """Counts those that only repackaged since."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for anything but three plain numbers."""
        if not (found := _NUMBERS.fullmatch(text)):
            raise ValueError(f"version {text!r} is not of the form 1.0.0: no `v`, no suffix")
        return cls(*map(int, found.groups()))

    @classmethod
    def of_tag(cls, tag: str) -> Self | None:
        """The version that a tag stands for; None for a tag that isn't ours.

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
        """How large the step from `last` is. Meant for a version above it."""
        if self.major != last.major:
            return "MAJOR"
        if self.minor != last.minor:
            return "MINOR"
        return "PATCH" if self.patch != last.patch else "NONE"

    def next(self, bump: Bump) -> Version:
        """The smallest version above this one that makes the step.

        >>> str(Version(1, 4, 2).next("MINOR"))
        '1.5.0'
        """
        if bump == "MAJOR":
            return Version(self.major + 1, 0, 0)
        if bump == "MINOR":
            return Version(self.major, self.minor + 1, 0)
        return Version(self.major, self.minor, self.patch + 1)


def latest(tags: Iterable[str], below: Version | None = None) -> Version | None:
    """The highest version among tags, of those below `below`; None where there is none."""
    versions = [version for tag in tags if (version := Version.of_tag(tag))]
    return max((v for v in versions if below is None or v < below), default=None)


def check_above(version: Version, tags: Iterable[str]) -> None:
    """Refuse a version that is not above every released one."""
    last = latest(tags)
    if last is not None and version <= last:
        raise HubError(
            "version-not-above",
            f"{version} is not above {last}, the last release; versions only go up: "
            f"--version {last.next('PATCH')} or higher",
        )


def check_step(version: Version, last: Version, demanded: Bump) -> None:
    """Refuse a step from `last` to `version` that is smaller than the change demands."""
    step = version.bump_from(last)
    if BUMPS.index(step) < BUMPS.index(demanded):
        raise HubError(
            "version-too-small",
            f"from {last} to {version} is {step}, the change is {demanded}: "
            f"--version {last.next(demanded)} or higher (`counterprior diff` shows which rows)",
        )
