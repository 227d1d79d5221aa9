"""A canvas on which Matplotlib's renderer Agg draws outlines: of shapes, of letters.

Outlines are `matplotlib.path.Path`: points in the units of whoever draws them, y downward, with
straight lines and Bezier curves.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from fontTools.misc.transform import Transform
from fontTools.pens.recordingPen import RecordingPen
from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.svgLib.path import parse_path
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
_NO_PATH = re.compile(r"[^MmZzLlHhVvCcSsQqTtAaEe\d.+\-\s,]")
"""What data of an SVG path can't hold; fontTools passes over it."""
_UNREADABLE = ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError
"""What fontTools raises for data that ends too early, or does not begin with M."""


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


@lru_cache(maxsize=4096)
def outline(data: str) -> Path:
    """The outline of the data of an SVG path. Raises ValueError for what can't be read."""
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
        raise ValueError(f"path {data!r}: it draws nothing")
    return Path(points, codes)


def moved(data: str, transform: Transform) -> str:
    """Data of an SVG path whose points are transformed. Raises ValueError as `outline`."""
    pen = SVGPathPen(None)
    _recorded(data).replay(TransformPen(pen, transform))
    return str(pen.getCommands())


def _recorded(data: str) -> RecordingPen:
    """What the data of an SVG path draws. Raises ValueError for what can't be read."""
    if odd := _NO_PATH.search(data):
        raise ValueError(f"path {data!r}: {odd[0]!r} is not a command or a number")
    pen = RecordingPen()
    try:
        parse_path(data, pen)
    except _UNREADABLE as error:
        raise ValueError(f"path {data!r}: {type(error).__name__}: {error}") from None
    return pen


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
