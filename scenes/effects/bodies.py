"""Limbs, mouths, wings, and what is held in a hand or mouth."""

from __future__ import annotations

import math

from PIL import ImageDraw

from .base import COLORS, Edges, Effect, at, disc, mouth


def _wings(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Spread wings on both sides."""
    for side, x in ((-1, 0.12), (1, 0.88)):
        sx, sy = at(box, x, 0.45)
        for i, (dx, dy) in enumerate(((70, -58), (82, -30), (80, 0), (62, 20))):
            color = ("#6b4f3a", "#8a6a4f")[i % 2]
            draw.polygon([(sx, sy - 12), (sx + side * dx, sy + dy), (sx, sy + 14)], color)


def _paw(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A raised forelimb on the side it looks to."""
    x, y = at(box, 0.85 if toward > 0 else 0.15, 0.62)
    end = (x + toward * 44, y - 34)
    draw.line((x, y, *end), "#8d6e63", 20)
    disc(draw, end, 15, "#a1887f")


def _tail(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A tail held high at the back."""
    x, y = at(box, 0.1 if toward > 0 else 0.9, 0.6)
    draw.arc((x - 34, y - 84, x + 34, y), *((90, 270) if toward > 0 else (270, 90)), "#6d4c41", 12)


def _scratch(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for i in range(3):
        x, y = at(box, 0.4 + 0.1 * i, 0.1)
        draw.arc((x - 10, y - 26, x + 10, y), 200, 340, "#c0392b", 4)


def _tongue(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Something pink at the mouth: licking, grooming, eating."""
    x, y = at(box, 0.72 if toward > 0 else 0.28, 0.42)
    draw.rounded_rectangle((x - 9, y, x + 9, y + 30), 9, "#f06292", "#ad1457", 2)


def _teeth(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    x, y = at(box, 0.74 if toward > 0 else 0.26, 0.36)
    draw.pieslice((x - 24, y - 16, x + 24, y + 24), 0, 180, "#5b1020")
    for i in range(-2, 3):
        left = x + 9 * i - 4
        draw.polygon([(left, y + 4), (left + 8, y + 4), (left + 4, y + 14)], "#ffffff")


def _flash(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A camera flash towards the other."""
    x, y = (box[2] + 10 if toward > 0 else box[0] - 10), at(box, 0, 0.3)[1]
    for degrees in range(0, 360, 45):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        draw.line((x + 5 * c, y + 5 * s, x + 24 * c, y + 24 * s), "#ffb300", 6)
    disc(draw, (x, y), 9, "#fff8e1")


def _speech(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A balloon with an exclamation mark towards the other."""
    x, y = (box[2] + 26 if toward > 0 else box[0] - 26), max(at(box, 0, 0.14)[1], 34)
    draw.ellipse((x - 28, y - 26, x + 28, y + 26), "#ffffff", "#37474f", 4)
    draw.line((x, y - 15, x, y + 5), "#d32f2f", 7)
    disc(draw, (x, y + 15), 4, "#d32f2f")


def _lens(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    x, y = (box[2] + 8 if toward > 0 else box[0] - 8), at(box, 0, 0.45)[1]
    draw.ellipse((x - 20, y - 20, x + 20, y + 20), (190, 228, 250, 160), "#37474f", 6)
    draw.line((x - toward * 14, y + 14, x - toward * 34, y + 36), "#5d4037", 9)


def _chart(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A wall chart and a pointer."""
    x, y = (box[2] + 6 if toward > 0 else box[0] - 6), at(box, 0, 0.2)[1]
    draw.rectangle((x - 30, y - 40, x + 30, y + 24), "#fffdf0", "#5d4037", 4)
    for i, h in enumerate((14, 30, 44)):
        draw.rectangle((x - 20 + 15 * i, y + 18 - h, x - 10 + 15 * i, y + 18), COLORS[i])
    draw.line((x - toward * 34, y + 60, x, y), "#3e2723", 5)


def _leaf(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    x, y = mouth(box, toward)
    draw.ellipse((x - 24, y - 11, x + 24, y + 11), "#43a047", "#1b5e20", 2)
    draw.line((x - 22, y, x + 22, y), "#1b5e20", 2)


def _stick(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    x, y = mouth(box, toward)
    draw.line((x - 48, y + 6, x + 48, y - 6), "#6d4c41", 10)
    draw.line((x + 22, y - 3, x + 36, y - 22), "#6d4c41", 6)


def _puff(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A throat blown up."""
    x, y = mouth(box, toward)
    draw.ellipse((x - 26, y + 4, x + 26, y + 50), (240, 244, 170, 235), "#9e9d24", 3)


def _hands(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y, side in ((0.2, 0.72, -1), (0.78, 0.28, 1)):
        cx, cy = at(box, x, y)
        draw.line((cx, cy, cx + side * 60, cy + 26), "#f2b61f", 22)
        disc(draw, (cx, cy), 17, "#f2b61f")


def _teddy(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    cx, cy = at(box, 0.5, 0.34)
    for x, y, r, color in (
        (-18, -44, 10, "#8d5a2b"),
        (18, -44, 10, "#8d5a2b"),
        (0, 6, 30, "#a9703a"),
        (0, -28, 24, "#b98045"),
        (0, -20, 10, "#e8c79a"),
    ):
        disc(draw, (cx + x, cy + y), r, color)
    for x in (-9, 9):
        disc(draw, (cx + x, cy - 34), 4, "#1b1b1b")


BODIES: dict[str, Effect] = {
    "wings": _wings,
    "paw": _paw,
    "tail": _tail,
    "scratch": _scratch,
    "tongue": _tongue,
    "teeth": _teeth,
    "flash": _flash,
    "speech": _speech,
    "lens": _lens,
    "chart": _chart,
    "leaf": _leaf,
    "stick": _stick,
    "puff": _puff,
    "hands": _hands,
    "teddy": _teddy,
}
