"""Marks on a figure: damage, dirt, light, fire, what it holds."""

from __future__ import annotations

import math

from PIL import ImageDraw

from .base import COLORS, Edges, Effect, at, disc, dots


def _cracks(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for points in (
        ((0.5, 0.02), (0.42, 0.22), (0.56, 0.36), (0.44, 0.55), (0.58, 0.74), (0.5, 0.98)),
        ((0.44, 0.55), (0.22, 0.66), (0.08, 0.62)),
        ((0.56, 0.36), (0.76, 0.28), (0.92, 0.36)),
    ):
        line = [at(box, x, y) for x, y in points]
        draw.line(line, "#ffffff", 8, joint="curve")
        draw.line(line, "#1c1c1c", 4, joint="curve")


def _shards(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    _cracks(draw, box, toward)
    for x, y in ((0.05, 1.0), (0.3, 1.02), (0.72, 1.0), (0.95, 1.02)):
        cx, cy = at(box, x, y)
        draw.polygon([(cx - 10, cy), (cx, cy - 16), (cx + 12, cy + 2)], "#37414a")


def _dirt(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    large = ((0.3, 0.35, 0.12), (0.62, 0.28, 0.08), (0.55, 0.6, 0.14), (0.28, 0.72, 0.09))
    small = ((0.75, 0.78, 0.1), (0.45, 0.45, 0.05), (0.8, 0.5, 0.06))
    dots(draw, box, (*large, *small), "#5b3a1e")


def _wear(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y in ((0.3, 0.3), (0.6, 0.45), (0.4, 0.7), (0.72, 0.75)):
        cx, cy = at(box, x, y)
        for i in (-8, 0, 8):
            draw.line((cx + i - 8, cy + 8, cx + i + 8, cy - 8), "#8b8378", 4)


def _stain(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    dots(draw, box, ((0.4, 0.5, 0.2), (0.55, 0.62, 0.14), (0.42, 0.78, 0.06)), "#7b2d43")


def _sparkles(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y, r in ((0.02, 0.1, 16), (0.95, 0.05, 13), (0.9, 0.6, 15), (0.08, 0.75, 12)):
        cx, cy = at(box, x, y)
        q = r / 4
        star = [
            *((cx, cy - r), (cx + q, cy - q), (cx + r, cy), (cx + q, cy + q)),
            *((cx, cy + r), (cx - q, cy + q), (cx - r, cy), (cx - q, cy - q)),
        ]
        draw.polygon(star, "#ffffff", "#f2b705", 2)


def _glow(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for grow, alpha in ((34, 60), (24, 90), (14, 130), (6, 170)):
        edge = (box[0] - grow, box[1] - grow, box[2] + grow, box[3] + grow)
        draw.ellipse(edge, (255, 214, 64, alpha))


def _rays(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Flashing light: rays all round."""
    cx, cy = at(box, 0.5, 0.5)
    rx, ry = (box[2] - box[0]) / 2 + 8, (box[3] - box[1]) / 2 + 8
    for degrees in range(0, 360, 30):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        line = (cx + rx * c, cy + ry * s, cx + (rx + 24) * c, cy + (ry + 24) * s)
        draw.line(line, "#f29d05", 6)


def _screen(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    a, b = at(box, 0.22, 0.16), at(box, 0.72, 0.5)
    draw.rounded_rectangle((*a, *b), 6, "#7df3ff", "#ffffff", 3)


def _dark_screen(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    a, b = at(box, 0.22, 0.16), at(box, 0.72, 0.5)
    draw.rounded_rectangle((*a, *b), 6, "#0c0f12")


def _flames(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    width = box[2] - box[0]
    for color, part in (("#e8480f", 1.0), ("#ff9d1c", 0.66), ("#ffe14d", 0.36)):
        for x, h in ((0.15, 0.45), (0.38, 0.7), (0.62, 0.6), (0.85, 0.42)):
            cx, base = at(box, x, 0.62)
            height, half = h * part * (box[3] - box[1]), 0.15 * part * width
            rising = [(cx - half, base), (cx - half / 3, base - height * 0.6), (cx, base - height)]
            falling = [(cx + half / 2, base - height * 0.5), (cx + half, base)]
            draw.polygon(rising + falling, color)
            draw.pieslice((cx - half, base - half, cx + half, base + half), 0, 180, color)


def _smoke(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y, r in ((0.45, 0.05, 18), (0.56, -0.08, 24), (0.44, -0.24, 28), (0.6, -0.38, 24)):
        cx, cy = at(box, x, y)
        disc(draw, (cx, max(cy, 24)), r, "#8d949a")


def _steam(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x in (0.3, 0.5, 0.7):
        cx, cy = at(box, x, -0.04)
        for i in range(3):
            start, end = ((90, 270), (270, 90))[i % 2]
            draw.arc((cx - 8, cy - 16 - 16 * i, cx + 8, cy - 16 * i), start, end, "#7e8b94", 4)


def _drops(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for x, y in ((0.1, 0.2), (0.35, 0.08), (0.7, 0.15), (0.92, 0.3), (0.2, 0.6), (0.8, 0.65)):
        cx, cy = at(box, x, y)
        draw.polygon([(cx, cy - 14), (cx - 7, cy), (cx + 7, cy)], "#2f8fd8")
        draw.pieslice((cx - 7, cy - 6, cx + 7, cy + 8), 0, 180, "#2f8fd8")


def _bolt(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A cable with a bolt: charging."""
    x, y = at(box, 1.0, 0.75)
    draw.line([(x - 6, y), (x + 22, y), (x + 30, y + 26), (x + 58, y + 26)], "#22282d", 6)
    cx, cy = at(box, 0.5, -0.16)
    cy = max(cy, 26)
    down = [(cx + 4, cy - 24), (cx - 14, cy + 4), (cx - 2, cy + 4), (cx - 6, cy + 24)]
    up = [(cx + 14, cy - 6), (cx + 2, cy - 6)]
    draw.polygon(down + up, "#f7c600", "#7a5c00", 2)


def _opening(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A dark gap with a lid that stands up: open."""
    draw.ellipse((*at(box, 0.22, 0.1), *at(box, 0.78, 0.34)), "#15181b")
    lid = [at(box, x, y) for x, y in ((0.22, 0.16), (0.12, -0.14), (0.68, -0.14), (0.78, 0.16))]
    draw.polygon(lid, "#e9d8a6", "#4a3f24", 3)


def _strap(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Two bands round it: closed, folded, locked."""
    for y in (0.35, 0.65):
        draw.rectangle((*at(box, 0.0, y - 0.035), *at(box, 1.0, y + 0.035)), "#2a2f35")
    cx, cy = at(box, 0.5, 0.5)
    draw.arc((cx - 11, cy - 24, cx + 11, cy), 180, 360, "#c9a227", 5)
    draw.rectangle((cx - 15, cy - 12, cx + 15, cy + 14), "#f2c230", "#6b5208", 2)


def _liquid(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A puddle that runs out at the foot."""
    x = box[2] if toward > 0 else box[0]
    draw.ellipse((x - 40, box[3] - 10, x + 40, box[3] + 10), "#7a4a21")


def _rust(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    places = ((0.3, 0.3, 0.2), (0.6, 0.5, 0.24), (0.4, 0.75, 0.2), (0.75, 0.2, 0.14))
    dots(draw, box, places, "#b5541c")


def _stickers(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    size = min(box[2] - box[0], box[3] - box[1])
    places = ((0.3, 0.3), (0.55, 0.42), (0.4, 0.62), (0.7, 0.66), (0.52, 0.2), (0.25, 0.8))
    for (x, y), color in zip(places, COLORS * 2, strict=False):
        disc(draw, at(box, x, y), 0.1 * size + 3, "#ffffff")
        disc(draw, at(box, x, y), 0.1 * size, color)


def _foam(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Soap bubbles."""
    for i, x in enumerate((0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)):
        for y in (0.25, 0.5, 0.75):
            cx, cy = at(box, x, y + 0.05 * (i % 2))
            r = 12 + 4 * ((i + round(4 * y)) % 3)
            draw.ellipse((cx - r, cy - r, cx + r, cy + r), (245, 252, 255, 235), "#8fc7e8", 2)


def _sheet(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A white cloth over it."""
    top = ((0.08, -0.03), (0.92, -0.03))
    folds = ((1.06, 0.9), (0.85, 0.84), (0.66, 0.92), (0.5, 0.84), (0.34, 0.92), (0.15, 0.84))
    points = [at(box, x, y) for x, y in (*top, *folds, (-0.06, 0.9))]
    draw.polygon(points, (250, 250, 252, 245), "#aeb8c2", 3)
    for x in (0.3, 0.5, 0.7):
        draw.line((*at(box, x, 0.06), *at(box, 0.5 + (x - 0.5) * 1.3, 0.78)), "#ccd3da", 4)


def _rumpled(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A heap of bedding."""
    heap = (
        (0.35, 0.4, 22, "#eceff1"),
        (0.55, 0.35, 28, "#cfd8dc"),
        (0.72, 0.45, 22, "#eceff1"),
        (0.5, 0.5, 20, "#b0bec5"),
    )
    for x, y, r, color in heap:
        cx, cy = at(box, x, y)
        draw.ellipse((cx - r * 1.4, cy - r, cx + r * 1.4, cy + r), color, "#78909c", 2)


def _beam(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Light cones from both ends of a vehicle, as it may face either way."""
    for x, side in ((0.04, -1), (0.96, 1)):
        cx, cy = at(box, x, 0.62)
        cone = [(cx, cy - 6), (cx + side * 80, cy - 34), (cx + side * 80, cy + 34), (cx, cy + 6)]
        draw.polygon(cone, (255, 232, 120, 190))
        disc(draw, (cx, cy), 9, "#fff7c2")


def _hollow(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.ellipse((*at(box, 0.3, 0.02), *at(box, 0.7, 0.2)), "#14181b")


def _milk(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.ellipse((*at(box, 0.18, -0.04), *at(box, 0.82, 0.24)), "#ffffff", "#c7ced4", 3)
    for x in (0.2, 0.8):
        draw.rounded_rectangle((*at(box, x - 0.05, 0.1), *at(box, x + 0.05, 0.48)), 6, "#ffffff")


SURFACE: dict[str, Effect] = {
    "cracks": _cracks,
    "shards": _shards,
    "dirt": _dirt,
    "wear": _wear,
    "stain": _stain,
    "sparkles": _sparkles,
    "glow": _glow,
    "rays": _rays,
    "screen": _screen,
    "dark screen": _dark_screen,
    "flames": _flames,
    "smoke": _smoke,
    "steam": _steam,
    "drops": _drops,
    "bolt": _bolt,
    "opening": _opening,
    "strap": _strap,
    "liquid": _liquid,
    "rust": _rust,
    "stickers": _stickers,
    "foam": _foam,
    "sheet": _sheet,
    "rumpled": _rumpled,
    "beam": _beam,
    "hollow": _hollow,
    "milk": _milk,
}
