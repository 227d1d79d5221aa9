"""SVG files as layers of shapes: drawings that people open in a browser and edit in Inkscape.

What a file shows in a browser is what is drawn, but for the font and the corners of strokes, which
are round. What this can't draw (gradients, clips, opacity, styles by class, turned text) is
refused, not passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from fontTools.misc.transform import Identity, Transform
from fontTools.svgLib.path import PathBuilder

from .canvas import above_baseline, moved, text_width
from .people import Point
from .vector import ShapeError, VectorShape, color

VIEW = "-100 -100 1200 1200"
"""View box of a drawing: the stage, from 0 to 1000, and what an image may show around it."""

_SVG = "{http://www.w3.org/2000/svg}"
_LABEL = "{http://www.inkscape.org/namespaces/inkscape}label"
_OUTLINES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon")
_SILENT = ("defs", "metadata", "title", "desc")
_INITIAL = {
    "fill": "black",
    "stroke": "none",
    "stroke-width": "1",
    "font-size": "16",
    "text-anchor": "start",
    "dominant-baseline": "auto",
}
"""Properties that are read, which elements hand on to those in them, and their values at first."""
_ONLY = {
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity"), "1"),
    **dict.fromkeys(("stroke-dasharray", "clip-path", "mask", "filter", "vector-effect"), "none"),
    **dict.fromkeys(("marker", "marker-start", "marker-mid", "marker-end"), "none"),
    **dict.fromkeys(("font-weight", "font-style", "letter-spacing", "word-spacing"), "normal"),
    **dict.fromkeys(("paint-order", "mix-blend-mode"), "normal"),
    "text-decoration": "none",
    "fill-rule": "nonzero",
    "stroke-linecap": "butt",
    "visibility": "visible",
}
"""Properties of which a single value is drawn."""
_MOVED = ("dx", "dy", "rotate", "textLength")
"""Attributes that move the letters of a text."""
_TO_MIDDLE = {"start": 0.5, "middle": 0.0, "end": -0.5}
"""How far the middle of a text is to the right of its x, in widths of the text."""
_ON_BASELINE = {"auto": True, "alphabetic": True, "central": False}
"""Whether the y of a text is that of its baseline, not that of its middle."""
_TRANSFORM = re.compile(r"\s*(\w+)\s*\(([^()]*)\)[\s,]*")


@dataclass(frozen=True)
class SvgLayer:
    """A group of the root, or of another group."""

    name: str
    """Its `inkscape:label`, else its `id`."""
    content: tuple[VectorShape | SvgLayer, ...] = ()
    """What is directly in it; a shape without fill and stroke is invisible."""

    @property
    def shapes(self) -> Iterator[VectorShape]:
        """Its shapes and those of all groups in it."""
        for part in self.content:
            if isinstance(part, SvgLayer):
                yield from part.shapes
            else:
                yield part


@lru_cache(maxsize=1024)
def read_layers(data: bytes) -> tuple[SvgLayer, ...]:
    """Layers of an SVG file, hidden ones too: an editor hides those that cover others.

    Raises ShapeError naming layer, element and fault.
    """
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ShapeError(f"not XML: {error}", code="bad-value") from None
    if root.tag != f"{_SVG}svg":
        raise ShapeError('not <svg xmlns="http://www.w3.org/2000/svg">', code="bad-value")
    if root.get("viewBox") != VIEW:
        raise ShapeError(f'viewBox is {root.get("viewBox")!r}, not "{VIEW}"', code="bad-value")
    context = _Context().within(root)
    for element in _drawn(root):
        if not _is_group(element):
            raise ShapeError(f"{_kind(element)} is in no layer", code="bad-value")
    return tuple(_layer(element, context) for element in _drawn(root))


@dataclass(frozen=True)
class _Context:
    """What an element takes from those that it is in."""

    transform: Transform = Identity
    """From its coordinates to those of the root."""
    properties: Mapping[str, str] = field(default_factory=_INITIAL.copy)

    def within(self, element: Element) -> _Context:
        """The context of what is in an element, and of what the element draws itself."""
        entries = (entry.partition(":") for entry in element.get("style", "").split(";"))
        style = {name.strip(): value.strip() for name, _, value in entries}
        own = {**element.attrib, **style}
        for name, value in own.items():
            if name in _ONLY and value != _ONLY[name]:
                raise _undrawn(f"{name} {value!r} (only {_ONLY[name]!r})")
        if "transform" in style:
            raise _undrawn("a transform of the style, not of the element,")
        if own.get("display") == "none" and not _is_group(element):
            raise _undrawn("a hidden shape")
        properties = {name: own.get(name, value) for name, value in self.properties.items()}
        transform = _transform(element.get("transform", ""))
        return _Context(self.transform.transform(transform), properties)

    def color(self, name: str) -> str:
        """Its fill or stroke; empty for none."""
        value = self.properties[name]
        return "" if value == "none" else color(value)

    def length(self, name: str) -> float:
        """One of its lengths, in the coordinates of the root."""
        a, b, c, d, _, _ = self.transform
        return _number(self.properties[name]) * math.sqrt(abs(a * d - b * c))


def _layer(element: Element, context: _Context) -> SvgLayer:
    name = element.get(_LABEL) or element.get("id") or ""
    try:
        return SvgLayer(name, tuple(_content(element, context.within(element))))
    except ShapeError as error:
        raise ShapeError(f"layer {name!r}, {error}", code=error.code) from None


def _content(element: Element, context: _Context) -> Iterator[VectorShape | SvgLayer]:
    for number, child in enumerate(_drawn(element), 1):
        if _is_group(child):
            yield _layer(child, context)
            continue
        kind = _kind(child)
        try:
            inner = context.within(child)
            if kind in _OUTLINES:
                yield _outline(child, inner)
            elif kind == "text":
                yield from _lines(child, inner, (0, 0))
            else:
                raise _undrawn(f"<{kind}>")
        except ShapeError as error:
            where = f"{kind} {child.get('id') or number}"
            raise ShapeError(f"{where}: {error}", code=error.code) from None


def _outline(element: Element, context: _Context) -> VectorShape:
    builder = PathBuilder()
    bare = Element(element.tag, {k: v for k, v in element.attrib.items() if k != "transform"})
    try:
        builder.add_path_from_element(bare)
        path = "".join(builder.paths)
        if not path:
            raise ValueError("has no 'd' or 'points'")
        if context.transform != Identity:
            path = moved(path, context.transform)
    except (TypeError, ValueError) as error:  # an attribute that is missing, or no number
        raise ShapeError(str(error), code="bad-value") from None
    return VectorShape(
        path=path,
        fill=context.color("fill"),
        stroke=context.color("stroke"),
        width=context.length("stroke-width"),
    )


def _lines(element: Element, context: _Context, at: Point) -> Iterator[VectorShape]:
    """Lines of a text, or of a line of one, that begins at a point unless it says where."""
    at = _number(element.get("x", str(at[0]))), _number(element.get("y", str(at[1])))
    for name in filter(element.attrib.__contains__, _MOVED):
        raise _undrawn(name)
    written = (element.text or "").strip()
    if written:
        yield _line(written, at, context)
    for line in element:
        if (
            _kind(line) != "tspan"
            or (written and "x" not in line.attrib)
            or (line.tail or "").strip()
        ):
            raise _undrawn("text that goes on in a line; each <tspan> needs an x and a y")
        written = "".join(line.itertext())
        yield from _lines(line, context.within(line), at)


def _line(text: str, at: Point, context: _Context) -> VectorShape:
    a, b, c, d, _, _ = context.transform
    if max(abs(b), abs(c), abs(a - d)) > 1e-6 or a <= 0:
        raise _undrawn("text that is turned, mirrored or stretched")
    height = context.length("font-size")
    x, y = context.transform.transformPoint(at)
    anchor, baseline = (context.properties[name] for name in ("text-anchor", "dominant-baseline"))
    if anchor not in _TO_MIDDLE or baseline not in _ON_BASELINE:
        raise _undrawn(f"text-anchor {anchor!r} with dominant-baseline {baseline!r}")
    x += _TO_MIDDLE[anchor] * text_width(text) * height
    if _ON_BASELINE[baseline]:
        y -= above_baseline() * height
    return VectorShape(text=text, at=(x, y), height=height, fill=context.color("fill"))


def _drawn(element: Element) -> Iterator[Element]:
    """What is in an element but notes, and what other namespaces add."""
    for child in element:
        if child.tag.startswith(_SVG) and _kind(child) not in _SILENT:
            yield child


def _kind(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _is_group(element: Element) -> bool:
    return element.tag == f"{_SVG}g"


def _number(text: str) -> float:
    try:
        return float(text.removesuffix("px"))
    except ValueError:
        raise ShapeError(f"{text!r} is not a number", code="bad-value") from None


def _transform(text: str) -> Transform:
    """A list of transforms as one."""
    whole, place = Identity, 0
    while match := _TRANSFORM.match(text, place):
        place, name = match.end(), match[1]
        numbers = [_number(number) for number in match[2].replace(",", " ").split()]
        match name, numbers:
            case "matrix", [_, _, _, _, _, _]:
                own = Transform(*numbers)
            case "translate", [x, *y] if len(y) < 2:
                own = Identity.translate(x, *y)
            case "scale", [x, *y] if len(y) < 2:
                own = Identity.scale(x, *y)
            case "rotate", [degrees]:
                own = Identity.rotate(math.radians(degrees))
            case "rotate", [degrees, x, y]:
                own = Identity.translate(x, y).rotate(math.radians(degrees)).translate(-x, -y)
            case "skewX", [degrees]:
                own = Identity.skew(math.radians(degrees))
            case "skewY", [degrees]:
                own = Identity.skew(0, math.radians(degrees))
            case _:
                raise _undrawn(f"transform {match[0].strip()!r}")
        whole = whole.transform(own)
    if text[place:].strip():
        raise _undrawn(f"transform {text!r}")
    return whole


def _undrawn(what: str) -> ShapeError:
    return ShapeError(f"{what} is not drawn", code="unsupported")
