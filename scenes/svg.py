"""SVG files as layers of shapes: drawings that people open in a browser and edit in Inkscape.

What a file shows in a browser is what is drawn, but for the font and the corners of strokes, which
are round. What this can't draw (gradients, clips, opacity, styles by class, turned text) is refused
with what to do about it, not passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from fontTools.misc.transform import Identity, Transform

from .canvas import above_baseline, moved, numbers, outline, quoted, text_width
from .people import Point
from .svg_outlines import OUTLINES, length, path_of, size
from .vector import UNITS, ShapeError, VectorShape, color

VIEW = "-100 -100 1200 1200"
"""View box of a drawing: the stage, from 0 to 1000, and what an image may show around it."""

_SVG = "{http://www.w3.org/2000/svg}"
_INKSCAPE = "{http://www.inkscape.org/namespaces/inkscape}"
_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_DEEPEST = 64
"""Most elements in each other that are read."""
_SILENT = ("defs", "metadata", "title", "desc")
_SHEETS = ("style", "script", "link")
"""Elements of any namespace that change what others look like, wherever they are."""
_INITIAL = {
    "fill": "black",
    "stroke": "none",
    "stroke-width": "1",
    "font-size": "16",
    "text-anchor": "start",
    "dominant-baseline": "auto",
    "white-space": "normal",
}
"""Properties that are read, which elements hand on to those in them, and their values at first."""
_ONLY = {
    **dict.fromkeys(("opacity", "fill-opacity", "stroke-opacity"), ("1", "1.0", "100%")),
    **dict.fromkeys(("stroke-dasharray", "clip-path", "mask", "filter"), ("none",)),
    **dict.fromkeys(("marker", "marker-start", "marker-mid", "marker-end"), ("none",)),
    **dict.fromkeys(("vector-effect", "text-transform", "font-size-adjust"), ("none",)),
    **dict.fromkeys(("text-decoration", "text-decoration-line"), ("none",)),
    **dict.fromkeys(("letter-spacing", "word-spacing"), ("normal", "0", "0px")),
    **dict.fromkeys(("font-style", "font-variant", "font-variant-alternates"), ("normal",)),
    **dict.fromkeys(("font-variant-caps", "font-variant-east-asian"), ("normal",)),
    **dict.fromkeys(("font-variant-ligatures", "font-variant-numeric"), ("normal",)),
    **dict.fromkeys(("font-variant-position", "font-feature-settings"), ("normal",)),
    **dict.fromkeys(("font-variation-settings", "mix-blend-mode"), ("normal",)),
    "paint-order": (
        *("normal", "fill", "fill stroke", "fill stroke markers"),
        *("fill markers", "fill markers stroke"),
    ),
    "font-weight": ("normal", "400"),
    "font-stretch": ("normal", "100%"),
    "baseline-shift": ("baseline", "0"),
    "alignment-baseline": ("auto", "baseline"),
    "writing-mode": ("lr-tb", "lr", "horizontal-tb"),
    "direction": ("ltr",),
    "unicode-bidi": ("normal",),
    "fill-rule": ("nonzero",),
    "stroke-linecap": ("butt",),
    "visibility": ("visible",),
    "transform-origin": ("0 0",),
    "clip": ("auto",),
}
"""Properties of which a single value is drawn, and how editors write it."""
_FREE = frozenset(
    """
    block-progression clip-rule color color-interpolation color-interpolation-filters
    color-rendering display enable-background flood-color flood-opacity font-family image-rendering
    inline-size isolation lighting-color line-height overflow pointer-events shape-inside
    shape-margin shape-padding shape-rendering solid-color solid-opacity stop-color stop-opacity
    stroke-dashoffset stroke-linejoin stroke-miterlimit text-align text-decoration-color
    text-decoration-style text-indent text-orientation text-rendering
    """.split()
)
"""Other properties that editors write: none changes a drawing but for its font and its corners."""
_INSTEAD = {
    "use": "unlink the clone",
    "flowRoot": "convert it to text",
    **dict.fromkeys(("a", "svg", "switch", "symbol"), "ungroup it"),
    **dict.fromkeys(_SHEETS, "give each shape its own fill and stroke"),
}
"""What to do about elements that are not drawn."""
_CONDITIONS = ("systemLanguage", "requiredExtensions")
"""Attributes that hide an element from some viewers."""
_MOVED = ("dx", "dy", "rotate", "textLength")
"""Attributes that move the letters of a text."""
_TO_MIDDLE = {"start": 0.5, "middle": 0.0, "end": -0.5}
"""How far the middle of a text is to the right of its x, in widths of the text."""
_ON_BASELINE = {"auto": True, "alphabetic": True, "central": False}
"""Whether the y of a text is that of its baseline, not that of its middle."""
_SMALLEST = 9
"""Smallest font that is drawn as large as it is, units of the stage."""
_UNEVEN = 1.0
"""Most that the width of a stroke may differ between directions, units of the stage."""
_SPACES = {"normal": False, "nowrap": False, "pre": True, "pre-wrap": True, "break-spaces": True}
"""Whether spaces in a row, and at the ends of a text, are kept."""
_TRANSFORM = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*(?:,(?=\s*\w))?", re.ASCII)


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


def read_layers(data: bytes) -> tuple[SvgLayer, ...]:
    """Layers of an SVG file, hidden ones too: an editor hides those that cover others.

    Raises ShapeError naming layer, element and fault.
    """
    try:
        root = ElementTree.fromstring(data, ElementTree.XMLParser(target=_Builder()))
    except ShapeError:
        raise
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # also unknown encodings
        raise ShapeError(f"not XML: {error}", code="bad-value") from None
    if root.tag != f"{_SVG}svg":
        raise ShapeError('not <svg xmlns="http://www.w3.org/2000/svg">', code="bad-value")
    _check_view(root)
    context = _Context().within(root)
    for element in _drawn(root):
        if not _is_group(element):
            raise ShapeError(
                f"{_named(element)} is in no layer: move it into one", code="bad-value"
            )
    layers = tuple(_layer(element, n, context) for n, element in enumerate(_drawn(root), 1))
    for element in root.iter():
        if _kind(element) in _SHEETS:
            raise _undrawn(f"<{_kind(element)}>", "give each shape its own fill and stroke")
    return layers


class _Builder(ElementTree.TreeBuilder):
    """Refuses what no element shows: style sheets before the drawing, and too deep a tree."""

    _depth = 0

    def pi(self, target: str, text: str | None = None) -> Any:
        if target == "xml-stylesheet":
            raise _undrawn(f"<?{target}?>", "give each shape its own fill and stroke")
        return super().pi(target, text)

    def start(self, tag: str, attrs: dict[str, str]) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _undrawn(f"a tree of more than {_DEEPEST} elements in each other", "ungroup some")
        return super().start(tag, attrs)

    def end(self, tag: str) -> Element:
        self._depth -= 1
        return super().end(tag)


def _check_view(root: Element) -> None:
    view = root.get("viewBox", "")
    try:
        same = numbers(view) == numbers(VIEW)
    except ValueError:
        same = False
    if not same:
        raise ShapeError(
            f'viewBox is {quoted(view)}, not "{VIEW}": set it (in Inkscape: Document Properties)',
            code="bad-value",
        )
    if "transform" in root.attrib:
        raise _undrawn("a transform of <svg>", "move it to the layers")


@dataclass(frozen=True)
class _Context:
    """What an element takes from those that it is in."""

    transform: Transform = Identity
    """From its coordinates to those of the root."""
    properties: Mapping[str, str] = field(default_factory=_INITIAL.copy)
    depth: int = 0
    """How many elements it is in."""

    def within(self, element: Element) -> _Context:
        """The context of what is in an element, and of what the element draws itself."""
        style = _style(element)
        own = {**element.attrib, **style}
        for name, value in own.items():
            if name in _ONLY and value.strip().lower() not in _ONLY[name]:
                raise _undrawn(f"{name} {quoted(value)}", f"only {_ONLY[name][0]!r}")
            if name in _CONDITIONS:
                raise _undrawn(name, "remove it")
        if own.get("display") == "none" and not self._may_hide(element):
            raise _undrawn("what is hidden", "delete or show it; only layers may be hidden")
        if _XML_SPACE in element.attrib and "white-space" not in own:
            own["white-space"] = "pre" if element.get(_XML_SPACE) == "preserve" else "normal"
        properties = {name: own.get(name, value) for name, value in self.properties.items()}
        transform = _transform(element.get("transform", ""))
        return _Context(self.transform.transform(transform), properties, self.depth + 1)

    def _may_hide(self, element: Element) -> bool:
        is_layer = self.depth == 1 or element.get(f"{_INKSCAPE}groupmode") == "layer"
        return _is_group(element) and is_layer

    def color(self, name: str) -> str:
        """Its fill or stroke; empty for none."""
        value = self.properties[name].strip()
        return "" if value == "none" else color(value)

    def length(self, name: str) -> float:
        """One of its lengths, in the coordinates of the root."""
        wide = size(name, self.properties[name]) * math.sqrt(abs(_area(self.transform)))
        if wide > UNITS:
            raise _undrawn(f"{name} {self.properties[name]!r}", f"at most {UNITS} in all")
        return wide


def _style(element: Element) -> dict[str, str]:
    """The properties of an element's attribute `style`."""
    style = {}
    for entry in filter(str.strip, element.get("style", "").split(";")):
        name, _, value = entry.partition(":")
        name = name.strip().lower()
        if not (
            name in _INITIAL or name in _ONLY or name in _FREE or name.startswith("-inkscape-")
        ):
            raise _undrawn(f"{quoted(name)} in the style", "remove it")
        style[name] = value.strip()
    return style


def _layer(element: Element, number: int, context: _Context) -> SvgLayer:
    name = element.get(f"{_INKSCAPE}label") or element.get("id") or ""
    try:
        return SvgLayer(name, tuple(_content(element, context.within(element))))
    except ShapeError as error:
        where = f"layer {quoted(name)}" if name else f"group {number}"
        raise ShapeError(f"{where}, {error}", code=error.code) from None


def _content(element: Element, context: _Context) -> Iterator[VectorShape | SvgLayer]:
    for number, child in enumerate(_drawn(element), 1):
        if _is_group(child):
            yield _layer(child, number, context)
            continue
        kind = _kind(child)
        try:
            if kind != "text" and kind not in OUTLINES:
                raise _undrawn(f"<{kind}>", _INSTEAD.get(kind, f"use {', '.join(OUTLINES)}, text"))
            inner = context.within(child)
            if kind == "text":
                yield from _lines(child, inner, (0, 0))
            else:
                yield _outline(child, inner)
        except ShapeError as error:
            raise ShapeError(f"{_named(child, number)}: {error}", code=error.code) from None


def _outline(element: Element, context: _Context) -> VectorShape:
    for child in _drawn(element):
        raise _undrawn(f"<{_kind(child)}> in a shape", "remove it")
    if (area := abs(_area(context.transform))) == 0:
        raise _undrawn("a transform that leaves no area", "undo it")
    path = path_of(element, math.sqrt(area))
    try:
        if context.transform != Identity:
            path = moved(path, context.transform)
        outline(path)
    except ValueError as error:
        raise ShapeError(str(error), code="bad-value") from None
    width, stroke = context.length("stroke-width"), context.color("stroke")
    if stroke and _unevenness(context.transform) * width > _UNEVEN:
        raise _undrawn("a stroke that is stretched", "convert it to a path, or undo the stretching")
    return VectorShape(
        path=path,
        fill=context.color("fill"),
        stroke=stroke if width else "",
        width=width,
    )


def _area(transform: Transform) -> float:
    """The area of what was a unit square; negative where it is mirrored."""
    a, b, c, d, _, _ = transform
    return float(a * d - b * c)


def _unevenness(transform: Transform) -> float:
    """The difference between its largest and its smallest scale, as a share of their mean."""
    a, b, c, d, _, _ = transform
    # Their sum and difference, from the singular values of a matrix of two rows.
    both, apart = math.hypot(a + d, b - c), math.hypot(a - d, b + c)
    return min(both, apart) / math.sqrt(abs(_area(transform)))


def _lines(element: Element, context: _Context, at: Point) -> Iterator[VectorShape]:
    """Lines of a text, or of a line of one, that begins at a point unless it says where."""
    x, y = (length(n, element.get(n, str(v))) for n, v in zip(("x", "y"), at, strict=True))
    for name in filter(element.attrib.__contains__, _MOVED):
        raise _undrawn(name, "remove it, or convert the text to a path")
    kept = _spaces_kept(context)
    written = _written(element.text or "", kept)
    if written:
        yield _line(written, (x, y), context)
    for line in element:
        if _kind(line) != "tspan":
            raise _undrawn(f"<{_kind(line)}> in a text", "remove it")
        if _written(line.tail or "", kept) or (kept and line.tail):
            raise _undrawn("text after a <tspan>", "give it a <tspan> of its own, with x and y")
        if written and not {"x", "y"} <= {*line.attrib}:
            raise _undrawn("text that goes on in a line", "give each <tspan> an x and a y")
        if "transform" in line.attrib:
            raise _undrawn("a transform of a <tspan>", "move it to the text")
        written = "".join(line.itertext())
        yield from _lines(line, context.within(line), (x, y))


def _spaces_kept(context: _Context) -> bool:
    spaces = context.properties["white-space"]
    if spaces not in _SPACES:
        raise _undrawn(f"white-space {spaces!r}", "remove it")
    return _SPACES[spaces]


def _written(text: str, kept: bool) -> str:
    """A text with its spaces as browsers draw them."""
    if not kept:
        return re.sub("[ \t\r\n]+", " ", text).strip(" ")
    return re.sub("[\t\r\n]", " ", text) if text.strip(" \t\r\n") else ""


def _line(text: str, at: Point, context: _Context) -> VectorShape:
    a, b, c, d, _, _ = context.transform
    height = context.length("font-size")
    if max(abs(b), abs(c), abs(a - d)) > 1e-6 or a <= 0:
        raise _undrawn(
            "text that is turned, mirrored or stretched", "undo it, or convert the text to a path"
        )
    if height < _SMALLEST:
        raise _undrawn(f"text of font-size {height:g}", f"at least {_SMALLEST} units of the stage")
    if context.color("stroke") and context.length("stroke-width"):
        raise _undrawn("text with a stroke", "set stroke to none")
    x, y = context.transform.transformPoint(at)
    anchor, baseline = (context.properties[name] for name in ("text-anchor", "dominant-baseline"))
    if anchor not in _TO_MIDDLE or baseline not in _ON_BASELINE:
        known = f"{', '.join(_TO_MIDDLE)} with {', '.join(_ON_BASELINE)}"
        raise _undrawn(f"text-anchor {anchor!r} with dominant-baseline {baseline!r}", known)
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


def _named(element: Element, number: int = 0) -> str:
    """A shape for a message, by its id or its place among others."""
    kind, name = _kind(element), element.get("id", "")
    if name:
        return f"{kind} {name if name.isidentifier() else quoted(name)}"
    return f"{kind} {number}" if number else kind


def _transform(text: str) -> Transform:
    """A list of transforms as one."""
    whole, place = Identity, 0
    while match := _TRANSFORM.match(text, place):
        place, name = match.end(), match[1]
        try:
            listed = numbers(match[2])
        except ValueError as error:
            raise ShapeError(f"transform {name}: {error}", code="bad-value") from None
        match name, listed:
            case "matrix", [_, _, _, _, _, _]:
                own = Transform(*listed)
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
                raise _undrawn(f"transform {quoted(match[0].strip())}", "apply it to the shape")
        whole = whole.transform(own)
    if text[place:].strip():
        raise _undrawn(f"transform {quoted(text)}", "write it as SVG does")
    return whole


def _undrawn(what: str, instead: str) -> ShapeError:
    return ShapeError(f"{what} is not drawn: {instead}", code="unsupported")
