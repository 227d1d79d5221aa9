"""Marks drawn on or around a figure that show what it does or how it is."""

from __future__ import annotations

import math
from collections.abc import Callable

from PIL import Image, ImageDraw

Box = tuple[int, int, int, int]
"""Left, top, right and lower edge of the figure, pixels."""


def draw_effect(canvas: Image.Image, name: str, box: Box, toward: int, figure: Image.Image) -> None:
    """Draw one effect of `EFFECTS` around `box`; `toward` is 1 or -1, `figure` the RGBA figure."""
    layer = Image.new("RGBA", canvas.size)
    EFFECTS[name](ImageDraw.Draw(layer), box, toward)
    if name in _CLIPPED:
        mask = Image.new("L", canvas.size)
        mask.paste(figure.getchannel("A"), box[:2])
        layer.putalpha(Image.composite(layer.getchannel("A"), Image.new("L", canvas.size), mask))
    canvas.alpha_composite(layer)


def _at(box: Box, x: float, y: float) -> tuple[float, float]:
    return box[0] + x * (box[2] - box[0]), box[1] + y * (box[3] - box[1])


def _disc(draw: ImageDraw.ImageDraw, centre: tuple[float, float], r: float, colour: str) -> None:
    draw.ellipse((centre[0] - r, centre[1] - r, centre[0] + r, centre[1] + r), colour)


def _motion(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Streaks behind a figure that moves `toward`."""
    back = box[0] if toward > 0 else box[2]
    for i, y in enumerate((0.25, 0.45, 0.65, 0.85)):
        level = _at(box, 0, y)[1]
        length = (34, 48, 40, 30)[i]
        draw.line((back - toward * 6, level, back - toward * (6 + length), level), "#5f6b75", 5)


def _up_motion(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x in (0.2, 0.4, 0.6, 0.8):
        a = _at(box, x, 1)
        draw.line((a[0], a[1] + 6, a[0], a[1] + 30), "#5f6b75", 5)


def _down_motion(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x in (0.2, 0.4, 0.6, 0.8):
        a = _at(box, x, 0)
        draw.line((a[0], a[1] - 6, a[0], a[1] - 34), "#5f6b75", 5)


def _arcs(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Two arrows round the figure."""
    grown = (box[0] - 14, box[1] - 14, box[2] + 14, box[3] + 14)
    for start in (300, 120):
        draw.arc(grown, start, start + 100, "#d0562f", 6)
        angle = math.radians(start + 100)
        x = (grown[0] + grown[2]) / 2 + (grown[2] - grown[0]) / 2 * math.cos(angle)
        y = (grown[1] + grown[3]) / 2 + (grown[3] - grown[1]) / 2 * math.sin(angle)
        draw.regular_polygon((round(x), round(y), 12), 3, round(-(start + 190)), "#d0562f")


def _waves(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Sound from the mouth or the body."""
    x, y = (box[2] if toward > 0 else box[0]), _at(box, 0, 0.28)[1]
    for r in (16, 28, 40):
        angles = (-40, 40) if toward > 0 else (140, 220)
        draw.arc((x - r, y - r, x + r, y + r), *angles, "#3b4a54", 5)


def _wag(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Short arcs on both sides: something swings or shakes."""
    for side, angles in ((0.0, (140, 220)), (1.0, (-40, 40))):
        x, y = _at(box, side, 0.5)
        for r in (10, 22):
            draw.arc((x - r, y - r, x + r, y + r), *angles, "#5f6b75", 5)


def _notes(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y in ((0.15, -0.08), (0.55, -0.16), (0.9, -0.05)):
        cx, cy = _at(box, x, y)
        cy = max(cy, 40)
        _disc(draw, (cx, cy), 8, "#6a3fa0")
        draw.line((cx + 7, cy, cx + 7, cy - 28, cx + 18, cy - 22), "#6a3fa0", 5)


def _cracks(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for points in (
        ((0.5, 0.02), (0.42, 0.22), (0.56, 0.36), (0.44, 0.55), (0.58, 0.74), (0.5, 0.98)),
        ((0.44, 0.55), (0.22, 0.66), (0.08, 0.62)),
        ((0.56, 0.36), (0.76, 0.28), (0.92, 0.36)),
    ):
        line = [_at(box, x, y) for x, y in points]
        draw.line(line, "#ffffff", 8, joint="curve")
        draw.line(line, "#1c1c1c", 4, joint="curve")


def _shards(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    _cracks(draw, box, toward)
    for x, y in ((0.05, 1.0), (0.3, 1.02), (0.72, 1.0), (0.95, 1.02)):
        cx, cy = _at(box, x, y)
        draw.polygon([(cx - 10, cy), (cx, cy - 16), (cx + 12, cy + 2)], "#37414a")


def _dirt(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    size = min(box[2] - box[0], box[3] - box[1])
    for x, y, r in ((0.3, 0.35, 0.12), (0.62, 0.28, 0.08), (0.55, 0.6, 0.14), (0.28, 0.72, 0.09),
                    (0.75, 0.78, 0.1), (0.45, 0.45, 0.05), (0.8, 0.5, 0.06)):  # fmt: skip
        _disc(draw, _at(box, x, y), r * size, "#5b3a1e")


def _wear(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y in ((0.3, 0.3), (0.6, 0.45), (0.4, 0.7), (0.72, 0.75)):
        cx, cy = _at(box, x, y)
        for i in (-8, 0, 8):
            draw.line((cx + i - 8, cy + 8, cx + i + 8, cy - 8), "#8b8378", 4)


def _sparkles(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y, r in ((0.02, 0.1, 16), (0.95, 0.05, 13), (0.9, 0.6, 15), (0.08, 0.75, 12)):
        cx, cy = _at(box, x, y)
        star = [(cx, cy - r), (cx + r / 4, cy - r / 4), (cx + r, cy), (cx + r / 4, cy + r / 4),
                (cx, cy + r), (cx - r / 4, cy + r / 4), (cx - r, cy), (cx - r / 4, cy - r / 4)]  # fmt: skip
        draw.polygon(star, "#ffffff", "#f2b705", 2)


def _glow(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for grow, alpha in ((34, 60), (24, 90), (14, 130), (6, 170)):
        edge = (box[0] - grow, box[1] - grow, box[2] + grow, box[3] + grow)
        draw.ellipse(edge, (255, 214, 64, alpha))


def _rays(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Flashing light: rays all round."""
    cx, cy = _at(box, 0.5, 0.5)
    rx, ry = (box[2] - box[0]) / 2 + 8, (box[3] - box[1]) / 2 + 8
    for degrees in range(0, 360, 30):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        line = (cx + rx * c, cy + ry * s, cx + (rx + 24) * c, cy + (ry + 24) * s)
        draw.line(line, "#f29d05", 6)


def _screen(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    a, b = _at(box, 0.22, 0.16), _at(box, 0.72, 0.5)
    draw.rounded_rectangle((*a, *b), 6, "#7df3ff", "#ffffff", 3)


def _dark_screen(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    a, b = _at(box, 0.22, 0.16), _at(box, 0.72, 0.5)
    draw.rounded_rectangle((*a, *b), 6, "#0c0f12")


def _flames(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    width = box[2] - box[0]
    for colour, part in (("#e8480f", 1.0), ("#ff9d1c", 0.66), ("#ffe14d", 0.36)):
        for x, h in ((0.15, 0.45), (0.38, 0.7), (0.62, 0.6), (0.85, 0.42)):
            cx, base = _at(box, x, 0.62)
            height, half = h * part * (box[3] - box[1]), 0.15 * part * width
            draw.polygon([(cx - half, base), (cx - half / 3, base - height * 0.6),
                          (cx, base - height), (cx + half / 2, base - height * 0.5),
                          (cx + half, base)], colour)  # fmt: skip
            draw.pieslice((cx - half, base - half, cx + half, base + half), 0, 180, colour)


def _smoke(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y, r in ((0.45, 0.05, 18), (0.56, -0.08, 24), (0.44, -0.24, 28), (0.6, -0.38, 24)):
        cx, cy = _at(box, x, y)
        _disc(draw, (cx, max(cy, 24)), r, "#8d949a")


def _steam(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x in (0.3, 0.5, 0.7):
        cx, cy = _at(box, x, -0.04)
        for i in range(3):
            draw.arc((cx - 8, cy - 16 - 16 * i, cx + 8, cy - 16 * i), *((90, 270), (270, 90))[i % 2],
                     "#7e8b94", 4)  # fmt: skip


def _water(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """The figure is in water up to the middle."""
    left, top = box[0] - 34, _at(box, 0, 0.58)[1]
    right, lower = box[2] + 34, box[3] + 12
    draw.rounded_rectangle((left, top, right, lower), 14, (58, 150, 214, 215))
    for x in range(int(left) + 6, int(right) - 20, 26):
        draw.arc((x, top - 9, x + 26, top + 9), 180, 360, "#e9f7ff", 4)


def _drops(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y in ((0.1, 0.2), (0.35, 0.08), (0.7, 0.15), (0.92, 0.3), (0.2, 0.6), (0.8, 0.65)):
        cx, cy = _at(box, x, y)
        draw.polygon([(cx, cy - 14), (cx - 7, cy), (cx + 7, cy)], "#2f8fd8")
        draw.pieslice((cx - 7, cy - 6, cx + 7, cy + 8), 0, 180, "#2f8fd8")


def _dust(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, r in ((0.0, 14), (0.14, 20), (0.86, 20), (1.0, 14)):
        cx, cy = _at(box, x, 0.97)
        _disc(draw, (cx, cy), r, "#d7c7a8")


def _zzz(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for i, size in enumerate((14, 20, 26)):
        x, y = box[2] - 10 + 18 * i, max(box[1] + 8 - 26 * i, 8)
        draw.line([(x, y), (x + size, y), (x, y + size), (x + size, y + size)], "#44539e", 5)


def _bolt(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A cable with a bolt: charging."""
    x, y = _at(box, 1.0, 0.75)
    draw.line([(x - 6, y), (x + 22, y), (x + 30, y + 26), (x + 58, y + 26)], "#22282d", 6)
    cx, cy = _at(box, 0.5, -0.16)
    cy = max(cy, 26)
    draw.polygon([(cx + 4, cy - 24), (cx - 14, cy + 4), (cx - 2, cy + 4), (cx - 6, cy + 24),
                  (cx + 14, cy - 6), (cx + 2, cy - 6)], "#f7c600", "#7a5c00", 2)  # fmt: skip


def _fill(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Things heaped on top: filled, occupied, loaded."""
    for x, colour in ((0.25, "#e4572e"), (0.42, "#4c9f70"), (0.6, "#f3a712"), (0.76, "#669bbc")):
        cx, cy = _at(box, x, 0.1)
        _disc(draw, (cx, cy), 15, colour)
    for x, colour in ((0.34, "#669bbc"), (0.51, "#e4572e"), (0.68, "#4c9f70")):
        cx, cy = _at(box, x, 0.0)
        _disc(draw, (cx, cy), 15, colour)


def _liquid(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A puddle that runs out at the foot."""
    x = box[2] if toward > 0 else box[0]
    draw.ellipse((x - 40, box[3] - 10, x + 40, box[3] + 10), "#7a4a21")


def _stain(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    size = min(box[2] - box[0], box[3] - box[1])
    for x, y, r in ((0.4, 0.5, 0.2), (0.55, 0.62, 0.14), (0.42, 0.78, 0.06)):
        _disc(draw, _at(box, x, y), r * size, "#7b2d43")


def _opening(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A dark gap with a lid that stands up: open."""
    draw.ellipse((*_at(box, 0.22, 0.1), *_at(box, 0.78, 0.34)), "#15181b")
    draw.polygon([_at(box, 0.22, 0.16), _at(box, 0.12, -0.14), _at(box, 0.68, -0.14),
                  _at(box, 0.78, 0.16)], "#e9d8a6", "#4a3f24", 3)  # fmt: skip


def _strap(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Two bands round it: closed, folded, locked."""
    for y in (0.35, 0.65):
        draw.rectangle((*_at(box, 0.0, y - 0.035), *_at(box, 1.0, y + 0.035)), "#2a2f35")
    cx, cy = _at(box, 0.5, 0.5)
    draw.arc((cx - 11, cy - 24, cx + 11, cy), 180, 360, "#c9a227", 5)
    draw.rectangle((cx - 15, cy - 12, cx + 15, cy + 14), "#f2c230", "#6b5208", 2)


def _stack(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Boards under and over it: stacked."""
    for i, y in enumerate((1.0, 0.93, -0.06, -0.13)):
        a, b = _at(box, 0.05, y), _at(box, 0.95, y)
        draw.line((*a, *b), ("#7f5539", "#b08968")[i % 2], 9)


def _tufts(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Raised hair or feathers: puffed up, bristling."""
    cx, cy = _at(box, 0.5, 0.5)
    rx, ry = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
    for degrees in range(0, 360, 18):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        draw.line((cx + rx * c, cy + ry * s, cx + (rx + 13) * c, cy + (ry + 13) * s), "#4a3a2c", 4)


def _wings(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Spread wings on both sides."""
    for side, x in ((-1, 0.12), (1, 0.88)):
        sx, sy = _at(box, x, 0.45)
        for i, (dx, dy) in enumerate(((70, -58), (82, -30), (80, 0), (62, 20))):
            colour = ("#6b4f3a", "#8a6a4f")[i % 2]
            draw.polygon([(sx, sy - 12), (sx + side * dx, sy + dy), (sx, sy + 14)], colour)


def _paw(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A raised forelimb on the side it looks to."""
    x, y = _at(box, 0.85 if toward > 0 else 0.15, 0.62)
    end = (x + toward * 44, y - 34)
    draw.line((x, y, *end), "#8d6e63", 20)
    _disc(draw, end, 15, "#a1887f")


def _tail(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A tail held high at the back."""
    x, y = _at(box, 0.1 if toward > 0 else 0.9, 0.6)
    draw.arc((x - 34, y - 84, x + 34, y), *((90, 270) if toward > 0 else (270, 90)), "#6d4c41", 12)


def _scratch(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for i in range(3):
        x, y = _at(box, 0.4 + 0.1 * i, 0.1)
        draw.arc((x - 10, y - 26, x + 10, y), 200, 340, "#c0392b", 4)


def _tongue(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """Something pink at the mouth: licking, grooming, eating."""
    x, y = _at(box, 0.72 if toward > 0 else 0.28, 0.42)
    draw.rounded_rectangle((x - 9, y, x + 9, y + 30), 9, "#f06292", "#ad1457", 2)


def _teeth(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    x, y = _at(box, 0.74 if toward > 0 else 0.26, 0.36)
    draw.pieslice((x - 24, y - 16, x + 24, y + 24), 0, 180, "#5b1020")
    for i in range(-2, 3):
        left = x + 9 * i - 4
        draw.polygon([(left, y + 4), (left + 8, y + 4), (left + 4, y + 14)], "#ffffff")


def _flash(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A camera flash towards the other."""
    x, y = (box[2] + 10 if toward > 0 else box[0] - 10), _at(box, 0, 0.3)[1]
    for degrees in range(0, 360, 45):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        draw.line((x + 5 * c, y + 5 * s, x + 24 * c, y + 24 * s), "#ffb300", 6)
    _disc(draw, (x, y), 9, "#fff8e1")


def _speech(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    """A balloon with an exclamation mark towards the other."""
    x, y = (box[2] + 26 if toward > 0 else box[0] - 26), max(_at(box, 0, 0.14)[1], 34)
    draw.ellipse((x - 28, y - 26, x + 28, y + 26), "#ffffff", "#37474f", 4)
    draw.line((x, y - 15, x, y + 5), "#d32f2f", 7)
    _disc(draw, (x, y + 15), 4, "#d32f2f")


def _lens(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    x, y = (box[2] + 8 if toward > 0 else box[0] - 8), _at(box, 0, 0.45)[1]
    draw.ellipse((x - 20, y - 20, x + 20, y + 20), (190, 228, 250, 160), "#37474f", 6)
    draw.line((x - toward * 14, y + 14, x - toward * 34, y + 36), "#5d4037", 9)


def _box_held(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    x, y = (box[2] + 4 if toward > 0 else box[0] - 4), _at(box, 0, 0.55)[1]
    draw.rectangle((x - 18, y - 16, x + 18, y + 16), "#d9a066", "#7f5539", 3)
    draw.line((x, y - 16, x, y + 16), "#b3261e", 5)
    draw.line((x - 18, y, x + 18, y), "#b3261e", 5)


def _arrows_out(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y, dx, dy in ((0, 0, -1, -1), (1, 0, 1, -1), (0, 1, -1, 1), (1, 1, 1, 1)):
        cx, cy = _at(box, x, y)
        draw.line((cx, cy, cx + 22 * dx, cy + 22 * dy), "#2e7d32", 7)


def _arrows_in(draw: ImageDraw.ImageDraw, box: Box, toward: int) -> None:
    for x, y, dx, dy in ((0, 0, -1, -1), (1, 0, 1, -1), (0, 1, -1, 1), (1, 1, 1, 1)):
        cx, cy = _at(box, x, y)
        draw.line((cx + 10 * dx, cy + 10 * dy, cx + 34 * dx, cy + 34 * dy), "#ad1457", 7)
        _disc(draw, (cx + 10 * dx, cy + 10 * dy), 7, "#ad1457")


EFFECTS: dict[str, Callable[[ImageDraw.ImageDraw, Box, int], None]] = {
    "motion": _motion, "up motion": _up_motion, "down motion": _down_motion, "arcs": _arcs,
    "waves": _waves, "wag": _wag, "notes": _notes, "cracks": _cracks, "shards": _shards,
    "dirt": _dirt, "wear": _wear, "sparkles": _sparkles, "glow": _glow, "rays": _rays,
    "screen": _screen, "dark screen": _dark_screen, "flames": _flames, "smoke": _smoke,
    "steam": _steam, "water": _water, "drops": _drops, "dust": _dust, "zzz": _zzz, "bolt": _bolt,
    "fill": _fill, "liquid": _liquid, "stain": _stain, "opening": _opening, "strap": _strap,
    "stack": _stack, "tufts": _tufts, "wings": _wings, "paw": _paw, "tail": _tail,
    "scratch": _scratch, "tongue": _tongue, "teeth": _teeth, "flash": _flash, "speech": _speech,
    "lens": _lens, "parcel": _box_held, "arrows out": _arrows_out, "arrows in": _arrows_in,
}  # fmt: skip
"""Every effect by name."""

_CLIPPED = {"cracks", "dirt", "wear", "stain"}
"""Effects that show on the figure only."""
