"""A canvas on which Matplotlib's renderer Agg draws outlines: of shapes, of letters.

Outlines are `matplotlib.path.Path`: points in the units of whoever draws them, y downward, with
straight lines and Bezier curves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from fontTools.pens.recordingPen import RecordingPen
from fontTools.svgLib.path import parse_path
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray
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


_NO_PATH = re.compile(r"[^MmZzLlHhVvCcSsQqTtAaEe\d.+\-\s,]")
"""What data of an SVG path can't hold; fontTools passes over it."""


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

    def paste(self, image: Image.Image, left: float, top: float) -> None:
        """Lays an RGBA image over what is drawn, its upper left corner at the nearest pixel."""
        context: Any = self._renderer.new_gc()
        pixels = np.flipud(np.asarray(image.convert("RGBA")))
        bottom = self._side - round(top) - image.height
        self._renderer.draw_image(context, round(left), bottom, pixels)

    def image(self) -> Image.Image:
        """What was drawn, RGBA."""
        return Image.fromarray(np.asarray(self._renderer.buffer_rgba()))


def polygon(points: Sequence[Point], *, closed: bool) -> Path:
    """Straight lines through points."""
    codes = [Path.MOVETO, *[Path.LINETO] * (len(points) - 1)]
    return _path(points, codes, closed)


def arc(center: Point, radii: Point, degrees: tuple[float, float], *, closed: bool) -> Path:
    """A part of an ellipse between two angles, clockwise from the right."""
    start, end = degrees
    unit, codes = _arc(start, end)
    return _path(list(unit * radii + center), codes, closed)


def curve(points: Sequence[Point], *, closed: bool) -> Path:
    """A Catmull-Rom curve through points."""
    if len(points) < 3:
        return polygon(points, closed=closed)
    before, after = ([points[-1]], points[:2]) if closed else ([points[0]], points[-1:])
    ring = np.array([*before, *points, *after])
    a, b, c, d = ring[:-3], ring[1:-2], ring[2:-1], ring[3:]
    controls = np.stack([b + (c - a) / 6, c - (d - b) / 6, c], axis=1).reshape(-1, 2)
    codes = [Path.MOVETO, *[Path.CURVE4] * len(controls)]
    return _path([points[0], *controls], codes, closed)


@lru_cache(maxsize=4096)
def svg_path(text: str, *, closed: bool) -> Path:
    """The outline of the data of an SVG path. Raises ValueError for what can't be read.

    closed: whether each of its parts is, also without a Z.
    """
    if odd := _NO_PATH.search(text):
        raise ValueError(f"{odd[0]!r} is not a command or a number")
    pen = RecordingPen()
    try:
        parse_path(text, pen)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    points: list[Point] = []
    codes: list[int] = []
    for operation, some in pen.value:
        if operation in _CODES:
            points += some
            codes += [_CODES[operation]] * len(some)
        elif operation == "closePath" or closed:
            points.append(points[-1])
            codes.append(int(Path.CLOSEPOLY))
    if not points:
        raise ValueError("it draws nothing")
    return Path(points, codes)


def letters(text: str) -> Path:
    """A line of text of height 1 with its middle at (0, 0)."""
    glyphs = [_glyph(character) for character in text]
    width = text_width(text)
    font = _font()
    base = (font.ascender + font.descender) / font.units_per_EM / 2
    left, placed = -width / 2, []
    for glyph, advance in glyphs:
        placed.append(glyph.transformed(Affine2D().translate(left, base)))
        left += advance
    return Path.make_compound_path(*placed)


def text_width(text: str) -> float:
    """Width of a line of text of height 1."""
    return sum(_glyph(character)[1] for character in text)


def can_write(text: str) -> bool:
    """Whether the font has every character of a text.

    >>> can_write("A1°"), can_write("Ω")
    (True, False)
    """
    return all(character == " " or _font().get_char_index(ord(character)) for character in text)


def _path(points: Sequence[Any], codes: Sequence[Any], closed: bool) -> Path:
    if not closed:
        return Path(points, codes)
    return Path([*points, points[0]], [*codes, Path.CLOSEPOLY])


@lru_cache(maxsize=256)
def _arc(start: float, end: float) -> tuple[NDArray[np.float64], list[Any]]:
    """Points and codes of a part of the unit circle; angles grow from x to y."""
    parts = max(1, math.ceil(abs(end - start) / 45))
    angles = np.radians(np.linspace(start, end, parts + 1))
    on = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    along = np.stack([-on[:, 1], on[:, 0]], axis=1)
    reach = 4 / 3 * math.tan((angles[1] - angles[0]) / 4)
    controls = [on[:-1] + reach * along[:-1], on[1:] - reach * along[1:], on[1:]]
    points = np.concatenate([on[:1], np.stack(controls, axis=1).reshape(-1, 2)])
    return points, [Path.MOVETO, *[Path.CURVE4] * (3 * parts)]


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
    glyph = font.load_char(ord(character), LoadFlags.NO_HINTING)
    scale = 1 / font.units_per_EM
    path = Path(*font.get_path()).transformed(Affine2D().scale(scale, -scale))
    return path, glyph.linearHoriAdvance / 65536 * scale
