"""Marks drawn on or around a figure that show what it does or how it is."""

from __future__ import annotations

from PIL import Image, ImageDraw

from .base import Edges, Effect
from .bodies import BODIES
from .motion import MOTION
from .settings import SETTINGS
from .surface import SURFACE

EFFECTS: dict[str, Effect] = {**MOTION, **SURFACE, **BODIES, **SETTINGS}
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
