"""Gold images: code shared by those of pairs and those of worlds.

Shapes that can be drawn, the PNG of an image, styles and seeds, and whether two images differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageChops
from pydantic import TypeAdapter

from ..images import encode_drawing, opened
from ..scenes.sprites import read_json
from ..scenes.vector import (
    VectorImage,
    VectorShape,
    VectorStyle,
    color,
    draw_vector,
    outline,
)
from .drawings import drawings

REACH = 0.35
"""Distance that shapes of the scene may reach beyond the stage, in stage widths."""
STYLES_EACH = 2
"""Images of the same thing: each in a style and with a seed of its own."""
LEAST_DIFFERENCE = 0.0007
"""Share of the pixels that must differ visibly between two images of one style."""
VISIBLE = 24
"""Difference of a pixel's brightness that is seen, of 255."""
LOOKED = "reviewer-model-on-images"
"""Mark of an image that was recognized by a model that looked at it without its key."""
TEXTS, ART = "CC-BY-4.0", "Apache-2.0"
"""Licenses of texts and shapes, and of the sprites."""


def shape_faults(where: str, shapes: Iterable[VectorShape], reach: float) -> Iterator[str]:
    """Letters, sprites and places that can't be drawn. Raises ShapeError for a bad color or path.

    reach: how far beyond their box shapes may be.
    """
    from ..scenes.canvas import can_write

    for shape in shapes:
        for name in filter(None, (shape.fill, shape.stroke)):
            color(name)
        if shape.kind == "text":
            if not can_write(shape.text.replace("{part}", "")):
                yield f"{where}: the font lacks a letter of {shape.text!r}"
            points = [shape.at]
        elif shape.kind == "sprite":
            if shape.sprite not in read_json("atlas/index.json"):
                yield f"{where}: no sprite {shape.sprite!r} in the atlas"
            points = [shape.at]
        else:
            path = outline(shape)
            corners = np.asarray(path.vertices)
            if corners.min() < -reach or corners.max() > 1 + reach:  # controls of curves may be
                corners = path.get_extents().get_points()
            points = corners.tolist()
        if any(not -reach <= value <= 1 + reach for point in points for value in point):
            yield f"{where}: {shape.kind} leaves its box"


def style_of(name: str, styles: Sequence[VectorStyle], seed: int) -> VectorStyle:
    """Returns one of the styles; the name decides the first, and each seed takes the next."""
    return styles[(int(hashlib.sha256(name.encode()).hexdigest(), 16) + seed) % len(styles)]


def seed_of(name: str, seed: int) -> int:
    """The seed of size, position and ground in [0, 2**31): no two things have the same ones."""
    return int(hashlib.sha256(f"{name}/{seed}".encode()).hexdigest()[:12], 16) % 2**31


def terms(has_sprites: bool) -> str:
    """SPDX expression of an image."""
    return f"{TEXTS} AND {ART}" if has_sprites else TEXTS


@dataclass(frozen=True)
class GoldRequest:
    """One gold image to draw."""

    image: VectorImage

    @property
    def key(self) -> str:
        """The image as JSON."""
        return f"gold {_as_json().dump_json(self.image).decode()}"

    def draw(self) -> bytes:
        """The PNG. Raises ShapeError for what can't be drawn."""
        return encode_drawing(draw_vector(self.image), flat=self.image.style != "shaded")


@cache
def _as_json() -> TypeAdapter[VectorImage]:
    return TypeAdapter(VectorImage)


def begin_gold(images: Iterable[VectorImage]) -> None:
    """Starts drawing images that `draw_gold` will be asked for."""
    drawings().begin([GoldRequest(image) for image in images])


def draw_gold(image: VectorImage) -> bytes:
    """The PNG of one gold image. Raises ShapeError for what can't be drawn."""
    return drawings()(GoldRequest(image))


class DifferenceRequest(NamedTuple):
    """Two gold images to compare."""

    first: bytes
    second: bytes

    @property
    def key(self) -> str:
        """The digests of both."""
        return " ".join(["difference", *(hashlib.sha256(data).hexdigest() for data in self)])

    def draw(self) -> bytes:
        """Share of the pixels that visibly differ, as text."""
        with opened(BytesIO(self.first)) as a, opened(BytesIO(self.second)) as b:
            return repr(visible_difference(a, b)).encode()


def differences(pairs: Iterable[tuple[bytes, bytes]]) -> list[float]:
    """Share of the pixels that visibly differ between the encoded images of each pair, which have
    one size."""
    requests = [DifferenceRequest(*pair) for pair in pairs]
    drawings().begin(requests)
    return [float(drawings()(request)) for request in requests]


def difference(first: bytes, second: bytes) -> float:
    """Share of the pixels that visibly differ between two encoded images of one size."""
    return differences([(first, second)])[0]


def visible_difference(first: Image.Image, second: Image.Image) -> float:
    """Share of the pixels that visibly differ between two images of one size, in [0, 1]."""
    apart = ImageChops.difference(first.convert("RGB"), second.convert("RGB"))
    red, green, blue = apart.split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue).histogram()
    return sum(most[VISIBLE + 1 :]) / sum(most)
