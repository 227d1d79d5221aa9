"""Layers reduced and blurred in part are what they are reduced and blurred as a whole."""

from __future__ import annotations

import itertools

import pytest
from PIL import Image, ImageDraw, ImageFilter

from counterprior.scenes.layers import reduced, soft_outline
from counterprior.scenes.vector import Turn

SIDE = 96
BOXES = {
    "inside": (31, 20, 64, 57),
    "odd": (33, 21, 33, 21),
    "left and upper edge": (-9, -9, 14, 30),
    "right and lower edge": (81, 90, 120, 120),
    "near the edge": (3, 5, 90, 91),
    "all": (-9, -9, 120, 120),
}


@pytest.fixture(params=BOXES)
def layer(request: pytest.FixtureRequest) -> Image.Image:
    """An RGBA layer with a half-transparent thing in one place."""
    image = Image.new("RGBA", (SIDE, SIDE), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.ellipse(BOXES[request.param], (200, 90, 31, 150), (10, 20, 250, 255))
    return image


def test_the_part_is_that_of_the_whole(layer: Image.Image) -> None:
    whole, part = Image.new("RGBA", (SIDE // 2, SIDE // 2)), reduced(layer, 2)
    assert part is not None
    whole.paste(part.image, part.corner)
    assert whole.tobytes() == layer.reduce(2).tobytes()


@pytest.mark.parametrize("radius", [1, 5])
def test_the_soft_outline_is_that_of_the_whole(layer: Image.Image, radius: int) -> None:
    part = reduced(layer, 2)
    assert part is not None
    outline, corner = soft_outline(part, (SIDE // 2, SIDE // 2), radius=radius)
    whole = Image.new("L", (SIDE // 2, SIDE // 2))
    whole.paste(outline, corner)
    alpha = layer.reduce(2).getchannel("A")
    assert whole.tobytes() == alpha.filter(ImageFilter.BoxBlur(radius)).tobytes()


def test_an_empty_layer_has_no_part() -> None:
    assert reduced(Image.new("RGBA", (SIDE, SIDE)), 2) is None


@pytest.mark.parametrize(
    "turn", [Turn(*flags) for flags in itertools.product((False, True), repeat=3)], ids=str
)
def test_points_turn_as_an_image_does(turn: Turn) -> None:
    image, (x, y) = Image.new("L", (8, 8)), (1, 5)
    image.putpixel((x, y), 255)
    for flag, change in (
        (turn.mirrored, Image.Transpose.FLIP_LEFT_RIGHT),
        (turn.upside, Image.Transpose.FLIP_TOP_BOTTOM),
        (turn.quarter, Image.Transpose.ROTATE_270),
    ):
        image = image.transpose(change) if flag else image
    center = ((x + 0.5) / 8, (y + 0.5) / 8)
    across, down = turn(center)
    assert image.getpixel((int(across * 8), int(down * 8))) == 255
    assert turn((0.5, 0.5)) == (0.5, 0.5)
