"""The outlines of SVG's shapes as data of paths, and the numbers of attributes."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from .canvas import numbers, quoted
from .vector import ShapeError

OUTLINES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon")
"""Elements that are outlines."""


def path_of(element: Element) -> str:
    """The outline of one of `OUTLINES`, in its own coordinates, without its transform.

    Raises ShapeError for an attribute that is missing or no number, and for a size of 0 or less,
    which browsers draw not at all.
    """
    match element.tag.rpartition("}")[2]:
        case "path":
            return _needed(element, "d")
        case "rect":
            return _rect(element)
        case "circle":
            return _ellipse(element, "r", "r")
        case "ellipse":
            return _ellipse(element, "rx", "ry")
        case "line":
            x1, y1, x2, y2 = (_number(element, name) for name in ("x1", "y1", "x2", "y2"))
            return f"M{x1:.9g},{y1:.9g} L{x2:.9g},{y2:.9g}"
        case kind:
            return f"M{_points(element)}{' z' if kind == 'polygon' else ''}"


def length(name: str, text: str) -> float:
    """The number of an attribute or a property, in user units. Raises ShapeError for another."""
    try:
        (value,) = numbers(text.strip().removesuffix("px"))
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


def _needed(element: Element, name: str) -> str:
    if not (text := element.get(name, "").strip()):
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
        listed = numbers(points)
    except ValueError as error:
        raise ShapeError(f"points: {error}", code="bad-value") from None
    return " ".join(f"{number:.9g}" for number in listed)


def _rect(element: Element) -> str:
    x, y = (_number(element, name) for name in ("x", "y"))
    width, height = (_extent(element, name) for name in ("width", "height"))
    radii = [element.get(name, "").strip() for name in ("rx", "ry")]
    rx, ry = (
        size(f"r{axis}", own or other or "0")
        for axis, own, other in zip("xy", radii, reversed(radii), strict=True)
    )
    rx, ry = min(rx, width / 2), min(ry, height / 2)
    if not rx or not ry:
        return f"M{x:.9g},{y:.9g} H{x + width:.9g} V{y + height:.9g} H{x:.9g} V{y:.9g} z"
    corner = f"A{rx:.9g},{ry:.9g} 0 0 1"
    left, right, top, bottom = x + rx, x + width - rx, y + ry, y + height - ry
    return (
        f"M{left:.9g},{y:.9g} H{right:.9g} {corner} {x + width:.9g},{top:.9g} "
        f"V{bottom:.9g} {corner} {right:.9g},{y + height:.9g} "
        f"H{left:.9g} {corner} {x:.9g},{bottom:.9g} V{top:.9g} {corner} {left:.9g},{y:.9g} z"
    )


def _ellipse(element: Element, across: str, down: str) -> str:
    x, y = (_number(element, name) for name in ("cx", "cy"))
    rx, ry = _extent(element, across), _extent(element, down)
    half = f"A{rx:.9g},{ry:.9g} 0 1 1"
    return f"M{x - rx:.9g},{y:.9g} {half} {x + rx:.9g},{y:.9g} {half} {x - rx:.9g},{y:.9g}"
