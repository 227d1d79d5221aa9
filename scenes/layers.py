"""Layers: transparent canvases, drawn larger than they are shown."""

from __future__ import annotations

from typing import NamedTuple

from PIL import Image


class Reduced(NamedTuple):
    """What is drawn on a layer, in pixels of the smaller image."""

    image: Image.Image
    """RGBA, up to the edges of what is drawn."""
    corner: tuple[int, int]
    """Its left upper corner on the layer."""

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom on the layer."""
        left, top = self.corner
        return left, top, left + self.image.width, top + self.image.height


def reduced(layer: Image.Image, factor: int) -> Reduced | None:
    """What is drawn on an RGBA layer, so many times smaller; None for an empty layer.

    factor: divides the layer's width and height. What is empty, often more than half, costs no
    time.
    """
    drawn = layer.getbbox()
    if drawn is None:
        return None
    left, top = (side // factor for side in drawn[:2])
    right, bottom = (-(-side // factor) for side in drawn[2:])
    part = layer.crop((left * factor, top * factor, right * factor, bottom * factor))
    return Reduced(part.reduce(factor), (left, top))
