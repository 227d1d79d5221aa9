"""Marks drawn on or around a figure that show what it does or how it is.

``effects.json`` draws most of them: for each effect a list of marks. The few that a list of shapes
can't say are functions here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, TypedDict

from PIL import Image, ImageDraw

from .sprites import read_json

Edges = tuple[int, int, int, int]
"""Left, top, right and lower edge of the figure, pixels."""

Effect = Callable[[ImageDraw.ImageDraw, Edges, int], None]
"""Draws on a transparent layer around the box; the last argument is 1 or -1, where it points."""


class _Mark(TypedDict, total=False):
    """Shapes that are drawn alike at one or more places."""

    draw: list[list[Any]]
    """Shapes: a method of `ImageDraw`, its points, and its other arguments.

    A point is [dx, dy], from the place in units of its size; or [x, y, dx, dy], at shares of the
    box and then in pixels.
    """
    at: list[list[float]]
    """Places [x, y, size, dx, dy]: shares of the box, pixels, then a move in pixels.

    What is left out is 1, 0, 0.

    Without places, all points are shares of the box.
    """
    relative: bool
    """Whether the size is a share of the shorter side of the box."""
    least_y: float
    """Pixels from the top of the image; places above it move down to it."""
    mirror: str
    """Coordinates that mirror with the figure: `toward` for all, `place` for the places alone.

    `both` draws it on both sides. The marks are those of a figure that points to the right.
    """


def _at(box: Edges, x: float, y: float, side: int = 1) -> tuple[float, float]:
    """The point at the shares `x`, from the other edge where `side` is -1, and `y` of the box."""
    x = x if side > 0 else round(1 - x, 3)
    return box[0] + x * (box[2] - box[0]), box[1] + y * (box[3] - box[1])


def _draw_marks(marks: list[_Mark], draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for mark in marks:
        mirror = mark.get("mirror", "")
        sides = {"both": [-1, 1], "": [1]}.get(mirror, [toward])
        unit = min(box[2] - box[0], box[3] - box[1]) if mark.get("relative") else 1
        for side, place in product(sides, mark.get("at", [[0.0, 0.0]])):
            x, y, size, dx, dy = place + [1, 0, 0][len(place) - 2 :]
            left, top = _at(box, x, y, side)
            anchor = left + side * dx, max(top + dy, mark.get("least_y", -math.inf))
            turned = 1 if mirror == "place" else side
            for shape in mark["draw"]:
                _draw_shape(draw, box, shape=shape, anchor=anchor, size=size * unit, side=turned)


def _draw_shape(
    draw: ImageDraw.ImageDraw,
    box: Edges,
    shape: list[Any],
    anchor: tuple[float, float],
    size: float,
    side: int,
) -> None:
    method, points, *style = shape
    xy: list[float] = []
    for *shares, dx, dy in points:
        x, y = _at(box, shares[0], shares[1], side) if shares else anchor
        scale = 1 if shares else size
        xy += [x + side * dx * scale, y + dy * scale]
    if side < 0 and method not in ("line", "polygon", "circle"):
        xy[0], xy[2] = xy[2], xy[0]
        if method in ("arc", "pieslice"):
            style[:2] = 180 - style[1], 180 - style[0]
    getattr(draw, method)(xy, *style)


def _arcs(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Two arrows round the figure."""
    grown = (box[0] - 14, box[1] - 14, box[2] + 14, box[3] + 14)
    for start in (300, 120):
        draw.arc(grown, start, start + 100, "#d0562f", 6)
        angle = math.radians(start + 100)
        x = (grown[0] + grown[2]) / 2 + (grown[2] - grown[0]) / 2 * math.cos(angle)
        y = (grown[1] + grown[3]) / 2 + (grown[3] - grown[1]) / 2 * math.sin(angle)
        draw.regular_polygon((round(x), round(y), 12), 3, round(-(start + 190)), "#d0562f")


def _rays(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Flashing light: rays all round."""
    cx, cy = _at(box, 0.5, 0.5)
    rx, ry = (box[2] - box[0]) / 2 + 8, (box[3] - box[1]) / 2 + 8
    for degrees in range(0, 360, 30):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        line = (cx + rx * c, cy + ry * s, cx + (rx + 24) * c, cy + (ry + 24) * s)
        draw.line(line, "#f29d05", 6)


def _flash(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A camera flash towards the other."""
    x, y = (box[2] + 10 if toward > 0 else box[0] - 10), _at(box, 0, 0.3)[1]
    for degrees in range(0, 360, 45):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        draw.line((x + 5 * c, y + 5 * s, x + 24 * c, y + 24 * s), "#ffb300", 6)
    draw.circle((x, y), 9, "#fff8e1")


def _flames(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    width = box[2] - box[0]
    for color, share in (("#e8480f", 1.0), ("#ff9d1c", 0.66), ("#ffe14d", 0.36)):
        for x, h in ((0.15, 0.45), (0.38, 0.7), (0.62, 0.6), (0.85, 0.42)):
            cx, base = _at(box, x, 0.62)
            height, half = h * share * (box[3] - box[1]), 0.15 * share * width
            rising = [(cx - half, base), (cx - half / 3, base - height * 0.6), (cx, base - height)]
            falling = [(cx + half / 2, base - height * 0.5), (cx + half, base)]
            draw.polygon(rising + falling, color)
            draw.pieslice((cx - half, base - half, cx + half, base + half), 0, 180, color)


def _stickers(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    size = min(box[2] - box[0], box[3] - box[1])
    places = ((0.3, 0.3), (0.55, 0.42), (0.4, 0.62), (0.7, 0.66), (0.52, 0.2), (0.25, 0.8))
    colors = ("#e4572e", "#4c9f70", "#f3a712", "#669bbc", "#e4572e", "#4c9f70")
    for (x, y), color in zip(places, colors, strict=True):
        draw.circle(_at(box, x, y), 0.1 * size + 3, "#ffffff")
        draw.circle(_at(box, x, y), 0.1 * size, color)


def _strap(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Two bands round it: closed, folded, locked."""
    for y in (0.35, 0.65):
        draw.rectangle((*_at(box, 0.0, y - 0.035), *_at(box, 1.0, y + 0.035)), "#2a2f35")
    cx, cy = _at(box, 0.5, 0.5)
    draw.arc((cx - 11, cy - 24, cx + 11, cy), 180, 360, "#c9a227", 5)
    draw.rectangle((cx - 15, cy - 12, cx + 15, cy + 14), "#f2c230", "#6b5208", 2)


def _milk(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.ellipse((*_at(box, 0.18, -0.04), *_at(box, 0.82, 0.24)), "#ffffff", "#c7ced4", 3)
    for x in (0.2, 0.8):
        draw.rounded_rectangle((*_at(box, x - 0.05, 0.1), *_at(box, x + 0.05, 0.48)), 6, "#ffffff")


def _water(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """The figure is in water up to the middle."""
    left, top = box[0] - 34, _at(box, 0, 0.58)[1]
    right, lower = box[2] + 34, box[3] + 12
    draw.rounded_rectangle((left, top, right, lower), 14, (58, 150, 214, 215))
    for x in range(int(left) + 6, int(right) - 20, 26):
        draw.arc((x, top - 9, x + 26, top + 9), 180, 360, "#e9f7ff", 4)


def _slab(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A flat rock, and the sun."""
    draw.ellipse((box[0] - 30, box[3] - 16, box[2] + 30, box[3] + 20), "#8b9096", "#5f6469", 3)
    x = box[2] + 12 if box[2] < 440 else box[0] - 12
    draw.circle((x, max(box[1] - 24, 26)), 20, "#ffcf33")


def _runway(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.rectangle((box[0] - 40, box[3] - 14, box[2] + 40, box[3] + 14), "#4a4f55")
    for x in range(box[0] - 30, box[2] + 20, 40):
        draw.rectangle((x, box[3] - 2, x + 22, box[3] + 3), "#ffffff")


def _no_hands(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.circle(_at(box, 0.5, 0.43), 0.2 * (box[2] - box[0]), "#fdf6e3")


def _noon(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Both hands up."""
    _no_hands(draw, box, toward)
    x, y = _at(box, 0.5, 0.43)
    draw.line((x, y, x, y - 34), "#111111", 8)


EFFECTS: dict[str, Effect] = {
    **{name: partial(_draw_marks, marks) for name, marks in read_json("effects.json").items()},
    "arcs": _arcs,
    "rays": _rays,
    "flash": _flash,
    "flames": _flames,
    "stickers": _stickers,
    "strap": _strap,
    "milk": _milk,
    "water": _water,
    "slab": _slab,
    "runway": _runway,
    "no hands": _no_hands,
    "noon": _noon,
}
"""Every effect by name."""

CLIPPED = frozenset(("cracks", "dirt", "wear", "stain", "rust", "stickers"))
"""Effects that show on the figure only."""


def draw_effect(
    canvas: Image.Image, name: str, box: Edges, toward: int, figure: Image.Image
) -> None:
    """Draw one effect of `EFFECTS` around `box`; `toward` is 1 or -1, `figure` the RGBA figure."""
    layer = Image.new("RGBA", canvas.size)
    EFFECTS[name](ImageDraw.Draw(layer), box, toward)
    if name in CLIPPED:
        mask = Image.new("L", canvas.size)
        mask.paste(figure.getchannel("A"), box[:2])
        layer.putalpha(Image.composite(layer.getchannel("A"), Image.new("L", canvas.size), mask))
    canvas.alpha_composite(layer)
