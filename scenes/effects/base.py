"""What the effects share: boxes, colours and small shapes."""

from __future__ import annotations

from collections.abc import Callable

from PIL import ImageDraw

Box = tuple[int, int, int, int]
"""Left, top, right and lower edge of the figure, pixels."""

Effect = Callable[[ImageDraw.ImageDraw, Box, int], None]
"""Draws on a transparent layer around the box; the last argument is 1 or -1, where it points."""

INK = "#37474f"
COLOURS = ("#e4572e", "#4c9f70", "#f3a712", "#669bbc")


def at(box: Box, x: float, y: float) -> tuple[float, float]:
    """The point at the shares `x` and `y` of the box."""
    return box[0] + x * (box[2] - box[0]), box[1] + y * (box[3] - box[1])


def disc(draw: ImageDraw.ImageDraw, centre: tuple[float, float], r: float, colour: str) -> None:
    """A filled circle."""
    draw.ellipse((centre[0] - r, centre[1] - r, centre[0] + r, centre[1] + r), colour)


def mouth(box: Box, toward: int) -> tuple[float, float]:
    """About where an animal that looks `toward` has its mouth."""
    return at(box, 0.74 if toward > 0 else 0.26, 0.38)
