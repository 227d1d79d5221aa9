"""Vector images: shapes in a unit box, drawn in several styles; text stays upright in every view.

Coordinates are shares of a box, x to the right and y downward. A part has a box of its own on the
stage; the stage is a square inside the image, a little smaller and shifted from seed to seed.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from PIL import Image, ImageChops, ImageColor, ImageFilter, ImageOps

from ..errors import DataError
from ..schema import Struct
from .layers import Reduced, reduced, soft_outline
from .people import Point
from .sprites import sprite

if TYPE_CHECKING:
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    from .canvas import Canvas

SIZE = 384
"""Side of a drawn image, pixels."""
Extent = tuple[float, float, float, float]
"""Left, top, right, bottom."""
VectorStyle = Literal["flat", "outlined", "shaded", "blueprint", "ink"]
LINE_STYLES: dict[str, tuple[str, str]] = {
    "blueprint": ("#1f4e8c", "#eaf2ff"),
    "ink": ("#fbfaf5", "#1d1d22"),
}
"""Styles of lines in one color: paper and pen."""
KINDS = ("rect", "ellipse", "polygon", "line", "curve", "path", "arc", "text", "sprite")
"""Kinds of shapes; each shape is of exactly one."""

_OUTLINE = "#2b2b2b"
_PAPERS = ("#f4efe6", "#e9f0ee", "#eef0f6", "#f3ecec", "#eef2e4", "#f5f1d9", "#e6e9ee", "#f6f6f4")


class ShapeError(DataError):
    """A shape that can't be drawn."""


class VectorShape(Struct):
    """One shape: exactly one of the first nine fields is given."""

    rect: Extent | None = None
    """A rectangle."""
    ellipse: Extent | None = None
    """The ellipse in a box."""
    polygon: tuple[Point, ...] = ()
    """Corners of a closed polygon; for holes, see `path`."""
    line: tuple[Point, ...] = ()
    """Points joined by straight lines; an outline, never filled."""
    curve: tuple[Point, ...] = ()
    """Points joined by a smooth curve; closed where it has a fill."""
    path: str = ""
    """Data of an SVG path. As in SVG, what runs round a point in both directions is a hole."""
    arc: Extent | None = None
    """Part of the outline of an ellipse, by `degrees`."""
    text: str = ""
    """Upright text; `{part}` stands for the label of the part."""
    sprite: str = ""
    """Name in the sprite atlas, e.g. `horse`, which fills `at` and `size`."""
    fill: str = ""
    """Color of the inside: a CSS name or `#rrggbb`; empty for none."""
    stroke: str = ""
    """Color of the outline; empty for none, black for lines and arcs."""
    width: float = 0.008
    """Width of the outline, share of the stage."""
    degrees: tuple[float, float] = (0.0, 360.0)
    """Start and end of an arc, clockwise from the right."""
    at: Point = (0.5, 0.5)
    """Center of a text or sprite."""
    height: float = 0.6
    """Height of a text, share of its box."""
    size: Point = (1.0, 1.0)
    """Width and height in which a sprite fits, or that a text must not exceed in width."""

    @property
    def kind(self) -> str:
        """Returns its kind, of `KINDS`. Raises ShapeError unless it is exactly one."""
        kinds = [name for name in KINDS if getattr(self, name)]
        if len(kinds) != 1:
            raise ShapeError(
                f"a shape is one of {', '.join(KINDS)}, not {kinds or 'nothing'}",
                code="unknown-name",
            )
        return kinds[0]


@dataclass(frozen=True)
class PlacedPart:
    """Shapes in a box on the stage."""

    name: str
    """Name of the part."""
    shapes: tuple[VectorShape, ...]
    center: Point
    """Center of its box on the stage."""
    size: Point
    """Width and height of its box."""
    label: str = ""
    """Text in place of `{part}`; the name of the part if empty."""

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

    Raises ShapeError for an unknown color, sprite or path.
    """
    from .canvas import Canvas

    rng = random.Random(f"vector/{image.seed}")
    scale = rng.uniform(0.84, 0.95)
    shift = rng.uniform(0.02, 0.98 - scale), rng.uniform(0.02, 0.98 - scale)
    paper = rng.choice(_PAPERS)
    stage = _Stage(image.stage, scale, shift)
    whole = PlacedPart("", (), (0.5, 0.5), (1.0, 1.0))
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


def color(name: str) -> str:
    """A color as `#rrggbb`. Raises ShapeError for an unknown one.

    >>> color("navy")
    '#000080'
    """
    try:
        return "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(name)[:3])
    except ValueError:
        raise ShapeError(
            f"no color {name!r}: use a CSS name or #rrggbb", code="unknown-name"
        ) from None


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
        kind = shape.kind
        if kind not in ("text", "sprite"):
            fill, stroke, width = self._colors(shape)
            pixels = max(0.5, width * self._stage.unit)
            self._layer.draw(outline(shape), self._to_pixels(box, turned), fill, stroke, pixels)
            return
        center = self._at(shape.at, box, turned)
        w, h = box.size
        if turned and self._turn.quarter:
            w, h = h, w
        room = w * self._stage.unit * shape.size[0], h * self._stage.unit
        if kind == "text":
            self._text(shape, box, center, room)
        else:
            self._sprite(shape, center, (room[0], room[1] * shape.size[1]), turned)

    def _at(self, point: Point, box: PlacedPart, turned: bool) -> Point:
        """Pixels of a point of a box."""
        (w, h), (across, down) = box.size, point
        x, y = box.center if turned else self._turn(box.center)
        on_stage = x + (across - 0.5) * w, y + (down - 0.5) * h
        return self._stage.place(self._turn(on_stage) if turned else on_stage)

    def _to_pixels(self, box: PlacedPart, turned: bool) -> Affine2D:
        """The map of a box to pixels, from where it takes three corners."""
        from matplotlib.transforms import Affine2D

        x, y = self._at((0, 0), box, turned)
        right, below = self._at((1, 0), box, turned), self._at((0, 1), box, turned)
        across, down = (right[0] - x, right[1] - y), (below[0] - x, below[1] - y)
        return Affine2D.from_values(*across, *down, x, y)

    def _colors(self, shape: VectorShape) -> tuple[str, str, float]:
        """Fill, stroke and width of the stroke; an empty color for none."""
        bare = not shape.fill and not shape.stroke
        if self._style in LINE_STYLES:
            paper, ink = map(color, LINE_STYLES[self._style])
            return (paper if shape.fill else ""), ink, max(shape.width, 0.006)
        fill = color(shape.fill) if shape.fill else ""
        stroke = color(shape.stroke) if shape.stroke else (color("black") if bare else "")
        if not stroke and self._style == "outlined":
            return fill, color(_OUTLINE), 0.006
        return fill, stroke, shape.width

    def _text(
        self, shape: VectorShape, box: PlacedPart, center: Point, room: tuple[float, float]
    ) -> None:
        from matplotlib.transforms import Affine2D

        from .canvas import letters, text_width

        text = shape.text.replace("{part}", box.label or box.name)
        if not text:
            return  # the stage is no part, and has no name
        ink = LINE_STYLES[self._style][1] if self._style in LINE_STYLES else shape.fill
        height = min(max(3, shape.height * room[1]), room[0] / text_width(text))
        self._layer.draw(
            letters(text), Affine2D().scale(height).translate(*center), color(ink or "black")
        )

    def _sprite(
        self, shape: VectorShape, center: Point, room: tuple[float, float], turned: bool
    ) -> None:
        try:
            art = sprite(shape.sprite)
        except KeyError:
            raise ShapeError(
                f"no sprite {shape.sprite!r} in the atlas", code="unknown-name"
            ) from None
        if turned and self._turn.mirrored:
            art = ImageOps.mirror(art)
        if turned and self._turn.upside:
            art = ImageOps.flip(art)
        if turned and self._turn.quarter:
            art = art.transpose(Image.Transpose.ROTATE_270)
        factor = min(room[0] / art.width, room[1] / art.height)
        size = max(1, round(art.width * factor)), max(1, round(art.height * factor))
        art = art.resize(size, Image.Resampling.LANCZOS)
        if self._style in LINE_STYLES:
            paper, ink = LINE_STYLES[self._style]
            gray = ImageOps.colorize(art.convert("L"), ink, paper)
            gray.putalpha(art.getchannel("A"))
            art = gray
        self._layer.paste(art, center[0] - size[0] / 2, center[1] - size[1] / 2)


def outline(shape: VectorShape) -> Path:
    """A shape's outline in its box, closed if it is filled or no line. Raises ShapeError for a
    text, a sprite or a path that can't be read."""
    from . import canvas

    filled = bool(shape.fill)
    match shape.kind:
        case "rect":
            assert shape.rect
            x0, y0, x1, y1 = shape.rect
            return canvas.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], closed=True)
        case "ellipse" | "arc":
            box, whole = shape.ellipse or shape.arc, bool(shape.ellipse)
            assert box
            center = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            radii = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
            degrees = (0.0, 360.0) if whole else shape.degrees
            return canvas.arc(center, radii, degrees, closed=whole or filled)
        case "polygon":
            return canvas.polygon(shape.polygon, closed=True)
        case "line":
            return canvas.polygon(shape.line, closed=filled)
        case "curve":
            return canvas.curve(shape.curve, closed=filled)
        case "path":
            try:
                return canvas.svg_path(shape.path, closed=filled)
            except ValueError as error:
                raise ShapeError(f"path {shape.path!r}: {error}", code="bad-value") from None
    raise ShapeError(f"a {shape.kind} has no outline", code="unsupported")
