"""Finding figures of the atlas in an image, by its pixels alone.

Masked normalized cross-correlation (Padfield 2012) of every template with the image, by Fourier
transform. Templates are figures as the renderer draws them and mirrored, at a few sizes. Where that
finds too little, a closer look compares more sizes at the likeliest places, in finer pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from ..errors import DataError
from .drawing import acting_image
from .scene import HEIGHT, WIDTH, Figure
from .sprites import TONES, clothes

SHRINK = 4
"""Factor by which images are shrunk: a search takes 2 ms; at 2 it takes 8 ms and misses as many
figures (3 % of 300 posed ones)."""
SCALES = (0.89, 0.95, 1.01)
"""Sizes to search for; the renderer draws 0.88 to 1.04."""
SMALL = (0.45, 0.48, 0.51)
"""Sizes to search for when figures stand one above the other, drawn at 0.44 to 0.52."""
OF_SEVERAL = (*SMALL, 0.64, 0.68, 0.72, 0.76)
"""Sizes to search for among three and more figures, which are never drawn at the full size."""
CLOSER = 2
"""Factor by which images are shrunk for a closer look: at `SHRINK`, the legs of a giraffe and the
frame of a bicycle are thinner than a pixel."""
PLACES = 4
"""Places to look at closely: of 65 figures that the first search left below its threshold, all but
one were at one of the four likeliest."""
POSSIBLE = 0.3
"""Least correlation of the first search at a place to look at closely."""
PERSON_POSSIBLE = 0.5
"""The same of a person: a search finds more of them, and drawing them takes longer."""
LIKELY = 0.45
"""Least correlation at the best of these places from which every skin tone, and the image in its
full resolution, are compared there."""
UNLIKE = 0.2
"""Root mean square of the differences of colors, in [0, 1], above which a place is no match:
correlation alone takes the edge of the floor for a baseball bat, and a cloud for a chair. Of 648
figures that correlate at 0.6 or more 646 are below, of 27 false matches 5."""
REACH = 3
"""Pixels around a place in which a closer look searches."""
SEARCHED_TONE = "medium"
"""Skin tone of the people to search for: one between the others finds all of them. Of 400, half
of them posed, it misses three and a search for every tone two, in five times the time."""
EDGE = 24
"""Pixels of the border's colors that surround what is searched: effects, such as wings, may reach
beyond the image, where a template alone shows all of them."""
_SHAPE = ((HEIGHT + 2 * EDGE) // SHRINK, (WIDTH + 2 * EDGE) // SHRINK)
"""Height and width of what is searched and of every transform. They wrap around: only places where
a template lies wholly inside count."""


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

    @property
    def foot(self) -> float:
        """Lower edge, in [0, 1] of the height from the top."""
        return self.y + self.height / 2

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
class _View:
    """One drawing of a figure, shrunk."""

    color: NDArray[np.float32]
    """Zero-mean colors, 0 outside the mask, shape (3, h, w)."""
    mask: NDArray[np.float32]
    """1 where the figure is, else 0, shape (h, w)."""
    mean: NDArray[np.float32]
    """Mean color in the mask, in [0, 1], shape (3,)."""

    @classmethod
    def of(cls, figure: Image.Image, factor: int) -> _View:
        """The view of an RGBA image, shrunk by a factor, no larger than what is searched."""
        width, height = (max(2, round(side / factor)) for side in figure.size)
        size = (min(width, WIDTH // factor), min(height, HEIGHT // factor))
        small = np.asarray(figure.resize(size, Image.Resampling.BOX), np.float32)
        mask = (small[..., 3] > 128).astype(np.float32)
        color = small[..., :3] / 255
        mean = (color * mask[..., None]).sum(axis=(0, 1)) / mask.sum()
        return cls(((color - mean) * mask[..., None]).transpose(2, 0, 1), mask, mean)


@dataclass(frozen=True)
class _Templates:
    """Variants of one figure, transformed."""

    color: NDArray[np.complex64]
    """Conjugate transforms of the zero-mean colors, shape (variants, 3, h, w)."""
    mask: NDArray[np.complex64]
    """Conjugate transforms of the masks, shape (variants, h, w)."""
    pixels: NDArray[np.float32]
    """Pixels in each mask, shape (variants,)."""
    energy: NDArray[np.float32]
    """Sum of squares of the zero-mean colors, shape (variants,)."""
    mean: NDArray[np.float32]
    """Mean color in each mask, in [0, 1], shape (variants, 3)."""
    sizes: tuple[tuple[int, int], ...]
    """Height and width of each variant, pixels."""
    scales: tuple[float, ...]
    """Size of the figure of each variant, as in `Figure`."""

    @classmethod
    def of(
        cls, views: Sequence[_View], scales: Sequence[float], shape: tuple[int, ...]
    ) -> _Templates:
        """Templates of some views, each of a figure of one of the scales, for images of a height
        and width."""
        from scipy import fft

        return cls(
            color=np.stack([np.conj(fft.rfft2(view.color, shape)) for view in views]),
            mask=np.stack([np.conj(fft.rfft2(view.mask, shape)) for view in views]),
            pixels=np.array([view.mask.sum() for view in views], np.float32),
            energy=np.array([(view.color**2).sum() for view in views], np.float32),
            mean=np.stack([view.mean for view in views]),
            sizes=tuple((view.mask.shape[0], view.mask.shape[1]) for view in views),
            scales=tuple(scales),
        )


@dataclass(frozen=True)
class _Transformed:
    """An image, transformed."""

    color: NDArray[np.complex64]
    """Transform of the colors, shape (3, h, w)."""
    square: NDArray[np.complex64]
    """Transform of the sum of the squares of the colors, shape (h, w)."""
    shape: tuple[int, ...]
    """Height and width of the image."""

    @classmethod
    def of(cls, pixels: NDArray[np.float32], shape: tuple[int, ...]) -> _Transformed:
        """The transform of colors of shape (h, w, 3), zeros around them."""
        from scipy import fft

        color = fft.rfft2(pixels.transpose(2, 0, 1), shape)
        return cls(color, fft.rfft2((pixels**2).sum(axis=2), shape), shape)

    def correlate(self, templates: _Templates, unlike: float = math.inf) -> NDArray[np.float32]:
        """Correlations by template and its upper left corner, shape (variants, h, w); -1 where a
        template does not lie wholly inside, or its colors differ by more than `unlike` (root mean
        square, in [0, 1])."""
        from scipy import fft

        def back(product: NDArray[np.complex64]) -> NDArray[np.float32]:
            full: NDArray[np.float32] = fft.irfft2(product, self.shape)
            return full[..., : self.shape[0], : self.shape[1]]

        cross = back((self.color * templates.color).sum(axis=1))
        square = back(self.square * templates.mask)
        sums = back(self.color * templates.mask[:, None])
        pixels = templates.pixels[:, None, None]
        spread = square - (sums**2).sum(axis=1) / pixels
        # A flat patch has no spread; the floor keeps noise there from winning.
        floor = 0.002 * pixels
        scores: NDArray[np.float32] = cross / np.sqrt(
            np.maximum(spread, floor) * templates.energy[:, None, None]
        )
        if unlike < math.inf:
            mean, energy = templates.mean[..., None, None], templates.energy[:, None, None]
            squares = square - 2 * (cross + (sums * mean).sum(axis=1)) + energy
            squares += pixels * (mean**2).sum(axis=1)
            scores[squares > 3 * pixels * unlike**2] = -1
        for scored, (height, width) in zip(scores, templates.sizes, strict=True):
            scored[self.shape[0] - height + 1 :] = -1
            scored[:, self.shape[1] - width + 1 :] = -1
        return scores


def _highest(scores: NDArray[np.float32]) -> tuple[int, ...]:
    """Indices of the highest of some correlations."""
    return tuple(map(int, np.unravel_index(int(scores.argmax()), scores.shape)))


@dataclass(frozen=True)
class _Place:
    """A place where a figure may be, for a closer look."""

    match: Match
    """Match of the first search."""
    pose: str
    """Pose that was searched for."""
    scale: float
    """Size of that template."""


@dataclass(frozen=True)
class _Fit:
    """A drawing of a figure, and how well it matches."""

    entity: str
    """Name of the entity."""
    pose: str
    """Name of its pose; empty for none."""
    scale: float
    """Its size."""
    view: int
    """Number of the view of `_views`."""
    tone: str
    """Skin tone of a person; empty for anything else."""
    match: Match = Match(-1, 0, 0, 0, 0)
    """Its best match."""


def _fitness(fit: _Fit) -> float:
    return fit.match.score


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
        self._image = image.convert("RGB")
        self._hidden: tuple[Match, ...] = ()
        self._fine: dict[int, NDArray[np.float32]] = {}
        self._pixels = _shrunk(self._image, SHRINK)
        self._transform()

    @property
    def has_details(self) -> bool:
        """Whether a closer look shows more than a search sees."""
        return self._image.width >= WIDTH // CLOSER

    def _finer(self, factor: int) -> NDArray[np.float32]:
        """Colors shrunk by a factor, in their border, shape (h, w, 3)."""
        if factor not in self._fine:
            pixels = _shrunk(self._image, factor)
            for match in self._hidden:
                _paint_over(pixels, match)
            self._fine[factor] = _bordered(pixels, factor)
        return self._fine[factor]

    def _transform(self) -> None:
        self._transformed = _Transformed.of(_bordered(self._pixels, SHRINK), _SHAPE)

    def find(
        self,
        entity: str,
        poses: Sequence[str] = ("",),
        scales: tuple[float, ...] = SCALES,
        unlike: float = math.inf,
    ) -> Match:
        """The best match of an entity in any of the poses and sizes.

        unlike: difference of colors above which a place is no match, see `UNLIKE`. Where all
        places are, the correlation is -1.
        """
        matches = (self._best(_templates(entity, pose, scales), unlike) for pose in poses)
        return max(matches, key=lambda match: match.score)

    def _best(self, templates: _Templates, unlike: float) -> Match:
        scores = self._transformed.correlate(templates, unlike)
        variant, top, left = _highest(scores)
        return _match(scores[variant, top, left], top, left, templates.sizes[variant], SHRINK)

    def look_closer(
        self, entity: str, poses: Sequence[str], scales: tuple[float, ...], enough: float
    ) -> Match | None:
        """The best match at the likeliest places of an entity, in finer sizes and every skin tone.

        enough: correlation at which no further place is looked at. None without a likely place.
        """
        tone = SEARCHED_TONE if clothes(entity) else ""
        best: _Fit | None = None
        for place in self._places(entity, poses, scales):
            views = range(len(_close_views(entity, place.pose, place.scale, tone, CLOSER)))
            at = _Fit(entity, place.pose, place.scale, 0, tone)
            fit = self._best_fit(at, place.match, CLOSER, product((0.96, 1, 1.04), views))
            sizes = product((0.98, 1.02), [fit.view])
            fit = max(fit, self._best_fit(fit, place.match, CLOSER, sizes), key=_fitness)
            if best is None or _fitness(fit) > _fitness(best):
                best = fit
            if _fitness(best) >= enough:
                break
        if best is None:
            return None
        if LIKELY <= _fitness(best) < enough and tone:
            tones = [replace(best, tone=other) for other in TONES]
            toned = [self._best_fit(fit, best.match, CLOSER, [(1, fit.view)]) for fit in tones]
            best = max(best, *toned, key=_fitness)
        if LIKELY <= _fitness(best) < enough:
            close = [(1 + percent / 100, best.view) for percent in range(-3, 4)]
            best = max(best, self._best_fit(best, best.match, 1, close), key=_fitness)
        return best.match

    def _places(self, entity: str, poses: Sequence[str], scales: tuple[float, ...]) -> list[_Place]:
        """The likeliest places of an entity, best first."""
        places = []
        for pose in poses:
            templates = _templates(entity, pose, scales)
            scores = self._transformed.correlate(templates, UNLIKE)
            for _ in range(PLACES):
                variant, top, left = _highest(scores)
                score = scores[variant, top, left]
                height, width = templates.sizes[variant]
                x, y = left + width / 2, top + height / 2
                match = _match(score, top, left, (height, width), SHRINK)
                places.append(_Place(match, pose, templates.scales[variant]))
                for scored, size in zip(scores, templates.sizes, strict=True):
                    # Other templates with their center there belong to the same place.
                    up, across = round(y - size[0] / 2), round(x - size[1] / 2)
                    scored[
                        max(0, up - REACH) : max(0, up + REACH + 1),
                        max(0, across - REACH) : max(0, across + REACH + 1),
                    ] = -1
        least = PERSON_POSSIBLE if clothes(entity) else POSSIBLE
        possible = [place for place in places if place.match.score >= least]
        return sorted(possible, key=lambda place: -place.match.score)[:PLACES]

    def _best_fit(
        self, fit: _Fit, near: Match, factor: int, variants: Iterable[tuple[float, int]]
    ) -> _Fit:
        """The best of some variants of a drawing, each a factor on its size and a view, about a
        place of the image shrunk by a factor."""
        fits = []
        for size, view in variants:
            scale = round(fit.scale * size, 4)
            drawn = _close_views(fit.entity, fit.pose, scale, fit.tone, factor)
            match = self._correlate(drawn[min(view, len(drawn) - 1)], near, factor)
            fits.append(replace(fit, scale=scale, view=view, match=match))
        return max(fits, key=_fitness)

    def _correlate(self, view: _View, near: Match, factor: int) -> Match:
        """The best match of one drawing of a figure about a place, both shrunk by a factor."""
        from scipy import fft

        searched = self._finer(factor)
        height, width = view.mask.shape
        edge = EDGE // factor
        top = round(near.y * HEIGHT / factor - height / 2) + edge - REACH
        left = round(near.x * WIDTH / factor - width / 2) + edge - REACH
        top, left = max(0, top), max(0, left)
        window = searched[top : top + height + 2 * REACH, left : left + width + 2 * REACH]
        if window.shape[0] < height or window.shape[1] < width:
            return replace(near, score=-1)
        shape = tuple(fft.next_fast_len(side, real=True) for side in window.shape[:2])
        templates = _Templates.of([view], [0], shape)
        scores = _Transformed.of(window, shape).correlate(templates, UNLIKE)
        scores = scores[:, : window.shape[0] - height + 1, : window.shape[1] - width + 1]
        _, row, column = _highest(scores)
        return _match(scores[0, row, column], top + row, left + column, (height, width), factor)

    def change(self, changed: SearchedImage, match: Match) -> float:
        """Mean difference of the colors in the box of a match, in [0, 1]."""
        rows = slice(*_span(match.y, match.height, self._pixels.shape[0]))
        columns = slice(*_span(match.x, match.width, self._pixels.shape[1]))
        return float(np.abs(self._pixels[rows, columns] - changed._pixels[rows, columns]).mean())

    def without(self, match: Match) -> SearchedImage:
        """The image with the box of a match painted over in the mean color."""
        copy = object.__new__(SearchedImage)
        copy._image, copy._hidden, copy._fine = self._image, (*self._hidden, match), {}
        copy._pixels = self._pixels.copy()
        _paint_over(copy._pixels, match)
        copy._transform()
        return copy


def _shrunk(image: Image.Image, factor: int) -> NDArray[np.float32]:
    """Colors in [0, 1] of an image at the renderer's size, shrunk; shape (h, w, 3)."""
    size = (WIDTH // factor, HEIGHT // factor)
    colors = np.asarray(image.resize(size, Image.Resampling.BOX), dtype=np.float32)
    return colors / np.float32(255)


def _paint_over(pixels: NDArray[np.float32], match: Match) -> None:
    """Paints the box of a match in the mean color."""
    rows = slice(*_span(match.y, match.height, pixels.shape[0]))
    columns = slice(*_span(match.x, match.width, pixels.shape[1]))
    pixels[rows, columns] = pixels.mean(axis=(0, 1))


def _bordered(pixels: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """Colors, shrunk by a factor, with the colors of their border around them."""
    edge = EDGE // factor
    return np.pad(pixels, ((edge, edge), (edge, edge), (0, 0)), mode="edge")


def _match(score: float, top: int, left: int, size: tuple[int, int], factor: int) -> Match:
    """A match by the upper left corner and the height and width of its template, in pixels of a
    bordered image shrunk by a factor."""
    rows, columns = HEIGHT // factor, WIDTH // factor
    return Match(
        score=float(score),
        x=(left - EDGE // factor + size[1] / 2) / columns,
        y=(top - EDGE // factor + size[0] / 2) / rows,
        width=size[1] / columns,
        height=size[0] / rows,
    )


def _span(center: float, size: float, length: int) -> tuple[int, int]:
    low = round((center - size / 2) * length)
    return max(0, low), min(length, low + round(size * length))


def _views(entity: str, pose: str, scale: float, tone: str) -> list[Image.Image]:
    """A figure facing right and left, and both mirrored where that is another image.

    Effects such as a crack or drops keep their place whichever way a figure faces, so that the
    mirror image of a rendered figure need not be one that the renderer draws.
    """
    drawn = [acting_image(Figure(entity, 0.5, 0.9, scale, faces, pose, tone)) for faces in (1, -1)]
    mirrored = [ImageOps.mirror(image) for image in drawn]
    return drawn + [image for image in mirrored if image not in drawn]


@lru_cache(maxsize=128)  # a view may take half a megabyte
def _close_views(entity: str, pose: str, scale: float, tone: str, factor: int) -> list[_View]:
    return [_View.of(figure, factor) for figure in _views(entity, pose, scale, tone)]


@lru_cache(maxsize=1024)
def _templates(entity: str, pose: str, scales: tuple[float, ...]) -> _Templates:
    tone = SEARCHED_TONE if clothes(entity) else ""
    views = [
        (scale, _View.of(figure, SHRINK))
        for scale in scales
        for figure in _views(entity, pose, scale, tone)
    ]
    return _Templates.of([view for _, view in views], [scale for scale, _ in views], _SHAPE)
