"""Finding figures of the atlas in an image, by its pixels alone.

Masked normalized cross-correlation (Padfield 2012) of every template with the image, by Fourier
transform. Templates are figures as the renderer draws them and mirrored, at a few sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ..errors import DataError
from .drawing import acting_image
from .scene import HEIGHT, WIDTH, Figure
from .sprites import clothes

SHRINK = 4
"""Factor by which images are shrunk: a search takes 2 ms; at 2 it takes 8 ms and misses as many
figures (3 % of 300 posed ones)."""
SCALES = (0.89, 0.95, 1.01)
"""Sizes to search for; the renderer draws 0.88 to 1.04."""
SMALL = (0.45, 0.48, 0.51)
"""Sizes to search for when figures stand one above the other, drawn at 0.44 to 0.52."""
OF_SEVERAL = (*SMALL, 0.64, 0.68, 0.72, 0.76)
"""Sizes to search for among three and more figures, which are never drawn at the full size."""
SEARCHED_TONE = "medium"
"""Skin tone of the people to search for: one between the others finds all of them. Of 400, half
of them posed, it misses three and a search for every tone two, in five times the time."""
_SHAPE = (HEIGHT // SHRINK, WIDTH // SHRINK)
"""Height and width of what is searched and of every transform. They wrap around the edges, which
needs no padding: only places where a template lies wholly inside count."""


@dataclass(frozen=True)
class Match:
    """The best place of a figure."""

    score: float
    """Correlation in [-1, 1]; 1 is the figure itself."""
    x: float
    """Center, in [0, 1] of the width."""
    y: float
    """Center, in [0, 1] of the height from the top."""
    width: float
    """In [0, 1] of the image's width."""
    height: float
    """In [0, 1] of the image's height."""

    def overlap(self, match: Match) -> float:
        """Intersection over union of the two boxes, in [0, 1]."""
        width = _shared(self.x, self.width, match.x, match.width)
        height = _shared(self.y, self.height, match.y, match.height)
        shared = width * height
        return shared / (self.width * self.height + match.width * match.height - shared)


def _shared(a: float, a_size: float, b: float, b_size: float) -> float:
    """Length that two intervals, given by center and size, have in common."""
    return max(0.0, min(a + a_size / 2, b + b_size / 2) - max(a - a_size / 2, b - b_size / 2))


@dataclass(frozen=True)
class _Templates:
    """All variants of one figure, transformed."""

    color: NDArray[np.complex64]
    """Conjugate transforms of the zero-mean colors, shape (variants, 3, h, w)."""
    mask: NDArray[np.complex64]
    """Conjugate transforms of the masks, shape (variants, h, w)."""
    pixels: NDArray[np.float32]
    """Pixels in each mask, shape (variants,)."""
    energy: NDArray[np.float32]
    """Sum of squares of the zero-mean colors, shape (variants,)."""
    sizes: tuple[tuple[int, int], ...]
    """Height and width of each variant."""


class SearchedImage:
    """An image prepared for searching."""

    def __init__(self, image: Image.Image) -> None:
        """Raises DataError for an image whose shape is not the renderer's."""
        if abs(image.width * HEIGHT - image.height * WIDTH) > WIDTH * HEIGHT / 50:
            raise DataError(
                f"the image is {image.width} x {image.height}, rendered ones are {WIDTH} x "
                f"{HEIGHT}",
                code="wrong-size",
            )
        small = image.convert("RGB").resize(_SHAPE[::-1], Image.Resampling.BOX)
        self._pixels = np.asarray(small, dtype=np.float32) / 255
        self._transform()

    def _transform(self) -> None:
        from scipy import fft

        self._color = fft.rfft2(self._pixels.transpose(2, 0, 1), _SHAPE)
        self._square = fft.rfft2((self._pixels**2).sum(axis=2), _SHAPE)

    def find(
        self, entity: str, poses: Sequence[str] = ("",), scales: tuple[float, ...] = SCALES
    ) -> Match:
        """The best match of an entity in any of the poses and sizes."""
        matches = (self._best(_templates(entity, pose, scales)) for pose in poses)
        return max(matches, key=lambda match: match.score)

    def _best(self, templates: _Templates) -> Match:
        from scipy import fft

        def correlate(product: NDArray[np.complex64]) -> NDArray[np.float32]:
            full: NDArray[np.float32] = fft.irfft2(product, _SHAPE)
            return full[..., : _SHAPE[0], : _SHAPE[1]]

        cross = correlate((self._color * templates.color).sum(axis=1))
        square = correlate(self._square * templates.mask)
        sums = correlate(self._color * templates.mask[:, None])
        pixels = templates.pixels[:, None, None]
        spread = square - (sums**2).sum(axis=1) / pixels
        # A flat patch has no spread; the floor keeps noise there from winning.
        floor = 0.002 * pixels
        scores = cross / np.sqrt(np.maximum(spread, floor) * templates.energy[:, None, None])
        for scored, (height, width) in zip(scores, templates.sizes, strict=True):
            scored[_SHAPE[0] - height + 1 :] = -1
            scored[:, _SHAPE[1] - width + 1 :] = -1
        variant, top, left = np.unravel_index(int(scores.argmax()), scores.shape)
        height, width = templates.sizes[variant]
        return Match(
            score=float(scores[variant, top, left]),
            x=(left + width / 2) / _SHAPE[1],
            y=(top + height / 2) / _SHAPE[0],
            width=width / _SHAPE[1],
            height=height / _SHAPE[0],
        )

    def change(self, changed: SearchedImage, match: Match) -> float:
        """Mean difference of the colors in the box of a match, in [0, 1]."""
        rows = slice(*_span(match.y, match.height, _SHAPE[0]))
        columns = slice(*_span(match.x, match.width, _SHAPE[1]))
        return float(np.abs(self._pixels[rows, columns] - changed._pixels[rows, columns]).mean())

    def without(self, match: Match) -> SearchedImage:
        """The image with the box of a match painted over in the mean color."""
        copy = object.__new__(SearchedImage)
        copy._pixels = self._pixels.copy()
        rows = slice(*_span(match.y, match.height, _SHAPE[0]))
        columns = slice(*_span(match.x, match.width, _SHAPE[1]))
        copy._pixels[rows, columns] = self._pixels.mean(axis=(0, 1))
        copy._transform()
        return copy


def _span(center: float, size: float, length: int) -> tuple[int, int]:
    low = round((center - size / 2) * length)
    return max(0, low), min(length, low + round(size * length))


def _views(entity: str, pose: str, scale: float) -> list[Image.Image]:
    """A figure facing right and left, and both mirrored where that is another image.

    Effects such as a crack or drops keep their place whichever way a figure faces, so that the
    mirror image of a rendered figure need not be one that the renderer draws.
    """
    tone = SEARCHED_TONE if clothes(entity) else ""
    drawn = [acting_image(Figure(entity, 0.5, 0.9, scale, faces, pose, tone)) for faces in (1, -1)]
    mirrored = [ImageOps.mirror(image) for image in drawn]
    return drawn + [image for image in mirrored if image not in drawn]


@lru_cache(maxsize=1024)
def _templates(entity: str, pose: str, scales: tuple[float, ...]) -> _Templates:
    from scipy import fft

    colors, masks, sizes = [], [], []
    for scale in scales:
        for figure in _views(entity, pose, scale):
            width, height = (max(2, round(side / SHRINK)) for side in figure.size)
            height, width = min(height, _SHAPE[0]), min(width, _SHAPE[1])
            small = np.asarray(figure.resize((width, height), Image.Resampling.BOX), np.float32)
            mask = (small[..., 3] > 128).astype(np.float32)
            color = small[..., :3] / 255
            mean = (color * mask[..., None]).sum(axis=(0, 1)) / mask.sum()
            colors.append(((color - mean) * mask[..., None]).transpose(2, 0, 1))
            masks.append(mask)
            sizes.append((height, width))
    return _Templates(
        color=np.stack([np.conj(fft.rfft2(color, _SHAPE)) for color in colors]),
        mask=np.stack([np.conj(fft.rfft2(mask, _SHAPE)) for mask in masks]),
        pixels=np.array([mask.sum() for mask in masks], np.float32),
        energy=np.array([(color**2).sum() for color in colors], np.float32),
        sizes=tuple(sizes),
    )
