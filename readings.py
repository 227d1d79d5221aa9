"""Readings of real images: what a reader saw of two named things, and what of it is settled.

A reader, a person or a model, sees an image and two names, A and B, and nothing else. What at
least two readers say is settled; `docs/findings.md` says how the published readings were made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import field_validator

from .schema import Settled, Shown, Struct

Seen = Literal["whole", "part", "merged", "other", "no"]
"""Whether a thing is there: clearly; incomplete or malformed; fused with the other thing into one;
a different thing where one would expect it; not at all."""
Placed = Literal["A", "B", "same", "none"]
"""Which of two things comes first on an axis: hardly a difference is `same`; `none` where one of
them is not there."""
SHOWN: dict[str, Shown] = {
    "whole": "there",
    "part": "there",
    "merged": "merged",
    "other": "absent",
    "no": "absent",
}
"""What a reader says of a thing -> what counts."""
AXES = ("left", "upper", "front")
"""Questions about two things that are both there: further left, higher, nearer to the viewer."""
QUESTIONS = ("a", "b", *AXES)
UNSETTLED: Literal["unsettled"] = "unsettled"
ENOUGH = 2
"""Readers that must say the same."""


class ImageReading(Struct):
    """Answers of one reader about one image."""

    a: Seen
    """Whether A is there."""
    b: Seen
    """Whether B is there."""
    left: Placed
    """Whose center is further left; `same` within about a tenth of the image's width."""
    upper: Placed
    """Whose center is higher."""
    front: Placed
    """Which is nearer, or covers the other; `same` side by side, or where it can't be told."""
    sure: Literal[1, 2, 3]
    """How sure the reader is of all of it: a guess, fairly, certain."""

    @field_validator("sure", mode="before")
    @classmethod
    def _from_page(cls, value: object) -> object:
        """The page of `audit serve` writes texts."""
        return int(value) if isinstance(value, str) and value.isdecimal() else value

    @property
    def both_there(self) -> bool:
        """Whether the reader saw both things, each by itself."""
        return SHOWN[self.a] == SHOWN[self.b] == "there"

    def swapped(self) -> ImageReading:
        """The same reading with A and B exchanged."""
        turned = {name: _TURNED.get(getattr(self, name), getattr(self, name)) for name in AXES}
        return ImageReading(a=self.b, b=self.a, sure=self.sure, **turned)


_TURNED: dict[str, Placed] = {"A": "B", "B": "A"}


class SettledReading(NamedTuple):
    """What at least two readers of an image say."""

    a: Shown
    b: Shown
    left: Settled
    upper: Settled
    front: Settled

    @property
    def open(self) -> list[str]:
        """Questions that a further reader must answer."""
        unsettled = [name for name in QUESTIONS if getattr(self, name) == UNSETTLED]
        if {self.a, self.b} & {UNSETTLED}:
            return [*(name for name in unsettled if name in ("a", "b")), *AXES]
        return unsettled


def settle(readings: Sequence[ImageReading]) -> SettledReading:
    """Settles each question by the answer of at least two readers.

    Readers who did not see both things have no say about their order. Where it is unsettled whether
    both are there, so is their order.
    """
    a, b = (_agreed(SHOWN[getattr(reading, name)] for reading in readings) for name in ("a", "b"))
    if UNSETTLED in (a, b):
        order: dict[str, str] = dict.fromkeys(AXES, UNSETTLED)
    elif (a, b) != ("there", "there"):
        order = dict.fromkeys(AXES, "none")
    else:
        order = {name: _agreed(getattr(r, name) for r in readings if r.both_there) for name in AXES}
    return SettledReading(a, b, **order)  # type: ignore[arg-type]


def columns_of(readings: Mapping[str, ImageReading], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The columns of a row of `real_gold` that hold what readers say.

    readings: by reader; kinds: kind of each.
    """
    settled, each = settle(list(readings.values())), list(readings.values())
    return {
        "a_shown": settled.a,
        "b_shown": settled.b,
        "further_left": settled.left,
        "higher": settled.upper,
        "in_front": settled.front,
        "readers": list(readings),
        "reader_kinds": [kinds[name] for name in readings],
        **{f"{name}_read": [getattr(reading, name) for reading in each] for name in QUESTIONS},
        "sure": [reading.sure for reading in each],
    }


def _agreed(answers: Iterable[str]) -> str:
    ranked = Counter(answers).most_common(1)
    return ranked[0][0] if ranked and ranked[0][1] >= ENOUGH else UNSETTLED
