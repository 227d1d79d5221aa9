"""Runs that are published together, with their names and folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import UsageError
from ..engine.run import HEADER, Run, RunError
from .publication import STUDY

RUNS = "runs"
"""Folder of a study with its runs, by suite and generator."""
OUT = "published"
"""Folder that is written, in the study or run."""


class Publishable(NamedTuple):
    """One run of what is published."""

    suite: str
    """Config."""
    generator: str
    """Name, unique in the suite."""
    run: Run
    """The folder."""

    @property
    def name(self) -> str:
        """Unique in the publication."""
        return f"{self.suite}/{self.generator}"


def find_members(roots: Sequence[Path]) -> list[Publishable]:
    """The runs of studies and run folders, by generator, then suite.

    In a study a generator is named by its folder, a single run by its own. Raises RunError for a
    folder that is neither, UsageError where two runs would have one name.
    """
    members: dict[tuple[str, str], Publishable] = {}
    for root in roots:
        folders = sorted(path.parent for path in root.glob(f"{RUNS}/*/*/{HEADER}"))
        if not folders and not (root / HEADER).exists():
            raise RunError(f"{root} is neither a study with runs nor a run", code="not-a-run")
        for folder in folders or [root]:
            run = Run.open(folder)
            member = Publishable(run.header.suite, folder.resolve().name, run)
            first = members.setdefault((member.generator, member.suite), member)
            if first is not member:
                raise UsageError(
                    f"{first.run.root} and {folder} would both be {member.name}: rename a folder",
                    code="duplicate-id",
                )
    return [members[key] for key in sorted(members)]


def study_file(roots: Sequence[Path]) -> Path | None:
    """The study file, where one study is published."""
    path = roots[0] / STUDY
    return path if len(roots) == 1 and path.is_file() else None


def folder_of(roots: Sequence[Path], out: Path | None) -> Path:
    """Where the publication is written. Raises UsageError where it must be said."""
    if out is None and len(roots) != 1:
        raise UsageError(
            "several runs: say with --out where the publication is to be written",
            code="missing-option",
        )
    return out or roots[0] / OUT
