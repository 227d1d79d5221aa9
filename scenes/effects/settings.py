"""What a figure is in, on or against, and what is tied or stuck to it."""

from __future__ import annotations

from PIL import ImageDraw

from .base import COLORS, Edges, Effect, at, disc


def _water(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """The figure is in water up to the middle."""
    left, top = box[0] - 34, at(box, 0, 0.58)[1]
    right, lower = box[2] + 34, box[3] + 12
    draw.rounded_rectangle((left, top, right, lower), 14, (58, 150, 214, 215))
    for x in range(int(left) + 6, int(right) - 20, 26):
        draw.arc((x, top - 9, x + 26, top + 9), 180, 360, "#e9f7ff", 4)


def _sand(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A heap of sand over the lower half."""
    top = at(box, 0, 0.48)[1]
    draw.pieslice((box[0] - 40, top, box[2] + 40, 2 * box[3] - top + 20), 180, 360, "#e2c184")
    for x in (0.2, 0.4, 0.6, 0.8):
        disc(draw, at(box, x, 0.86), 3, "#b7935a")


def _mud(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.ellipse((box[0] - 40, box[3] - 44, box[2] + 40, box[3] + 16), "#6b4423")
    for x in (0.1, 0.4, 0.7, 0.95):
        disc(draw, at(box, x, 0.66), 9, "#6b4423")


def _slab(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A flat rock, and the sun."""
    draw.ellipse((box[0] - 30, box[3] - 16, box[2] + 30, box[3] + 20), "#8b9096", "#5f6469", 3)
    x = box[2] + 12 if box[2] < 440 else box[0] - 12
    disc(draw, (x, max(box[1] - 24, 26)), 20, "#ffcf33")


def _wall(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A post to lean against."""
    x = box[2] + 2 if toward > 0 else box[0] - 20
    draw.rectangle((x, box[1] - 20, x + 18, box[3] + 4), "#9c6644", "#5f3c24", 3)


def _ramp(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    low, high = (box[2] + 30, box[0] - 30) if toward > 0 else (box[0] - 30, box[2] + 30)
    draw.polygon(
        [(high, box[3] - 66), (high, box[3] + 8), (low, box[3] + 8)], "#a47148", "#5f3c24", 3
    )


def _frame(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A board on the wall with two pegs."""
    edge = (box[0] - 14, box[1] - 14, box[2] + 14, box[3] + 14)
    draw.rounded_rectangle(edge, 8, "#c8b08a", "#7a5c35", 6)


def _case(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """An open case, lid up, behind it."""
    draw.rounded_rectangle(
        (box[0] - 16, box[1] - 20, box[2] + 16, box[3] - 20), 16, "#7a1f2b", "#2b2b2b", 7
    )
    draw.rounded_rectangle((box[0] - 22, box[3] - 46, box[2] + 22, box[3] + 8), 12, "#3a3a3a")


def _runway(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    draw.rectangle((box[0] - 40, box[3] - 14, box[2] + 40, box[3] + 14), "#4a4f55")
    for x in range(box[0] - 30, box[2] + 20, 40):
        draw.rectangle((x, box[3] - 2, x + 22, box[3] + 3), "#ffffff")


def _tag(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """A price tag on a string."""
    x, y = at(box, 0.85, 0.12)
    draw.line((x, y, x + 16, y + 16), "#37474f", 3)
    draw.polygon(
        [(x + 12, y + 10), (x + 46, y + 14), (x + 46, y + 38), (x + 12, y + 34)],
        "#ffffff",
        "#c62828",
        4,
    )


def _ribbon(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    cx, cy = at(box, 0.5, 0.5)
    draw.rectangle((cx - 7, box[1], cx + 7, box[3]), "#d50000")
    draw.rectangle((box[0], cy - 7, box[2], cy + 7), "#d50000")
    for side in (-1, 1):
        draw.polygon(
            [(cx, cy), (cx + side * 40, cy - 26), (cx + side * 40, cy + 10)],
            "#ff1744",
            "#8e0000",
            2,
        )


def _flowers(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for i, (dx, dy) in enumerate(((-30, -52), (0, -66), (30, -50))):
        x, y = at(box, 0.5, 0.02)
        draw.line((x, y, x + dx, y + dy), "#2e7d32", 6)
        for px, py in ((-9, 0), (9, 0), (0, -9), (0, 9)):
            disc(draw, (x + dx + px, y + dy + py), 9, COLORS[i])
        disc(draw, (x + dx, y + dy), 6, "#fff176")


def _wilted(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    for side, reach in ((-1, 44), (1, 44), (1, 26)):
        x, y = at(box, 0.5, 0.02)
        draw.line(
            [(x, y), (x + side * reach * 0.6, y - 26), (x + side * reach, y + 34)], "#8d7b3a", 6
        )
        disc(draw, (x + side * reach, y + 40), 10, "#795548")


def _noon(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    """Both hands up."""
    _no_hands(draw, box, toward)
    x, y = at(box, 0.5, 0.43)
    draw.line((x, y, x, y - 34), "#111111", 8)


def _no_hands(draw: ImageDraw.ImageDraw, box: Edges, toward: int) -> None:
    x, y = at(box, 0.5, 0.43)
    r = 0.2 * (box[2] - box[0])
    disc(draw, (x, y), r, "#fdf6e3")


SETTINGS: dict[str, Effect] = {
    "water": _water,
    "sand": _sand,
    "mud": _mud,
    "slab": _slab,
    "wall": _wall,
    "ramp": _ramp,
    "frame": _frame,
    "case": _case,
    "runway": _runway,
    "tag": _tag,
    "ribbon": _ribbon,
    "flowers": _flowers,
    "wilted": _wilted,
    "noon": _noon,
    "no hands": _no_hands,
}
