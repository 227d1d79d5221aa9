"""A canvas on which Matplotlib's renderer Agg draws outlines: of shapes, of letters.

Outlines are `matplotlib.path.Path`: points in the units of whoever draws them, y downward, with
straight lines and Bezier curves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from fontTools.misc.transform import Transform
from fontTools.pens.recordingPen import RecordingPen
from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.svgLib.path import parse_path
from fontTools.svgLib.path.arc import EllipticalArc
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from PIL import Image, ImageColor, ImageFont

from .people import Point

_DPI = 72
"""At so many a point, in which lines are measured, is a pixel."""
_CODES = {
    "moveTo": int(Path.MOVETO),
    "lineTo": int(Path.LINETO),
    "qCurveTo": int(Path.CURVE3),
    "curveTo": int(Path.CURVE4),
}
"""Of fontTools' operations; its quadratic curves have one control here."""
_ARGUMENTS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
"""How many numbers each command of a path takes."""
_UNREADABLE = ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError
"""What fontTools raises for data that ends too early, or does not begin with M."""
_SPACE = " \t\n\f\r"
_NUMBER = r"[+-]?(?>[0-9]*\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SEPARATOR = f"[{_SPACE}]*,?[{_SPACE}]*"
_NUMBERS = re.compile(f"{_NUMBER}(?:{_SEPARATOR}{_NUMBER})*+")
_ARC = re.compile(_SEPARATOR.join([*[f"({_NUMBER})"] * 3, *["([01])"] * 2, *[f"({_NUMBER})"] * 2]))
_LARGEST = 1e6
"""Largest number that is drawn; the stage is a thousand wide."""
_MOST_POINTS = 5000
"""Points of an outline that the renderer can always fill."""


class Canvas:
    """A transparent image of some pixels, on which things are drawn one over the other."""

    def __init__(self, side: int) -> None:
        self._side = side
        self._renderer = RendererAgg(side, side, _DPI)
        # Agg's y runs upward.
        self._flip = Affine2D([[1, 0, 0], [0, -1, side], [0, 0, 1]])

    def draw(
        self, outline: Path, to_pixels: Affine2D, fill: str = "", stroke: str = "", width: float = 0
    ) -> None:
        """Fills an outline and draws along it. fill, stroke: `#rrggbb`, empty for none; width: of
        the stroke, pixels."""
        context: Any = self._renderer.new_gc()
        context.set_snap(False)
        context.set_joinstyle("round")
        context.set_foreground(stroke or "black")
        context.set_linewidth(width if stroke else 0)
        color = tuple(part / 255 for part in ImageColor.getrgb(fill)) if fill else None
        self._renderer.draw_path(context, outline, to_pixels + self._flip, color)

    def image(self) -> Image.Image:
        """What was drawn, RGBA."""
        return Image.fromarray(np.asarray(self._renderer.buffer_rgba()))


@lru_cache(maxsize=32768)  # all of the bank: a drawing is read, checked, then drawn
def outline(data: str) -> Path:
    """The outline of the data of an SVG path. Raises ValueError for what can't be read or drawn."""
    points: list[Point] = []
    codes: list[int] = []
    for operation, some in _recorded(data).value:
        if operation in _CODES:
            points += some
            codes += [_CODES[operation]] * len(some)
        elif operation == "closePath":
            points.append(points[-1])
            codes.append(int(Path.CLOSEPOLY))
    if not points:
        raise ValueError(f"path {quoted(data)}: it draws nothing")
    if len(points) > _MOST_POINTS:
        raise ValueError(f"{len(points)} points, of at most {_MOST_POINTS}: simplify or split it")
    return Path(points, codes)


def moved(data: str, transform: Transform) -> str:
    """Data of an SVG path whose points are transformed. Raises ValueError as `outline`."""
    pen = SVGPathPen(None)
    _recorded(data).replay(TransformPen(pen, transform))
    return str(pen.getCommands())


def numbers(text: str) -> list[float]:
    """The numbers of a list, which SVG separates by a space, a comma, a sign or a point.

    Raises ValueError for anything else, and for numbers that are too large to draw.

    >>> numbers("1 2,3-4.5.6e1")
    [1.0, 2.0, 3.0, -4.5, 6.0]
    """
    listed = text.strip(_SPACE)
    if listed and not _NUMBERS.fullmatch(listed):
        raise ValueError(f"{quoted(text)} is not a number or a list of numbers")
    values = [float(number) for number in re.findall(_NUMBER, listed)]
    if large := [value for value in values if abs(value) > _LARGEST]:
        raise ValueError(f"{large[0]:g} is too large: numbers may reach {_LARGEST:,.0f}")
    return values


def quoted(text: str) -> str:
    """A text in quotes for a message of one line: shortened, with escapes for odd characters."""
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


class _Arc(EllipticalArc):  # type: ignore[misc]  # fontTools has no types
    """An arc that is a straight line where a radius is 0, as SVG has it."""

    def draw(self, pen: Any) -> None:
        if self.rx and self.ry:
            super().draw(pen)
        else:
            pen.lineTo((self.target_point.real, self.target_point.imag))


def _recorded(data: str) -> RecordingPen:
    """What the data of an SVG path draws. Raises ValueError for what can't be read."""
    pen = RecordingPen()
    try:
        parse_path(data, pen, arc_class=_Arc)
    except _UNREADABLE as error:
        raise ValueError(f"path {quoted(data)}: {type(error).__name__}: {error}") from None
    return pen


def checked_path(data: str) -> str:
    """The data of an SVG path, with its numbers apart. Raises ValueError for what is not as SVG has
    it: fontTools passes over some of it."""
    try:
        return " ".join(_commands(data))
    except ValueError as error:
        raise ValueError(f"path {quoted(data)}: {error}") from None


def _commands(data: str) -> Iterator[str]:
    """The commands of a path, each with its numbers apart.

    Raises ValueError for what is no command, and for a command with too few numbers.
    """
    before, *pieces = re.split("([A-DF-Za-df-z])", data)  # E is of numbers
    if before.strip(_SPACE) or (pieces and pieces[0] not in "Mm"):
        raise ValueError("it must begin with M or m")
    for command, arguments in zip(pieces[::2], pieces[1::2], strict=True):
        count = _ARGUMENTS.get(command.upper())
        if count is None:
            raise ValueError(f"{command!r} is not a command")
        values = _arcs(arguments) if count == 7 else numbers(arguments)
        if len(values) % count if count else values:
            raise ValueError(f"{command} has {len(values)} numbers, not {count or 'none'}")
        if count and not values:
            raise ValueError(f"{command} has no numbers")
        yield " ".join([command, *map(repr, values)])


def _arcs(text: str) -> list[float]:
    """The numbers of arcs, whose flags need no space after them."""
    values: list[float] = []
    rest = text.strip(_SPACE)
    while rest:
        if not (match := _ARC.match(rest)):
            raise ValueError(f"{quoted(rest)} is not the seven numbers of an arc")
        rx, ry, turn, large, sweep, x, y = match.groups()
        values += [*numbers(f"{rx} {ry} {turn}"), int(large), int(sweep), *numbers(f"{x} {y}")]
        rest = rest[match.end() :]
        if rest:
            rest = rest.lstrip(_SPACE).removeprefix(",").lstrip(_SPACE) or ","
    return values


def letters(text: str) -> Path:
    """A line of text of height 1 with its middle at (0, 0)."""
    left, placed = -text_width(text) / 2, []
    for glyph, advance in map(_glyph, text):
        placed.append(glyph.transformed(Affine2D().translate(left, above_baseline())))
        left += advance
    return Path.make_compound_path(*placed)


def text_width(text: str) -> float:
    """Width of a line of text of height 1."""
    return sum(_glyph(character)[1] for character in text)


def above_baseline() -> float:
    """How far the middle of a line of text of height 1 is above its baseline."""
    font = _font()
    return (font.ascender + font.descender) / font.units_per_EM / 2


def can_write(text: str) -> bool:
    """Whether the font has every character of a text.

    >>> can_write("A1°"), can_write("Ω")
    (True, False)
    """
    return all(character == " " or _font().get_char_index(ord(character)) for character in text)


@cache
def _font() -> FT2Font:
    font = ImageFont.load_default(20)  # ships inside Pillow: the same letters on every machine
    assert isinstance(font, ImageFont.FreeTypeFont)
    loaded = FT2Font(BytesIO(font.font_bytes))
    loaded.set_size(loaded.units_per_EM, _DPI)  # a pixel is a unit of the font
    return loaded


@cache
def _glyph(character: str) -> tuple[Path, float]:
    """A letter of height 1 on the line, and how far it is from there to the next."""
    font = _font()
    # Not by `load_char`, which warns of a letter that the font lacks: `can_write` says so.
    glyph = font.load_glyph(font.get_char_index(ord(character)), LoadFlags.NO_HINTING)
    scale = 1 / font.units_per_EM
    path = Path(*font.get_path()).transformed(Affine2D().scale(scale, -scale))
    return path, glyph.linearHoriAdvance / 65536 * scale
