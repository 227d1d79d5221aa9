"""Marks of movement, sound and gaze."""

from __future__ import annotations

import math

from PIL import ImageDraw

from .base import INK, Edges, Effect, at, disc


def _motion(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Streaks behind a figure that moves `toward`."""
    back = box[0] if toward > 0 else box[2]
    for i, y in enumerate((0.25, 0.45, 0.65, 0.85)):
        level = at(box, 0, y)[1]
        length = (34, 48, 40, 30)[i]
        draw.line((back - toward * 6, level, back - toward * (6 + length), level), "#5f6b75", 5)


def _up_motion(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x in (0.2, 0.4, 0.6, 0.8):
        a = at(box, x, 1)
        draw.line((a[0], a[1] + 6, a[0], a[1] + 30), "#5f6b75", 5)


def _down_motion(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x in (0.2, 0.4, 0.6, 0.8):
        a = at(box, x, 0)
        draw.line((a[0], a[1] - 6, a[0], a[1] - 34), "#5f6b75", 5)


def _arcs(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Two arrows round the figure."""
    grown = (box[0] - 14, box[1] - 14, box[2] + 14, box[3] + 14)
    for start in (300, 120):
        draw.arc(grown, start, start + 100, "#d0562f", 6)
        angle = math.radians(start + 100)
        x = (grown[0] + grown[2]) / 2 + (grown[2] - grown[0]) / 2 * math.cos(angle)
        y = (grown[1] + grown[3]) / 2 + (grown[3] - grown[1]) / 2 * math.sin(angle)
        draw.regular_polygon((round(x), round(y), 12), 3, round(-(start + 190)), "#d0562f")


def _waves(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Sound from the mouth or the body."""
    x, y = (box[2] if toward > 0 else box[0]), at(box, 0, 0.28)[1]
    for r in (16, 28, 40):
        angles = (-40, 40) if toward > 0 else (140, 220)
        draw.arc((x - r, y - r, x + r, y + r), *angles, "#3b4a54", 5)


def _wag(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Short arcs on both sides: something swings or shakes."""
    for side, angles in ((0.0, (140, 220)), (1.0, (-40, 40))):
        x, y = at(box, side, 0.5)
        for r in (10, 22):
            draw.arc((x - r, y - r, x + r, y + r), *angles, "#5f6b75", 5)


def _notes(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y in ((0.15, -0.08), (0.55, -0.16), (0.9, -0.05)):
        cx, cy = at(box, x, y)
        cy = max(cy, 40)
        disc(draw, (cx, cy), 8, "#6a3fa0")
        draw.line((cx + 7, cy, cx + 7, cy - 28, cx + 18, cy - 22), "#6a3fa0", 5)


def _dust(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, r in ((0.0, 14), (0.14, 20), (0.86, 20), (1.0, 14)):
        cx, cy = at(box, x, 0.97)
        disc(draw, (cx, cy), r, "#d7c7a8")


def _zzz(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for i, size in enumerate((14, 20, 26)):
        x, y = box[2] - 10 + 18 * i, max(box[1] + 8 - 26 * i, 8)
        draw.line([(x, y), (x + size, y), (x, y + size), (x + size, y + size)], "#44539e", 5)


def _arrows_out(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y, dx, dy in ((0, 0, -1, -1), (1, 0, 1, -1), (0, 1, -1, 1), (1, 1, 1, 1)):
        cx, cy = at(box, x, y)
        draw.line((cx, cy, cx + 22 * dx, cy + 22 * dy), "#2e7d32", 7)


def _gaze_up(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A dashed line of sight to the sky."""
    x, y = at(box, 0.62 if toward > 0 else 0.38, 0.1)
    for i in range(3):
        a = 12 + 22 * i
        draw.line((x + toward * a * 0.5, y - a, x + toward * (a + 12) * 0.5, y - a - 12), INK, 6)


def _gaze_down(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A dashed line of sight to the ground."""
    x, y = (box[2] if toward > 0 else box[0]), at(box, 0, 0.3)[1]
    for i in range(4):
        a = 22 * i
        draw.line((x + toward * a * 0.3, y + a, x + toward * (a + 12) * 0.3, y + a + 12), INK, 6)


MOTION: dict[str, Effect] = {
    "motion": _motion,
    "up motion": _up_motion,
    "down motion": _down_motion,
    "arcs": _arcs,
    "waves": _waves,
    "wag": _wag,
    "notes": _notes,
    "dust": _dust,
    "zzz": _zzz,
    "arrows out": _arrows_out,
    "gaze up": _gaze_up,
    "gaze down": _gaze_down,
}
