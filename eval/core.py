"""What is generated and judged: cases, and what came out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .judges import FAILURES

ORIGINAL = "original"
PROBES = ("mirror", "swap")
"""Controls of a judge: the mirrored picture, and the subjects named in the other order.

A judge that looks gives the same answer about the world under both.
"""


BOTH = " + "
"""Between the two groups of one kind that a row is in, e.g. the categories of its entities."""


def both(first: str, second: str) -> str:
    """The group or groups of a pair, whichever comes first in it."""
    return BOTH.join(sorted({first, second}))


@dataclass(frozen=True)
class Case:
    """One picture to be made: a row of a config in one of its variants, with one seed."""

    row: str
    """Id of the row."""
    variant: str
    """Which of the row's prompts, e.g. `swapped`; the suite says what there is."""
    seed: int
    """Seed to generate with."""
    number: int
    """Which of the row's seeds it is, from 0."""
    prompt: str
    """Text to draw, or edit instruction."""
    clusters: tuple[str, ...]
    """What the row's items share: the unordered pair, then its members where they recur."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Values to break scores down by, e.g. `pair_type`; a row in two groups of a kind has both,
    joined by `BOTH`."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Question -> weight, where a score weighs its questions."""
    source: str = ""
    """The picture to edit, relative to the run; its stem is its SHA-256. Empty where none is."""

    @property
    def id(self) -> str:
        """Unique in a suite; also the stem of the picture's file name."""
        return f"{self.row}-{self.variant}-{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """A case with everything that one judge said of its picture."""

    case: Case
    """What was asked for."""
    labels: Mapping[tuple[str, str], str]
    """(question, probe) -> label or failure; without an entry the picture is `missing`."""

    def label(self, question: str, probe: str = ORIGINAL) -> str:
        """The label of one question; what is wrong with the picture where that kept it from being
        asked; `missing` where it was never judged."""
        return self.labels.get((question, probe), self.labels.get(("", ORIGINAL), "missing"))


def is_failure(label: str) -> bool:
    """Whether a label says that there is no judgement."""
    return label in FAILURES


def count_excluded(labels: Iterable[str], scored: Iterable[str]) -> dict[str, int]:
    """How many labels are outside the scored ones, by label, sorted."""
    kept = set(scored)
    counts: dict[str, int] = {}
    for label in labels:
        if label not in kept:
            counts[label] = counts.get(label, 0) + 1
    return dict(sorted(counts.items()))
