"""Marks: reservations about all scores of a run under a judge, on every number that is printed.

A mark is recorded in the score, so that it goes wherever the number goes: tables print its sign
behind the value and its legend below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..core import Score
from ..stats.estimate import value_text


@dataclass(frozen=True)
class ScoreMark:
    """A sign behind a number."""

    sign: str
    legend: str
    """Meaning of the sign, as the end of `SIGN LEGEND`."""


UNCHECKED = "unchecked"
PARTLY_CHECKED = "partly-checked"
CHECK_FAILED = "check-failed"
JUDGE_CHOSE = "judge-chose"
SCORER_CHOSE = "scorer-chose"
MARKS = {
    UNCHECKED: ScoreMark("†", "the judge was not checked on gold images"),
    PARTLY_CHECKED: ScoreMark(
        "†", "more than a tenth of the rows have no gold images on which the judge was checked"
    ),
    CHECK_FAILED: ScoreMark(
        "‡", "the judge fails its check on gold images: none of its verdicts is scored"
    ),
    JUDGE_CHOSE: ScoreMark(
        "§", "the images were chosen by the judge itself, whose score of its choices is too high"
    ),
    SCORER_CHOSE: ScoreMark(
        "§", "the images were chosen by the scorer itself, whose score of its choices is too high"
    ),
}
"""Name in files -> mark."""


def signs(marks: Iterable[str]) -> str:
    """The signs of some marks.

    >>> signs(["unchecked"]), signs([])
    ('†', '')
    """
    return "".join(dict.fromkeys(MARKS[name].sign for name in marks))


def marked_value(score: Score) -> str:
    """A score's value in its unit with its signs."""
    return value_text(score.value, score.unit) + signs(score.marks)


class Marked(Protocol):
    """A number with marks: a score, or a change of one."""

    @property
    def marks(self) -> tuple[str, ...]: ...


def marks_of(numbers: Iterable[Marked]) -> tuple[str, ...]:
    """The marks of some numbers, each once."""
    return tuple(dict.fromkeys(name for number in numbers for name in number.marks))


def legends(marks: Iterable[str]) -> list[str]:
    """Meanings of the signs of some marks, one text each."""
    return [f"{MARKS[name].sign} {MARKS[name].legend}" for name in dict.fromkeys(marks)]
