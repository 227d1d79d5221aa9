"""Drawn images that get harder by degrees: the same scene, at each level harder to read.

At level 0 two things stand far apart on a plain background. From level to level they come closer,
get smaller, are seen from an angle, lose a part, leave the edge of the image, and stand among other
things and beside signs with garbled names, while texture, light, blur and grain grow, as in a
photograph. What is there, and which comes first, never changes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from .backgrounds import draw_background
from .drawing import figure_image
from .scene import HEIGHT, WIDTH, Figure
from .sprites import clothes, entity_names

LEVELS = 5
"""Levels of difficulty, from 0."""
_HARDEST = 0.93
"""Share of everything that makes a scene hard at the last level: with all of it, a reader misread
three in five images, and with three quarters none; see `tools/read_graded.py`."""
Arrangement = Literal[
    "A left", "B left", "A above", "B above", "only A", "only B", "A, other", "B, other", "merged"
]
"""What an image shows of A and B; `other`: another thing in place of the missing one."""
SHOWN: tuple[Arrangement, ...] = get_args(Arrangement)
_APART, _CLOSE = 0.46, 0.17
"""Distance of two centers at the first and last level, shares of the side along their axis."""
_LARGE, _STACKED, _SMALL = 0.95, 0.48, 0.5
"""Size of a figure at the first level, beside another or one above the other, and at the last."""
_HORIZONTAL_Y, _VERTICAL_X = 0.62, 0.5
"""Where both centers lie across the axis."""
_Edges = tuple[int, int, int, int]
"""Left, top, right and lower edge, pixels."""


@dataclass(frozen=True)
class GradedScene:
    """One scene at one level."""

    number: int
    """Seed of everything that does not depend on the level: places, views, background."""
    level: int
    """From 0 to `LEVELS` - 1."""
    a: str
    """Entity A, as in the atlas; not a person."""
    b: str
    other: str
    """A third entity, for what stands in place of A or B."""
    shown: Arrangement

    @property
    def hard(self) -> float:
        """Share of everything that makes a scene hard, from 0 to `_HARDEST`."""
        return _HARDEST * self.level / (LEVELS - 1)

    def draw(self) -> Image.Image:
        """RGB image of `scene.WIDTH` x `scene.HEIGHT` pixels; a function of the scene alone."""
        rng = self._rng("layout")
        canvas = _textured(draw_background(self.number), self.hard, self._rng("ground"))
        clutter = self._rng("clutter")
        for _ in range(round(10 * self.hard)):
            self._clutter(canvas, clutter, (0.2, 0.45))
        taken: list[_Edges] = []
        for image, place in self._things(rng):
            left, top = round(place[0] - image.width / 2), round(place[1] - image.height / 2)
            canvas.alpha_composite(
                image, (max(0, left), max(0, top)), (max(0, -left), max(0, -top))
            )
            taken.append((left, top, left + image.width, top + image.height))
        if self.hard >= 0.5:
            self._sign(canvas, self._rng("sign"), taken)
        return _photographed(canvas.convert("RGB"), self.hard, self._rng("camera"))

    def _rng(self, purpose: str) -> random.Random:
        return random.Random(f"{purpose}/{self.number}")

    def _things(self, rng: random.Random) -> list[tuple[Image.Image, tuple[float, float]]]:
        """Images of what is there, and the pixels of their centers."""
        stacked = self.shown.endswith("above")
        large = _STACKED if stacked else _LARGE
        size = large + self.hard * (min(large, _SMALL) - large)
        smaller, turned, cropped = rng.randrange(2), rng.random(), rng.random() < 0.5
        along = (_APART + self.hard * (_CLOSE - _APART)) / 2
        shift = self.hard * cropped * (0.95 - _HORIZONTAL_Y)
        if self.shown == "merged":
            return [(self._fused(size, rng), (WIDTH * _VERTICAL_X, HEIGHT * _HORIZONTAL_Y))]
        first = self.shown.split()[0].strip(",")
        names = {"A": (self.a, self.b), "B": (self.b, self.a)}
        kept, missing = names[self.shown[-1] if self.shown.startswith("only") else first]
        there = [kept, self.other if self.shown.endswith("other") else missing]
        if self.shown.startswith("only"):
            there.pop()
        flipped = len(there) == 1 or self.shown.endswith("other")
        placed = []
        for place, name in enumerate(there):
            side = place if not (flipped and turned < 0.5) else 1 - place
            own = size * (1 - 0.4 * self.hard * (place == smaller))
            offset = (2 * side - 1) * along
            across = 0.03 * self.hard * (2 * rng.random() - 1)
            x, y = (
                (_VERTICAL_X + across + shift, 0.5 + offset)
                if stacked
                else (0.5 + offset, _HORIZONTAL_Y + across + shift)
            )
            placed.append((self._view(name, own, rng), (x * WIDTH, y * HEIGHT)))
        return placed if rng.random() < 0.5 else placed[::-1]

    def _view(self, name: str, size: float, rng: random.Random) -> Image.Image:
        """A thing, turned and without a part of it, cropped."""
        image = figure_image(Figure(name, 0.5, 0.9, size, rng.choice((-1, 1))))
        squeeze, angle = rng.random(), rng.uniform(-1, 1)
        part, edge = rng.random(), rng.randrange(4)
        width = max(8, round(image.width * (1 - 0.4 * self.hard * squeeze)))
        image = image.resize((width, image.height), Image.Resampling.LANCZOS)
        if self.hard:
            image = image.rotate(60 * self.hard * angle, Image.Resampling.BICUBIC, expand=True)
            image = image.crop(image.getbbox())
        cut = 0.4 * self.hard * part
        sides = [0, 0, image.width, image.height]
        sides[edge] += round((1 if edge < 2 else -1) * cut * image.size[edge % 2])
        return image.crop((sides[0], sides[1], sides[2], sides[3]))

    def _fused(self, size: float, rng: random.Random) -> Image.Image:
        """One half of A and the other half of B, as one thing."""
        halves = [figure_image(Figure(name, 0.5, 0.9, size, 1)) for name in (self.a, self.b)]
        height = max(half.height for half in halves)
        a, b = (
            half.resize((max(8, round(half.width * height / half.height)), height))
            for half in halves
        )
        fused = Image.new("RGBA", (a.width // 2 + b.width - b.width // 2, height))
        fused.paste(a.crop((0, 0, a.width // 2, height)), (0, 0))
        fused.paste(b.crop((b.width // 2, 0, b.width, height)), (a.width // 2, 0))
        fused = fused.crop(fused.getbbox())
        return fused.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else fused

    def _clutter(self, canvas: Image.Image, rng: random.Random, sizes: tuple[float, float]) -> None:
        """Another thing somewhere."""
        others = [name for name in things() if name not in (self.a, self.b, self.other)]
        figure = Figure(rng.choice(others), 0.5, 0.9, rng.uniform(*sizes), rng.choice((-1, 1)))
        image = figure_image(figure).rotate(rng.uniform(-40, 40), expand=True)
        place = rng.randrange(WIDTH - image.width), rng.randrange(HEIGHT - image.height)
        canvas.alpha_composite(image, place)

    def _sign(self, canvas: Image.Image, rng: random.Random, taken: list[_Edges]) -> None:
        """A sign beside the things, with the name of A or B, two letters of which are exchanged."""
        letters = [*rng.choice((self.a, self.b))]
        at = rng.randrange(len(letters) - 1)
        letters[at : at + 2] = reversed(letters[at : at + 2])
        font = ImageFont.load_default(round(14 + 10 * self.hard))
        text, pen = "".join(letters), ImageDraw.Draw(canvas)
        width = round(font.getlength(text)) + 12
        for _ in range(20):
            x, y = rng.randrange(max(1, WIDTH - width)), rng.randrange(HEIGHT - 40)
            if not any(_overlap((x, y, x + width, y + 30), edges) for edges in taken):
                break
        else:
            return
        pen.rectangle((x, y, x + width, y + 30), "#f4efe0", "#6b6250", 2)
        pen.text((x + width / 2, y + 15), text, "#3a3530", font, "mm")


def things() -> tuple[str, ...]:
    """Entities of the atlas that are no people."""
    return tuple(name for name in entity_names() if clothes(name) is None)


def _overlap(first: _Edges, second: _Edges) -> bool:
    return all(first[n] < second[n + 2] and second[n] < first[n + 2] for n in (0, 1))


def _noise(rng: random.Random, sizes: tuple[int, ...]) -> Any:
    """Sum of smooth noise of several grains, shape (HEIGHT, WIDTH), about -1 to 1."""
    draws = np.random.default_rng(rng.getrandbits(32))
    total = np.zeros((HEIGHT, WIDTH))
    for weight, size in enumerate(sizes, 1):
        grid = draws.integers(0, 256, (HEIGHT // size + 2, WIDTH // size + 2), dtype=np.uint8)
        layer = Image.fromarray(grid).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        total += (np.asarray(layer, dtype=float) / 127.5 - 1) / weight
    return total / sum(1 / weight for weight in range(1, len(sizes) + 1))


def _textured(ground: Image.Image, hard: float, rng: random.Random) -> Image.Image:
    """A background with a rough surface, RGBA."""
    if not hard:
        return ground.convert("RGBA")
    pixels = np.asarray(ground, dtype=float)
    rough = np.stack([_noise(rng, (96, 40, 16, 6)) for _ in range(3)], axis=-1)
    shared = _noise(rng, (48, 12))[..., None]
    mixed = pixels + 75 * hard * shared + 35 * hard * rough
    return Image.fromarray(np.clip(mixed, 0, 255).astype(np.uint8)).convert("RGBA")


def _photographed(image: Image.Image, hard: float, rng: random.Random) -> Image.Image:
    """The image in uneven light, out of focus and with grain."""
    if not hard:
        return image
    light = 1 + hard * 0.55 * _noise(rng, (256, 128))[..., None]
    dim = rng.uniform(0.55, 0.9)
    pixels = np.asarray(image, dtype=float)
    gray = pixels.mean(axis=-1, keepdims=True)
    pixels = (1 - 0.4 * hard) * pixels + 0.4 * hard * gray
    lit = 128 + (pixels * light * (1 - hard * (1 - dim)) - 128) * (1 - 0.2 * hard)
    blurred = Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8)).filter(
        ImageFilter.GaussianBlur(1.5 * hard)
    )
    grain = 15 * hard * _noise(rng, (2,))[..., None]
    return Image.fromarray(np.clip(np.asarray(blurred) + grain, 0, 255).astype(np.uint8))
