"""Lines, headings and entries of a study's table, with everything that qualifies a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Score


@dataclass(frozen=True)
class TableEntry:
    """One number with everything that qualifies it."""

    score: Score | None
    """None if nothing could be computed."""
    gap: str = ""
    """Missing work, or the error, of its cell; empty if the cell is done."""
    groups: str = ""
    """Letters of the tied groups; only for scores that their suite ranks by."""
    paper: float | None = None
    """Number that the paper printed in this place."""
    notes: tuple[int, ...] = ()
    """Numbers of notes, from 1."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; undefined numbers are None. The score of an unfinished cell is `partial`,
        not `score`."""
        score = None if self.score is None else self.score.to_json()
        return {
            "score": None if self.gap else score,
            "partial": score if self.gap else None,
            "gap": self.gap,
            "groups": self.groups.split(),
            "paper": self.paper,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class TableLine:
    """One line."""

    name: str
    """Name of the generator or judge."""
    section: str
    """Title that the lines of a section share, e.g. their judge; empty with a single section."""
    cells: Sequence[TableEntry]
    """One entry per column."""


@dataclass(frozen=True)
class Heading:
    """Heading of a column."""

    head: str
    label: str
    suites: tuple[str, ...]
    score: str
    judge: str = ""
    """Where the columns are repeated for each judge."""

    @property
    def name(self) -> str:
        """Judge, head and label, in one line."""
        return " ".join(text for text in (self.judge, self.head, self.label) if text)
