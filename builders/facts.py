"""Fact tables: where the parts of a keyboard, a body, a map or a flag are, in its own coordinates.

A constrained pair names a fact and a frame (`frames`); code derives which of its two things is
left. A table holds the whole thing with its sources, not the answer to one pair, and many pairs
share it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..errors import DataError
from ..schema import Frame, Struct
from .bank import BankError, BankFaults, by_name, read_folder
from .frames import FRAMES, OwnAxis, mentions

PartPlace = tuple[float, float]
"""Along the fact's axis, and upward (or away from the viewer of a plan); only orders count."""

FEWEST_PARTS = 4
"""Parts with which a table that is seen only in the order in which it is written counts as more
than the answer to a pair: a shorter one could have been written from the answer."""

SHOWN_PARTS = 12
"""Parts that a description lists."""

SAME = 1e-6
"""Coordinates closer than this are not beside each other."""


class FactError(DataError):
    """Fact that lacks the part, frame or scope that a pair needs."""


class Fact(Struct):
    """One thing with the places of its parts."""

    id: str
    """Slug."""
    title: str
    """Name of the thing, with the meaning of its axis if the frame leaves it open."""
    standards: list[str]
    """Ids in the standards registry: the sources of the places."""
    frames: dict[Frame, list[str]]
    """Frames in which it can be seen, all of one axis, with the words of a prompt that say so for
    this fact beside those of the vocabulary."""
    row: tuple[str, ...] = ()
    """Parts in the order of the axis, one unit apart."""
    grid: tuple[str, ...] = ()
    """Rows from the top, parts separated by spaces, `.` for an empty place."""
    shift: tuple[float, ...] = ()
    """Offset of each row of `grid` along the axis; none if empty."""
    clockwise: tuple[str, ...] = ()
    """Parts evenly round a dial, the first one at the top."""
    bearings: dict[str, float] = Field(default_factory=dict)
    """Parts of a dial by degrees clockwise from the top."""
    points: dict[str, PartPlace] = Field(default_factory=dict)
    """Parts by their coordinates."""
    values: dict[str, float] = Field(default_factory=dict)
    """Marks on a scale, by value."""
    numbers: bool = False
    """Whether every number is a part, at its own value (a number line, pages, years)."""
    time: str = ""
    """H:MM that a clock with an `hour hand` and a `minute hand` shows."""
    of: str = ""
    """Fact whose points are degrees east and north; this one is a map of it."""
    projection: Literal["cylindrical", "polar"] = "cylindrical"
    """Projection of such a map; `polar` has the North Pole in the center, Greenwich down."""
    center: float = 0.0
    """Degrees east of the meridian in the middle of a cylindrical map."""
    names: dict[str, list[str]] = Field(default_factory=dict)
    """Part -> other names that prompts use."""
    holds_in: tuple[str, ...] = ()
    """Scopes in which the places hold; any where empty."""
    mirrored_in: tuple[str, ...] = ()
    """Scopes in which they are mirrored, e.g. countries that drive on the other side."""

    @property
    def axis(self) -> OwnAxis:
        """The axis of its frames."""
        return FRAMES[next(iter(self.frames))].axis


class FactTables:
    """All facts of a bank."""

    def __init__(self, facts: dict[str, Fact]) -> None:
        """Raises BankError for a table that contradicts itself."""
        self.facts = facts
        self._places = {name: dict(self._parts(fact)) for name, fact in facts.items()}
        faults = BankFaults()
        for fact in facts.values():
            for reason in self._faults(fact):
                faults.add(f"fact {fact.id}: {reason}")
        faults.raise_any()

    def places(self, name: str) -> dict[str, PartPlace]:
        """The parts of a fact with their places."""
        return self._places[name]

    def part(self, name: str, phrase: str) -> str:
        """The part that a noun phrase names. Raises FactError unless exactly one fits best."""
        fact = self.facts[name]
        text = unicodedata.normalize("NFKC", phrase)
        lengths_by_part: dict[str, int] = {}
        for part in self._places[name]:
            lengths = [len(n) for n in (part, *fact.names.get(part, ())) if mentions(text, n)]
            if lengths:
                lengths_by_part[part] = max(lengths)
        if not lengths_by_part and fact.numbers:
            return _number_in(text)
        best = [
            part
            for part, length in lengths_by_part.items()
            if length == max(lengths_by_part.values())
        ]
        if len(best) != 1:
            raise FactError(
                f"{phrase!r} names {best or 'no part'} of fact {name}", code="unknown-reference"
            )
        return best[0]

    def place(self, name: str, part: str) -> PartPlace:
        """Where a part is, also a number of a fact that has all. Raises FactError for no part."""
        if part in self._places[name]:
            return self._places[name][part]
        if not self.facts[name].numbers or not re.fullmatch(_NUMBER, part):
            raise FactError(f"{part!r} is not a part of fact {name}", code="unknown-reference")
        return float(part), 0.0

    def across(self, name: str, frame: Frame, scope: str, phrase: str) -> float:
        """The coordinate toward the viewer's right of what a noun phrase names.

        >>> from .bank import DEFAULT_BANK
        >>> read_facts(DEFAULT_BANK).across("clock", "upright", "universal", "the numeral 9")
        -1.0

        Raises FactError for an unknown fact or part, a frame in which it can't be seen, or a scope
        in which it does not hold.
        """
        return self.sign(name, frame, scope) * self.place(name, self.part(name, phrase))[0]

    def sign(self, name: str, frame: Frame, scope: str) -> int:
        """1 where the axis of a fact grows to the viewer's right, else -1. Raises FactError."""
        if name not in self.facts:
            raise FactError(f"fact {name!r} is unknown", code="unknown-reference")
        fact = self.facts[name]
        if frame not in fact.frames:
            raise FactError(
                f"fact {name} is seen {', '.join(fact.frames)}, not {frame}", code="bad-entry"
            )
        if scope in fact.mirrored_in:
            return -FRAMES[frame].sign
        if fact.holds_in and scope not in fact.holds_in:
            raise FactError(
                f"fact {name} holds in {', '.join(fact.holds_in)}, not in {scope!r}",
                code="bad-entry",
            )
        return FRAMES[frame].sign

    def order(
        self, name: str, frame: Frame, scope: str, phrases: tuple[str, str]
    ) -> tuple[str, str]:
        """Two noun phrases in the order in which the viewer sees them, from left to right.

        Raises FactError also where neither is left of the other.
        """
        first, second = (self.across(name, frame, scope, phrase) for phrase in phrases)
        if abs(first - second) < SAME:
            raise FactError(
                f"fact {name}: neither of {phrases} is left of the other", code="bad-entry"
            )
        return phrases if first < second else (phrases[1], phrases[0])

    def restates(self, name: str, frame: Frame, scope: str) -> bool:
        """Whether a fact may say no more than its answer: few parts, only in the viewer's order."""
        fact = self.facts[name]
        if fact.numbers or fact.time or len(self._places[name]) >= FEWEST_PARTS:
            return False
        turned = {FRAMES[f].sign for f in fact.frames} == {1, -1} or bool(fact.mirrored_in)
        return not turned and self.sign(name, frame, scope) == 1

    def described(self, name: str) -> str:
        """One line: id, title, frames and the first parts."""
        fact = self.facts[name]
        listed = ", ".join(list(self._places[name])[:SHOWN_PARTS]) or "any number"
        return f"{name}: {fact.title}. Seen {', '.join(fact.frames)}. Parts: {listed}"

    def _parts(self, fact: Fact) -> Iterator[tuple[str, PartPlace]]:
        yield from ((part, (float(i), 0.0)) for i, part in enumerate(fact.row))
        for y, row in enumerate(fact.grid):
            start = fact.shift[y] if fact.shift else 0.0
            for x, part in enumerate(row.split()):
                if part != ".":
                    yield part, (start + x, float(-y))
        for i, part in enumerate(fact.clockwise):
            yield part, _on_dial(360 * i / len(fact.clockwise))
        yield from ((part, _on_dial(degrees)) for part, degrees in fact.bearings.items())
        yield from fact.points.items()
        yield from ((part, (value, 0.0)) for part, value in fact.values.items())
        if fact.time:
            hour, minute = map(int, fact.time.split(":"))
            yield "hour hand", _on_dial(30 * hour + minute / 2)
            yield "minute hand", _on_dial(6 * minute)
        if fact.of:
            for part, (east, north) in self.facts[fact.of].points.items():
                yield part, _on_map(fact, east, north)

    def _faults(self, fact: Fact) -> Iterator[str]:
        if len({FRAMES[frame].axis for frame in fact.frames}) != 1:
            yield "frames: name frames of one axis, at least one"
        if not fact.standards:
            yield "standards: name a source"
        if not self._places[fact.id] and not fact.numbers:
            yield "has no part"
        if fact.shift and len(fact.shift) != len(fact.grid):
            yield "shift: one number for each row of the grid"
        for part in fact.names:
            if part not in self._places[fact.id]:
                yield f"names: {part!r} is not a part"


def read_facts(bank: Path) -> FactTables:
    """The fact tables of a bank. Raises BankError naming file or fact."""
    files = read_folder(bank / "facts", Fact)
    facts = by_name((f for listed in files.values() for f in listed), "id", str(bank / "facts"))
    for fact in facts.values():
        if fact.of and fact.of not in facts:
            raise BankError(f"fact {fact.id}: of: {fact.of!r} is unknown", code="unknown-reference")
    return FactTables(facts)


def _on_dial(degrees: float) -> PartPlace:
    angle = math.radians(degrees)
    return round(math.sin(angle), 9), round(math.cos(angle), 9)


def _on_map(fact: Fact, east: float, north: float) -> PartPlace:
    if fact.projection == "polar":
        x, y = _on_dial(180 - east)
        return x * (90 - north), y * (90 - north)
    return (east - fact.center + 180) % 360 - 180, north


_NUMBER = r"-?\d+(?:\.\d+)?"


def _number_in(text: str) -> str:
    """The one number of a phrase as a decimal; years before Christ are negative.

    >>> _number_in("page 46"), _number_in("44 BC"), _number_in("1/4")
    ('46', '-44', '0.25')
    """
    plain = text.replace("\N{MINUS SIGN}", "-").replace("\N{FRACTION SLASH}", "/")
    numbers = re.findall(rf"{_NUMBER}(?:/\d+)?", plain)
    if len(numbers) != 1:
        raise FactError(f"{text!r} names {len(numbers)} numbers", code="bad-value")
    numerator, _, denominator = numbers[0].partition("/")
    if denominator and not float(denominator):
        raise FactError(f"{text!r} divides by zero", code="out-of-range")
    value = float(numerator) / float(denominator or 1)
    value = -value if mentions(text, "BC") else value
    return str(int(value)) if value.is_integer() else repr(value)
