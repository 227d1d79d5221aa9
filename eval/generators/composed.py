"""Images composed of things whose class, size and place are known, to test detectors.

`CutOuts` pastes images of a folder, `CLASS/*.png`, on drawn or the user's own backgrounds;
`Drawings` takes the renderer's. In a quarter of the images one of the two things is left out.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from PIL import Image

from ...errors import DataError
from ...images import ImageError, opened
from ...scenes.backgrounds import draw_background
from ...scenes.drawing import placed_image
from ...scenes.language import mentions
from ...scenes.scene import HEIGHT, WIDTH
from ..core import Generator, ImageRequest
from ..geometry.boxes import FORWARD, SIDEWAYS, Box
from . import open_generator

LEFT_OUT = 0.25
"""Share of images in which one of the two things is left out."""
SIDE = 512
"""Width and height of images of cut-outs, pixels, as published runs of SpatialBench-UC have."""
AREAS = (0.005, 0.3)
"""Least and largest area of a cut-out's box, share of the image's; log-uniform between."""
BACKGROUNDS = "_backgrounds"
"""Folder beside the classes with backgrounds of the user's own."""
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
_ALONG, _ACROSS = 0.46, 0.92
"""Longest sides of a cut-out along the axis of the relation, and across."""


class KnownThing(NamedTuple):
    """A thing in a composed image."""

    name: str
    """Class, as the row names it."""
    cutout: str
    """Name of what shows it, unique in the class."""
    size: float
    """Area of its box, share of the image's."""


class KnownImages(Generator, Protocol):
    """A generator that knows what its images show."""

    def can_show(self, names: Iterable[str]) -> bool:
        """Whether it has any of the classes."""
        ...

    def things(self, request: ImageRequest) -> list[KnownThing]:
        """What the image of a request shows."""
        ...


class CutOuts(Generator):
    """Pastes cut-outs in the asked relation."""

    def __init__(self, folder: Path) -> None:
        """folder: an image with an alpha channel, or a rectangle cut from one, for each instance,
        in a folder named for its class; spaces may be underscores. Raises DataError, naming the
        file, for one that can't be read, and for a folder without images.
        """
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder of cut-outs", code="no-such-file")
        digest = hashlib.sha256()
        self._images: dict[str, dict[str, Image.Image]] = {}
        self._backgrounds: list[Image.Image] = []
        self.empty: list[str] = []
        """Folders without an image, sorted."""
        for of_class in sorted(path for path in folder.iterdir() if path.is_dir()):
            files = sorted(f for f in of_class.iterdir() if f.suffix.lower() in _SUFFIXES)
            images = {file.name: _read(file) for file in files}
            for file in files:
                digest.update(f"{of_class.name}/{file.name}".encode() + file.read_bytes())
            if of_class.name == BACKGROUNDS:
                self._backgrounds = [image.convert("RGB") for image in images.values()]
            elif images:
                self._images.setdefault(_class_name(of_class.name), {}).update(images)
            else:
                self.empty.append(of_class.name)
        if not self._images:
            raise DataError(
                f"{folder} has no image of any class",
                f"put cut-outs into {folder / 'CLASS'}, e.g. {folder / 'dog' / '1.png'}",
                code="nothing-to-do",
            )
        self._digest = digest.hexdigest()

    @property
    def classes(self) -> dict[str, int]:
        """Class -> number of its cut-outs."""
        return {name: len(images) for name, images in self._images.items()}

    def identity(self) -> dict[str, str]:
        return {"kind": "cut-outs", "version": "1", "files": self._digest[:12]}

    def can_show(self, names: Iterable[str]) -> bool:
        return any(_class_name(name) in self._images for name in names)

    def things(self, request: ImageRequest) -> list[KnownThing]:
        return [
            KnownThing(name, cutout, box.area / SIDE**2)
            for name, cutout, box in self._layout(request)
        ]

    def generate(self, request: ImageRequest) -> Image.Image:
        canvas = self._background(_rng(request, "background"))
        for name, cutout, box in self._layout(request):
            image = self._images[_class_name(name)][cutout]
            size = (round(box.x2 - box.x1), round(box.y2 - box.y1))
            canvas.alpha_composite(
                image.resize(size, Image.Resampling.LANCZOS), (round(box.x1), round(box.y1))
            )
        return canvas.convert("RGB")

    def _background(self, rng: random.Random) -> Image.Image:
        drawn = (
            rng.choice(self._backgrounds)
            if self._backgrounds
            else draw_background(rng.getrandbits(31))
        )
        return drawn.resize((SIDE, SIDE), Image.Resampling.LANCZOS).convert("RGBA")

    def _layout(self, request: ImageRequest) -> list[tuple[str, str, Box]]:
        """Class, cut-out and box, pixels, of each thing that is there."""
        rng = _rng(request, "layout")
        fields = request.fields
        first, second = fields["object_a"], fields["object_b"]
        if fields["relation"] not in FORWARD:
            first, second = second, first
        left_out = rng.randrange(2) if rng.random() < LEFT_OUT else None
        placed = []
        for place, name in enumerate((first, second)):
            # Every thing takes the same numbers, so that the other one is where it would be.
            which, area, along, across = (rng.random() for _ in range(4))
            cutouts = sorted(self._images.get(_class_name(name), ()))
            if place == left_out or not cutouts:
                continue
            cutout = cutouts[int(which * len(cutouts))]
            image = self._images[_class_name(name)][cutout]
            sideways = fields["relation"] in SIDEWAYS
            box = _box(image.size, area, (0.24 + 0.52 * place, along, across), sideways)
            placed.append((name, cutout, box))
        return placed


def _box(
    size: tuple[int, int], area: float, place: tuple[float, float, float], sideways: bool
) -> Box:
    """Box of a cut-out, whole pixels. area, along and across: shares of what is possible."""
    low, high = (math.log(end) for end in AREAS)
    scale = math.sqrt(math.exp(low + area * (high - low)) * SIDE**2 / (size[0] * size[1]))
    limits = (_ALONG, _ACROSS) if sideways else (_ACROSS, _ALONG)
    scale = min(scale, *(limit * SIDE / side for limit, side in zip(limits, size, strict=True)))
    width, height = (max(4, round(side * scale)) for side in size)
    center, along, across = place
    centers = (center + 0.04 * (along - 0.5), 0.5 + 0.3 * (across - 0.5))
    x, y = centers if sideways else centers[::-1]
    left = min(max(0, round(x * SIDE - width / 2)), SIDE - width)
    top = min(max(0, round(y * SIDE - height / 2)), SIDE - height)
    return Box(left, top, left + width, top + height)


class Drawings(Generator):
    """The renderer's images, which obey the prompt."""

    def __init__(self) -> None:
        self._renderer = open_generator(f"render:?missing={LEFT_OUT}")

    def identity(self) -> dict[str, str]:
        return self._renderer.identity()

    def can_show(self, names: Iterable[str]) -> bool:
        return all(_entity(name) for name in names)

    def things(self, request: ImageRequest) -> list[KnownThing]:
        names = {_entity(request.fields[f]): request.fields[f] for f in ("object_a", "object_b")}
        things = []
        for figure in self._renderer.scene(request).figures:  # type: ignore[attr-defined]
            left, top, right, bottom = placed_image(figure)[1]
            area = (right - left) * (bottom - top) / (WIDTH * HEIGHT)
            things.append(KnownThing(names[figure.entity], "drawing", area))
        return things

    def generate(self, request: ImageRequest) -> Image.Image:
        image = self._renderer.generate(request)
        assert isinstance(image, Image.Image), "no clips without video="
        return image


def _entity(name: str) -> str:
    """The renderer's name of a class; empty if it can't draw one."""
    named = mentions(f"a {name}")
    return named[0].entity if len(named) == 1 else ""


def _class_name(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())


def _read(file: Path) -> Image.Image:
    try:
        with opened(file) as image:
            image.load()
            cutout = image.convert("RGBA")
    except ImageError as error:
        raise DataError(f"{file} {error}", code=error.code) from None
    if cutout.getchannel("A").getbbox() is None:
        raise DataError(f"{file} is transparent everywhere", code="unreadable-image")
    return cutout.crop(cutout.getchannel("A").getbbox())


def _rng(request: ImageRequest, purpose: str) -> random.Random:
    return random.Random(f"{purpose}/{request.seed}/{request.prompt}")
