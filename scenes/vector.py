"""Vector images: shapes on a stage, drawn in several styles; text stays upright in every view.

The stage is a square inside the image, a little smaller and shifted from seed to seed. Shapes are
in its units, a thousandth of its side, x to the right and y downward. Places, sizes and boxes are
shares of its side.
"""

from __future__ import annotations

import math
import random
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from PIL import Image, ImageChops, ImageColor, ImageFilter

from ..errors import DataError
from ..schema import Struct
from .layers import Reduced, reduced, soft_outline
from .people import Point

if TYPE_CHECKING:
    from matplotlib.transforms import Affine2D

    from .canvas import Canvas

SIZE = 384
"""Side of a drawn image, pixels."""
UNITS = 1000
"""Side of the stage in the units of shapes."""
Extent = tuple[float, float, float, float]
"""Left, top, right, bottom."""
VectorStyle = Literal["flat", "outlined", "shaded", "blueprint", "ink"]
LINE_STYLES: dict[str, tuple[str, str]] = {
    "blueprint": ("#1f4e8c", "#eaf2ff"),
    "ink": ("#fbfaf5", "#1d1d22"),
}
"""Styles of lines in one color: paper and pen."""

_OUTLINE = "#2b2b2b"
_LINE, _PEN = 6, 8
"""Widths of outlines that the drawing lacks, among colors and in one color; no line in one color is
thinner than the first."""
_PAPERS = ("#f4efe6", "#e9f0ee", "#eef0f6", "#f3ecec", "#eef2e4", "#f5f1d9", "#e6e9ee", "#f6f6f4")


class ShapeError(DataError):
    """A shape that can't be drawn."""


class VectorShape(Struct):
    """An outline or a line of text, as in SVG: in user units, without fill unless it has one."""

    path: str = ""
    """Data of an SVG path; empty for a text."""
    text: str = ""
    """Upright text; empty for an outline."""
    fill: str = ""
    """Color of the inside or the letters: a CSS name or `#rrggbb`; empty for none."""
    stroke: str = ""
    """Color of the outline; empty for none."""
    width: float = 1
    """Width of the stroke."""
    at: Point = (UNITS / 2, UNITS / 2)
    """Middle of a text."""
    height: float = 16
    """Size of the font of a text."""

    def bounds(self, *, exact: bool = True) -> Extent:
        """Left, top, right and bottom, without the stroke; unless exact, of the controls of its
        curves too, between which these lie. Raises ShapeError for a path that can't be read."""
        from .canvas import outline, text_width

        if self.text:
            (x, y), across = self.at, text_width(self.text) * self.height
            return x - across / 2, y - self.height / 2, x + across / 2, y + self.height / 2
        try:
            path = outline(self.path)
        except ValueError as error:
            raise ShapeError(str(error), code="bad-value") from None
        points = path.get_extents().get_points() if exact else np.asarray(path.vertices)
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        return left, top, right, bottom


@dataclass(frozen=True)
class PlacedPart:
    """Shapes in a box, which moves and shrinks as one."""

    name: str
    """Name of the part."""
    shapes: tuple[VectorShape, ...]
    """Its shapes as they were drawn."""
    drawn: Extent
    """Box on the stage as it was drawn."""
    center: Point
    """Center of the box on the stage."""
    scale: float = 1.0
    """How large it is, of its size as it was drawn; its strokes keep their width."""

    @property
    def size(self) -> Point:
        """Width and height of its box."""
        x0, y0, x1, y1 = self.drawn
        return (x1 - x0) * self.scale, (y1 - y0) * self.scale

    @property
    def box(self) -> Extent:
        """Its box on the stage."""
        (x, y), (w, h) = self.center, self.size
        return x - w / 2, y - h / 2, x + w / 2, y + h / 2


@dataclass(frozen=True)
class Turn:
    """How the stage as a whole is seen."""

    mirrored: bool = False
    """Left and right exchanged."""
    upside: bool = False
    """Top and bottom exchanged; with `mirrored` it is half a turn."""
    quarter: bool = False
    """Turned clockwise by a quarter, after the others: left comes on top."""

    def __call__(self, point: Point) -> Point:
        """Where a point of the stage comes to lie."""
        x, y = point
        if self.mirrored:
            x = 1 - x
        if self.upside:
            y = 1 - y
        return (1 - y, x) if self.quarter else (x, y)


@dataclass(frozen=True)
class VectorImage:
    """Everything that decides the pixels of one image."""

    parts: tuple[PlacedPart, ...]
    """Drawn in this order."""
    scene: tuple[VectorShape, ...] = ()
    """On the stage, behind everything; may reach beyond it."""
    behind: tuple[VectorShape, ...] = ()
    """On the stage, behind all parts; may reach beyond it."""
    over: tuple[VectorShape, ...] = ()
    """On the stage, before all parts."""
    ground: str = ""
    """Color of the whole image behind the stage; empty: a light one that the seed draws."""
    turn: Turn = Turn()
    """Turn of stage and shapes."""
    scene_turn: Turn = Turn()
    """Turn of the scene."""
    upright: bool = True
    """Whether parts keep their shape whatever the turn, which then moves only their places."""
    stage: Extent = (0.0, 0.0, 1.0, 1.0)
    """Where in the image the stage is, before the seed moves it."""
    style: VectorStyle = "flat"
    seed: int = 0


def draw_vector(image: VectorImage) -> Image.Image:
    """RGB image of `SIZE` x `SIZE` pixels; a function of its argument alone.

    Raises ShapeError for an unknown color or a path that can't be read.
    """
    from .canvas import Canvas

    rng = random.Random(f"vector/{image.seed}")
    scale = rng.uniform(0.84, 0.95)
    shift = rng.uniform(0.02, 0.98 - scale), rng.uniform(0.02, 0.98 - scale)
    paper = rng.choice(_PAPERS)
    stage = _Stage(image.stage, scale, shift)
    whole = PlacedPart("", (), (0.0, 0.0, 1.0, 1.0), (0.5, 0.5))
    back = Canvas(SIZE)
    scene = _Pen(back, stage, replace(image, turn=image.scene_turn))
    for shape in image.scene:
        scene.draw(shape, whole, turned=True)
    layer = Canvas(SIZE) if image.style == "shaded" else back
    things = _Pen(layer, stage, image)
    for shape in image.behind:
        things.draw(shape, whole, turned=True)
    for part in image.parts:
        for shape in part.shapes:
            things.draw(shape, part, turned=not image.upright)
    for shape in image.over:
        things.draw(shape, whole, turned=True)
    ground = Image.new("RGBA", (SIZE, SIZE), _ground(image, paper))
    ground.alpha_composite(back.image())
    drawn = ground.convert("RGB")
    if image.style != "shaded":
        return drawn
    return _shaded(drawn, reduced(layer.image(), 1), rng)


def _ground(image: VectorImage, paper: str) -> str:
    if image.style in LINE_STYLES:
        return color(LINE_STYLES[image.style][0])
    return color(image.ground or paper)


@cache
def color(name: str) -> str:
    """A color as `#rrggbb`. Raises ShapeError for an unknown one.

    >>> color("navy")
    '#000080'
    """
    with suppress(ValueError):
        levels = ImageColor.getrgb(name)
        # A transparent color has four levels; Pillow takes rgb(300,0,0), and hsv, which CSS lacks.
        if len(levels) == 3 and max(levels) < 256 and not name.lower().startswith(("hsv", "hsb")):
            return "#{:02x}{:02x}{:02x}".format(*levels)
    raise ShapeError(f"no color {name!r}: use a CSS name or #rrggbb", code="unknown-name")


def _shaded(back: Image.Image, things: Reduced | None, rng: random.Random) -> Image.Image:
    """With a shadow, light from one side, soft edges and an uneven ground."""
    aside = rng.randint(-6, 6)
    if things is not None:
        shadow, (left, top) = soft_outline(things, back.size, radius=5)
        dimmed = shadow.point([i * 2 // 5 for i in range(256)])
        back.paste((20, 20, 25), (left + aside, top + 6), dimmed)
        back.paste(things.image, things.corner, things.image)
    back = back.filter(ImageFilter.BoxBlur(0.5))
    noise = np.random.default_rng(rng.randrange(2**32)).integers(-7, 8, (24, 24, 3))
    angle = rng.uniform(0, 2 * math.pi)
    ys, xs = np.mgrid[-1:1:24j, -1:1:24j]
    light = 14 * (math.cos(angle) * xs + math.sin(angle) * ys)
    field = (128 + light[..., None] + noise).clip(0, 255).astype(np.uint8)
    spread = Image.fromarray(field).resize(back.size, Image.Resampling.BILINEAR)
    return ImageChops.add(back, spread, offset=-128)


@dataclass(frozen=True)
class _Stage:
    """Where the stage lies in the image."""

    extent: Extent
    """Share of what it would fill alone."""
    scale: float
    shift: Point

    def place(self, point: Point) -> Point:
        """Pixels of a point of the stage."""
        (x, y), (x0, y0, x1, y1), (left, top) = point, self.extent, self.shift
        return (
            (left + (x0 + x * (x1 - x0)) * self.scale) * SIZE,
            (top + (y0 + y * (y1 - y0)) * self.scale) * SIZE,
        )

    @property
    def unit(self) -> float:
        """Pixels of its shorter side."""
        x0, y0, x1, y1 = self.extent
        return self.scale * SIZE * min(x1 - x0, y1 - y0)


class _Pen:
    """Draws shapes of a box on one layer."""

    def __init__(self, layer: Canvas, stage: _Stage, image: VectorImage) -> None:
        self._layer = layer
        self._stage = stage
        self._turn = image.turn
        self._style = image.style

    def draw(self, shape: VectorShape, box: PlacedPart, turned: bool) -> None:
        """Draws a shape of a part; unless `turned`, only the place of the part turns."""
        from .canvas import outline

        if shape.text:
            self._text(shape, box, turned)
            return
        try:
            path = outline(shape.path)
        except ValueError as error:
            raise ShapeError(str(error), code="bad-value") from None
        fill, stroke, width = self._colors(shape)
        pixels = max(0.5, width / UNITS * self._stage.unit)
        self._layer.draw(path, self._to_pixels(box, turned), fill, stroke, pixels)

    def _at(self, point: Point, box: PlacedPart, turned: bool) -> Point:
        """Pixels of a point of a shape."""
        x0, y0, x1, y1 = box.drawn
        across = (point[0] / UNITS - (x0 + x1) / 2) * box.scale
        down = (point[1] / UNITS - (y0 + y1) / 2) * box.scale
        x, y = box.center if turned else self._turn(box.center)
        on_stage = x + across, y + down
        return self._stage.place(self._turn(on_stage) if turned else on_stage)

    def _to_pixels(self, box: PlacedPart, turned: bool) -> Affine2D:
        """The map of a part's shapes to pixels, from where it takes three corners."""
        from matplotlib.transforms import Affine2D

        x, y = self._at((0, 0), box, turned)
        right, below = self._at((UNITS, 0), box, turned), self._at((0, UNITS), box, turned)
        across = (right[0] - x) / UNITS, (right[1] - y) / UNITS
        down = (below[0] - x) / UNITS, (below[1] - y) / UNITS
        return Affine2D.from_values(*across, *down, x, y)

    def _colors(self, shape: VectorShape) -> tuple[str, str, float]:
        """Fill, stroke and width of the stroke; an empty color for none."""
        if self._style in LINE_STYLES:
            paper, ink = map(color, LINE_STYLES[self._style])
            width = max(shape.width, _LINE) if shape.stroke else _PEN
            return (paper if shape.fill else ""), ink, width
        fill = color(shape.fill) if shape.fill else ""
        if not shape.stroke and self._style == "outlined":
            return fill, color(_OUTLINE), _LINE
        return fill, color(shape.stroke) if shape.stroke else "", shape.width

    def _text(self, shape: VectorShape, box: PlacedPart, turned: bool) -> None:
        from matplotlib.transforms import Affine2D

        from .canvas import letters

        ink = LINE_STYLES[self._style][1] if self._style in LINE_STYLES else shape.fill
        height = max(3, shape.height / UNITS * box.scale * self._stage.unit)
        to_pixels = Affine2D().scale(height).translate(*self._at(shape.at, box, turned))
        self._layer.draw(letters(shape.text), to_pixels, color(ink))
