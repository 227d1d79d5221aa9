"""Layers: transparent canvases, drawn larger than they are shown."""

from __future__ import annotations

from typing import NamedTuple

from PIL import Image, ImageFilter


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


def soft_outline(
    things: Reduced, size: tuple[int, int], *, radius: int
) -> tuple[Image.Image, tuple[int, int]]:
    """The alpha of things, blurred over so many pixels, as far as it reaches on an image of a size;
    and its left upper corner there.
    """
    left, top, right, bottom = things.box
    # A blur repeats the edges: they must be empty, or those of the image.
    spread = radius + 1
    x, y = max(0, left - spread), max(0, top - spread)
    mask = Image.new("L", (min(size[0], right + spread) - x, min(size[1], bottom + spread) - y))
    mask.paste(things.image.getchannel("A"), (left - x, top - y))
    return mask.filter(ImageFilter.BoxBlur(radius)), (x, y)
