"""Vector images: shapes in a unit box, drawn in several styles; text stays upright in every view.

Coordinates are shares of a box, x to the right and y downward. A part has a box of its own on the
stage; the stage is a square inside the image, a little smaller and shifted from seed to seed.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from PIL import Image, ImageChops, ImageColor, ImageDraw, ImageFilter, ImageFont, ImageOps

from ..errors import DataError
from ..schema import Struct
from .layers import Reduced, reduced, soft_outline
from .people import Point
from .sprites import sprite

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

_SUPER = 2
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
    """Corners of a closed polygon."""
    line: tuple[Point, ...] = ()
    """Points joined by straight lines; an outline, never filled."""
    curve: tuple[Point, ...] = ()
    """Points joined by a smooth curve; closed where it has a fill."""
    path: str = ""
    """An SVG path of M, L, H, V, C, Q and Z, absolute."""
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
        return self.all([point])[0]

    def all(self, points: list[Point]) -> list[Point]:
        """Where each point of the stage comes to lie."""
        if self.mirrored:
            points = [(1 - x, y) for x, y in points]
        if self.upside:
            points = [(x, 1 - y) for x, y in points]
        return [(1 - y, x) for x, y in points] if self.quarter else points


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
    side = SIZE * _SUPER
    rng = random.Random(f"vector/{image.seed}")
    scale = rng.uniform(0.84, 0.95)
    shift = rng.uniform(0.02, 0.98 - scale), rng.uniform(0.02, 0.98 - scale)
    paper = rng.choice(_PAPERS)
    back = Image.new("RGB", (side, side), _ground(image, paper))
    x0, y0, x1, y1 = image.stage
    width, height, left, top = x1 - x0, y1 - y0, *shift

    def place(points: list[Point]) -> list[Point]:
        return [
            ((left + (x0 + x * width) * scale) * side, (top + (y0 + y * height) * scale) * side)
            for x, y in points
        ]

    unit = scale * side * min(width, height)
    stage_box = PlacedPart("", (), (0.5, 0.5), (1.0, 1.0))
    scene = _Pen(back, place, unit, replace(image, turn=image.scene_turn))
    for shape in image.scene:
        scene.draw(shape, stage_box, turned=True)
    pen = _Pen(back, place, unit, image)
    if image.style != "shaded":
        _draw_things(pen, image, stage_box)
        return back.reduce(_SUPER)
    things = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    _draw_things(_Pen(things, place, unit, image), image, stage_box)
    return _shaded(back.reduce(_SUPER), reduced(things, _SUPER), rng)


def _draw_things(pen: _Pen, image: VectorImage, stage_box: PlacedPart) -> None:
    for shape in image.behind:
        pen.draw(shape, stage_box, turned=True)
    for part in image.parts:
        for shape in part.shapes:
            pen.draw(shape, part, turned=not image.upright)
    for shape in image.over:
        pen.draw(shape, stage_box, turned=True)


def _ground(image: VectorImage, paper: str) -> tuple[int, ...]:
    if image.style in LINE_STYLES:
        return color(LINE_STYLES[image.style][0])
    return color(image.ground or paper)


def color(name: str) -> tuple[int, ...]:
    """RGB of a color. Raises ShapeError for an unknown one.

    >>> color("navy")
    (0, 0, 128)
    """
    try:
        return ImageColor.getrgb(name)[:3]
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


class _Pen:
    """Draws shapes of a box on one layer."""

    def __init__(
        self,
        layer: Image.Image,
        place: Callable[[list[Point]], list[Point]],
        unit: float,
        image: VectorImage,
    ) -> None:
        self._layer = layer
        self._draw = ImageDraw.Draw(layer)
        self._place = place
        self._unit = unit
        self._turn = image.turn
        self._style = image.style

    def draw(self, shape: VectorShape, box: PlacedPart, turned: bool) -> None:
        """Draws a shape of a part; unless `turned`, only the place of the part turns."""
        kind = shape.kind
        if kind in ("text", "sprite"):
            [center] = self._at([shape.at], box, turned)
            w, h = box.size
            if turned and self._turn.quarter:
                w, h = h, w
            if kind == "text":
                self._text(shape, box, center, width=w * shape.size[0], height=h)
            else:
                self._sprite(shape, center, size=(w, h), turned=turned)
            return
        points = self._at(outline(shape), box, turned)
        fill, stroke, width = self._colors(shape)
        if fill is not None:
            self._draw.polygon(points, fill)
        if stroke is not None:
            closed = kind in ("rect", "ellipse", "polygon") or bool(shape.fill)
            pixels = max(1, round(width * self._unit))
            self._draw.line([*points, *points[:2]] if closed else points, stroke, pixels, "curve")

    def _at(self, points: Sequence[Point], box: PlacedPart, turned: bool) -> list[Point]:
        """Pixels of points of a box. A shape has many: they take few calls."""
        center, (w, h) = box.center, box.size
        x, y = center if turned else self._turn(center)
        on_stage = [(x + (across - 0.5) * w, y + (down - 0.5) * h) for across, down in points]
        return self._place(self._turn.all(on_stage) if turned else on_stage)

    def _colors(
        self, shape: VectorShape
    ) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None, float]:
        bare = not shape.fill and not shape.stroke
        if self._style in LINE_STYLES:
            paper, ink = map(color, LINE_STYLES[self._style])
            return (paper if shape.fill else None), ink, max(shape.width, 0.006)
        fill = color(shape.fill) if shape.fill else None
        stroke = color(shape.stroke) if shape.stroke else (color("black") if bare else None)
        if stroke is None and self._style == "outlined":
            return fill, color(_OUTLINE), 0.006
        return fill, stroke, shape.width

    def _text(
        self, shape: VectorShape, box: PlacedPart, center: Point, *, width: float, height: float
    ) -> None:
        text = shape.text.replace("{part}", box.label or box.name)
        pixels = max(6, round(shape.height * height * self._unit))
        font = _font(pixels)
        room = width * self._unit
        if (length := font.getlength(text)) > room:
            font = _font(max(6, int(pixels * room / length)))
        if self._style in LINE_STYLES:
            ink = color(LINE_STYLES[self._style][1])
        else:
            ink = color(shape.fill or "black")
        self._draw.text(center, text, ink, font, "mm")

    def _sprite(
        self, shape: VectorShape, center: Point, *, size: tuple[float, float], turned: bool
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
        room = (size[0] * shape.size[0] * self._unit, size[1] * shape.size[1] * self._unit)
        factor = min(room[0] / art.width, room[1] / art.height)
        art = art.resize(
            (max(1, round(art.width * factor)), max(1, round(art.height * factor))),
            Image.Resampling.LANCZOS,
        )
        if self._style in LINE_STYLES:
            paper, ink = LINE_STYLES[self._style]
            gray = ImageOps.colorize(art.convert("L"), ink, paper)
            gray.putalpha(art.getchannel("A"))
            art = gray
        corner = round(center[0] - art.width / 2), round(center[1] - art.height / 2)
        self._layer.paste(art, corner, art)


@lru_cache(maxsize=256)
def _font(pixels: int) -> ImageFont.FreeTypeFont:
    # Ships inside Pillow: the same letters on every machine.
    font = ImageFont.load_default(pixels)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def can_write(text: str) -> bool:
    """Whether the font has every character of a text.

    >>> can_write("A1°"), can_write("Ω")
    (True, False)
    """
    return all(c == " " or _has_glyph(c) for c in text)


@lru_cache(maxsize=4096)
def _has_glyph(character: str) -> bool:
    font = _font(20)
    return bytes(font.getmask(character)) != bytes(font.getmask("\U000f1234"))


def outline(shape: VectorShape) -> list[Point]:
    """Points of a shape's outline in its box. Raises ShapeError for a text, a sprite or a path that
    can't be read."""
    match shape.kind:
        case "rect":
            assert shape.rect
            x0, y0, x1, y1 = shape.rect
            return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        case "ellipse" | "arc":
            box = shape.ellipse or shape.arc
            assert box
            start, end = shape.degrees if shape.arc else (0.0, 354.0)
            return _round(box, start, end)
        case "polygon":
            return list(shape.polygon)
        case "line":
            return list(shape.line)
        case "curve":
            return _smooth(shape.curve, closed=bool(shape.fill))
        case "path":
            return list(_path_points(shape.path))
    raise ShapeError(f"a {shape.kind} has no outline", code="unsupported")


def _round(box: Extent, start: float, end: float) -> list[Point]:
    cx, cy, rx, ry = *_center(box), (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    return [(cx + rx * cosine, cy + ry * sine) for cosine, sine in _arc(start, end)]


@lru_cache(maxsize=256)
def _arc(start: float, end: float) -> tuple[Point, ...]:
    """Points of the unit circle between two angles, degrees."""
    steps = max(2, math.ceil(abs(end - start) / 6))
    angles = [math.radians(start + (end - start) * step / steps) for step in range(steps + 1)]
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


def _center(box: Extent) -> Point:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _smooth(points: Sequence[Point], closed: bool) -> list[Point]:
    """A Catmull-Rom curve through the points."""
    if len(points) < 3:
        return list(points)
    ring = [points[-1], *points, *points[:2]] if closed else [points[0], *points, points[-1]]
    smoothed: list[Point] = []
    for a, b, c, d in zip(ring, ring[1:], ring[2:], ring[3:], strict=False):
        for step in range(8):
            t = step / 8
            smoothed.append(
                (_spline(a[0], b[0], c[0], d[0], t), _spline(a[1], b[1], c[1], d[1], t))
            )
    return smoothed if closed else [*smoothed, points[-1]]


def _spline(*values: float) -> float:
    a, b, c, d, t = values
    return (
        2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3
    ) / 2


_ARGUMENTS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "Z": 0}


@lru_cache(maxsize=4096)
def _path_points(text: str) -> tuple[Point, ...]:
    """Cached, because each layout and style of a drawing has the paths of the others."""
    return tuple(_path(text))


def _path(text: str) -> Iterator[Point]:
    words = re.findall(r"[A-Za-z]|-?\d*\.?\d+", text)
    here = start = (0.0, 0.0)
    place, command = 0, ""
    while place < len(words):
        if words[place].isalpha():
            command = words[place]
            place += 1
        count = _ARGUMENTS.get(command)
        try:
            numbers = list(map(float, words[place : place + (count or 0)]))
        except ValueError:
            numbers = []
        if count is None or len(numbers) != count:
            raise ShapeError(
                f"path {text!r}: {command!r} is not a command with its numbers", code="bad-value"
            )
        place += count
        if command == "Z":
            yield start
            here = start
            command = ""
            continue
        corners = list(zip(numbers[::2], numbers[1::2], strict=False))
        if command == "H":
            corners = [(numbers[0], here[1])]
        elif command == "V":
            corners = [(here[0], numbers[0])]
        if command == "M":
            start, command = corners[0], "L"
            here = start
            yield here
        else:
            yield from _bezier([here, *corners])
            here = corners[-1]


def _bezier(points: Sequence[Point]) -> Iterator[Point]:
    steps = 1 if len(points) == 2 else 24
    for step in range(1, steps + 1):
        t, corners = step / steps, list(points)
        while len(corners) > 1:
            corners = [
                (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in pairwise(corners)
            ]
        yield corners[0]
