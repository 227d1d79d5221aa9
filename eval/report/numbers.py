"""Numbers as a reader sees them, with the exact value beside them for a machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ..results.marks import MARKS
from ..stats.estimate import UNDEFINED, value_text
from ..stats.intervals import Interval


def number(value: float | None, unit: str = "1") -> Markup:
    """The number in a `data` element whose `value` has all of its digits.

    >>> str(number(51.30434, "%"))
    '<data value="51.30434">51.3</data>'
    """
    if value is None or math.isnan(value):
        return Markup("<span class=undefined>{}</span>").format(UNDEFINED)
    return Markup('<data value="{}">{}</data>').format(repr(float(value)), value_text(value, unit))


def interval(ends: Interval, unit: str = "1") -> Markup:
    """Both ends of an interval as `number` has them, or a dash."""
    if math.isnan(ends[0]):
        return Markup("<span class=undefined>&ndash;</span>")
    return Markup("{} to {}").format(number(ends[0], unit), number(ends[1], unit))


def marks(names: Sequence[str]) -> Markup:
    """The signs of marks, each with its meaning where a pointer rests on it.

    >>> str(marks(["unchecked"]))
    '<sup title="the judge was not checked on gold images">†</sup>'
    """
    texts = (
        Markup('<sup title="{}">{}</sup>').format(MARKS[n].legend, MARKS[n].sign) for n in names
    )
    return Markup("").join(texts)


def count(value: int) -> Markup:
    """A whole number.

    >>> str(count(1700))
    '<data value="1700">1,700</data>'
    """
    return Markup('<data value="{}">{}</data>').format(value, f"{value:,}")


def p_value(value: float) -> Markup:
    """A probability; very small ones as a bound.

    >>> str(p_value(0.0001))
    '<data value="0.0001">&lt; 0.001</data>'
    """
    if math.isnan(value):
        return number(value)
    return Markup('<data value="{}">{}</data>').format(
        repr(float(value)), "< 0.001" if value < 0.001 else f"{value:.3f}"
    )
