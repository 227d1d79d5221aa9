"""What the effects share: edges, colors and small shapes."""

from __future__ import annotations

from collections.abc import Callable

from PIL import ImageDraw

Edges = tuple[int, int, int, int]
"""Left, top, right and lower edge of the figure, pixels."""

Effect = Callable[[ImageDraw.ImageDraw, Edges, int], None]
"""Draws on a transparent layer around the box; the last argument is 1 or -1, where it points."""

Places = tuple[tuple[float, float, float], ...]
"""x, y and radius of several circles."""

INK = "#37474f"
COLORS = ("#e4572e", "#4c9f70", "#f3a712", "#669bbc")


def at(box: Edges, x: float, y: float) -> tuple[float, float]:
    """The point at the shares `x` and `y` of the box."""
    return box[0] + x * (box[2] - box[0]), box[1] + y * (box[3] - box[1])


def disc(draw: ImageDraw.ImageDraw, center: tuple[float, float], r: float, color: str) -> None:
    """A filled circle."""
    draw.ellipse((center[0] - r, center[1] - r, center[0] + r, center[1] + r), color)


def dots(draw: ImageDraw.ImageDraw, box: Edges, places: Places, color: str) -> None:
    """Filled circles; x and y are shares of the box, the radius is a share of its shorter side."""
    size = min(box[2] - box[0], box[3] - box[1])
    for x, y, r in places:
        disc(draw, at(box, x, y), r * size, color)


def mouth(box: Edges, toward: int) -> tuple[float, float]:
    """About where an animal that looks `toward` has its mouth."""
    return at(box, 0.74 if toward > 0 else 0.26, 0.38)
