"""Seeded backgrounds: a wall or sky and a floor in flat colors, with shapes that mean nothing."""

from __future__ import annotations

import random
from functools import lru_cache

from PIL import Image, ImageDraw

from .scene import HEIGHT, WIDTH

_WALLS = ["#dfe8ef", "#efe6d8", "#e3eddc", "#ecdfe8", "#d9e7e6", "#f1ead2", "#e0e0ea", "#e9dcd3"]
_FLOORS = ["#b9a184", "#a3b18a", "#9fb0bd", "#c2a58f", "#8fa89b", "#b7a7b8", "#a8a39a", "#c9b27c"]
_SKIES = ["#cfe6f7", "#d9ecf2", "#e8e2f3", "#f5e3d3"]
_GROUNDS = ["#9cc07a", "#b5c98a", "#d8c48f", "#a7bfa0"]
_SUPERSAMPLING = 2


@lru_cache(maxsize=8)
def draw_background(seed: int) -> Image.Image:
    """RGB image of `WIDTH` x `HEIGHT` pixels; the same seed gives the same pixels."""
    rng = random.Random(f"background/{seed}")
    width, height = WIDTH * _SUPERSAMPLING, HEIGHT * _SUPERSAMPLING
    outdoors = rng.random() < 0.5
    wall = rng.choice(_SKIES if outdoors else _WALLS)
    floor = rng.choice(_GROUNDS if outdoors else _FLOORS)
    image = Image.new("RGB", (width, height), wall)
    draw = ImageDraw.Draw(image)
    horizon = round(height * rng.uniform(0.66, 0.76))
    for _ in range(rng.randint(2, 4)):
        _decorate(draw, rng, width, horizon, outdoors)
    draw.rectangle((0, horizon, width, height), floor)
    draw.rectangle((0, horizon, width, horizon + 6), _shade(floor, 88))
    for _ in range(rng.randint(2, 5)):
        x, y = rng.randrange(width), rng.randrange(horizon + 20, height)
        r = rng.randint(20, 70)
        draw.ellipse((x - r, y - r // 4, x + r, y + r // 4), _shade(floor, 95))
    return image.reduce(_SUPERSAMPLING)


def _decorate(
    draw: ImageDraw.ImageDraw, rng: random.Random, width: int, horizon: int, outdoors: bool
) -> None:
    x, y = rng.randrange(width), rng.randrange(20, horizon - 160)
    size = rng.randint(40, 90)
    if outdoors:  # a cloud
        for dx, r in ((-size, size // 2), (0, size * 3 // 4), (size, size // 2)):
            draw.ellipse((x + dx - r, y - r // 2, x + dx + r, y + r // 2), "#ffffff")
    else:  # a plain panel
        color = rng.choice(_WALLS)
        draw.rectangle((x - size, y - size // 2, x + size, y + size), color, _shade(color, 90), 6)


def _shade(color: str, percent: int) -> str:
    return "#" + "".join(f"{int(color[i : i + 2], 16) * percent // 100:02x}" for i in (1, 3, 5))
