"""The outlines of SVG's shapes as data of paths, and the numbers of attributes."""

from __future__ import annotations

import math
import re
from xml.etree.ElementTree import Element

from .canvas import checked_path, numbers, quoted
from .vector import ShapeError

_UNIT = re.compile(r"(?<=[0-9])px[ \t\n\f\r]*$")
OUTLINES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon")
"""Elements that are outlines."""


def path_of(element: Element, scale: float = 1) -> str:
    """The outline of one of `OUTLINES`, in its own coordinates, without its transform.

    scale: units of the stage in one of its own; sizes are rounded to a thousandth of the former.

    Raises ShapeError for an attribute that is missing or no number, and for a size of 0 or less,
    which browsers draw not at all.
    """
    digits = 3 + max(0, math.ceil(math.log10(scale)))
    match element.tag.rpartition("}")[2]:
        case "path":
            return _checked(_needed(element, "d"))
        case "rect":
            return _rect(element, digits)
        case "circle":
            return _ellipse(element, "r", "r", digits)
        case "ellipse":
            return _ellipse(element, "rx", "ry", digits)
        case "line":
            x1, y1, x2, y2 = (_number(element, name) for name in ("x1", "y1", "x2", "y2"))
            return _data(digits, "M", x1, y1, "L", x2, y2)
        case kind:
            return _checked(f"M{_points(element)}{' z' if kind == 'polygon' else ''}")


def length(name: str, text: str) -> float:
    """The number of an attribute or a property, in user units. Raises ShapeError for another."""
    try:
        (value,) = numbers(_UNIT.sub("", text))
    except ValueError:
        raise ShapeError(
            f"{name} {quoted(text)} is not a number without a unit, at most a million",
            code="bad-value",
        ) from None
    return value


def size(name: str, text: str) -> float:
    """A length that is not negative. Raises ShapeError for another."""
    if (value := length(name, text)) < 0:
        raise ShapeError(f"{name} {quoted(text)} is negative", code="bad-value")
    return value


def _checked(data: str) -> str:
    try:
        return checked_path(data)
    except ValueError as error:
        raise ShapeError(str(error), code="bad-value") from None


def _needed(element: Element, name: str) -> str:
    if not (text := element.get(name, "")):
        raise ShapeError(f"has no {name!r}: give it one, or delete it", code="bad-value")
    return text


def _number(element: Element, name: str) -> float:
    return length(name, element.get(name, "0"))


def _extent(element: Element, name: str) -> float:
    if (value := size(name, _needed(element, name))) == 0:
        raise ShapeError(f"{name} is 0: enlarge it, or delete it", code="bad-value")
    return value


def _points(element: Element) -> str:
    points = _needed(element, "points")
    try:
        numbers(points)
    except ValueError as error:
        raise ShapeError(f"points: {error}", code="bad-value") from None
    return points


def _rect(element: Element, digits: int) -> str:
    x, y = (_number(element, name) for name in ("x", "y"))
    width, height = (_extent(element, name) for name in ("width", "height"))
    radii = [element.get(name, "") for name in ("rx", "ry")]
    rx, ry = (
        size(f"r{axis}", own or other or "0")
        for axis, own, other in zip("xy", radii, reversed(radii), strict=True)
    )
    rx, ry = min(rx, width / 2), min(ry, height / 2)
    right, bottom = x + width, y + height
    if not rx or not ry:
        return _data(digits, "M", x, y, "H", right, "V", bottom, "H", x, "V", y, "z")
    arc = "A", rx, ry, "0 0 1"
    return _data(
        digits,
        *("M", x + rx, y, "H", right - rx, *arc, right, y + ry),
        *("V", bottom - ry, *arc, right - rx, bottom),
        *("H", x + rx, *arc, x, bottom - ry),
        *("V", y + ry, *arc, x + rx, y, "z"),
    )


def _ellipse(element: Element, across: str, down: str, digits: int) -> str:
    x, y = (_number(element, name) for name in ("cx", "cy"))
    rx, ry = _extent(element, across), _extent(element, down)
    arc = "A", rx, ry, "0 1 1"
    return _data(digits, "M", x - rx, y, *arc, x + rx, y, *arc, x - rx, y)


def _data(digits: int, *pieces: str | float) -> str:
    """Data of a path: its commands, and numbers rounded to some digits after the point."""
    return " ".join(p if isinstance(p, str) else f"{p:.{digits}f}" for p in pieces)
