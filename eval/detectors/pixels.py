"""`pixels`: figures of the atlas by template matching; `scene`: what the renderer says it drew.

`pixels` sees pixels alone and may err; its masks are the matched templates. `scene` is the truth:
boxes and visible pixels of every figure, from the image's own metadata.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np
from PIL import Image

from ...scenes.drawing import acting_image, placed_image
from ...scenes.language import mentions
from ...scenes.matching import SCALES, SHRINK, SMALL, Match, SearchedImage
from ...scenes.scene import HEIGHT, WIDTH, Figure, Scene
from ...scenes.sprites import atlas_digest, entity_names
from ..geometry.boxes import Size
from . import Detection, DetectorError, Mask, Request, inside, mask_box, ranked
from .loading import SingleImageDetector

FOUND = 0.6
"""Correlation from which a figure counts as there, as the judge `pixels` has it."""
BETWEEN = (0.64, 0.68, 0.72, 0.76)
"""Sizes of three in a row, and of figures behind another."""
SIZES = (*SCALES, *SMALL, *BETWEEN)
"""Of figures beside each other, one above the other, and in between."""
LIKE = 40.0
"""Mean difference of colors, of 255, up to which a match is the figure itself: correlation alone
takes a frame on the wall for a chair. Of 93 figures 91 are below, of 70 false matches 3."""
MOST = 8
"""Matches looked at in one image."""


def entity(query: str) -> str:
    """The atlas' name of a query; DetectorError for none."""
    if query in entity_names():
        return query
    named = {one.entity for one in mentions(query) or mentions(f"a {query}")}
    if len(named) != 1:
        raise DetectorError(f"{query!r} is no single entity of the atlas", code="unknown-class")
    return named.pop()


class AtlasDetector(SingleImageDetector):
    """A detector of the atlas' figures, without options."""

    KIND: ClassVar[str]

    def identity(self) -> dict[str, str]:
        return {"kind": self.KIND, "version": "2", "atlas": atlas_digest()[:12]}


class PixelDetector(AtlasDetector):
    """Takes the best match of all queries, hides it, and looks again until nothing is left."""

    KIND = "pixels"

    def _found(self, request: Request) -> list[Detection]:
        names = {query: entity(query) for query in request.queries}
        # Three and more are never drawn at the full size.
        sizes = SIZES if len(names) < 3 else SIZES[len(SCALES) :]
        left = SearchedImage(request.image)
        matches = {query: left.find(name, scales=sizes) for query, name in names.items()}
        found: list[Detection] = []
        for _ in range(MOST if names else 0):
            query = max(matches, key=lambda q: matches[q].score)
            match = matches[query]
            if match.score < FOUND:
                break
            mask, difference = _template_mask(request.image, names[query], match)
            box = mask_box(mask)
            if box is not None and difference <= LIKE:
                found.append(Detection(query, min(1.0, match.score), box, mask))
            left = left.without(match)
            # What lies elsewhere is still the best of its kind.
            for other, kept in matches.items():
                if other == query or kept.overlap(match) > 0:
                    matches[other] = left.find(names[other], scales=sizes)
        return ranked(found)


def _template_mask(image: Image.Image, name: str, match: Match) -> tuple[Mask, float]:
    """The pixels of the figure, as the template drawn in the match's place that differs least, and
    how much that differs in color, of 255."""
    shown = np.asarray(image.convert("RGB").resize((WIDTH, HEIGHT)), dtype=float)
    found: list[tuple[float, Mask]] = []
    for scale, faces in product(SIZES, (1, -1)):
        figure = acting_image(Figure(name, 0.5, 0.9, scale, faces))
        if abs(figure.width / WIDTH - match.width) > 1.5 * SHRINK / WIDTH:
            continue
        layer = Image.new("RGBA", (WIDTH, HEIGHT))
        left = round(match.x * WIDTH - figure.width / 2)
        layer.paste(figure, (left, round(match.y * HEIGHT - figure.height / 2)))
        drawn = np.asarray(layer, dtype=float)
        mask = drawn[..., 3] > 128
        if mask.any():
            found.append((float(abs(drawn[mask][:, :3] - shown[mask]).mean()), mask))
    if not found:
        return np.zeros((image.height, image.width), bool), 255.0
    difference, best = min(found, key=lambda one: one[0])
    sized = Image.fromarray(best).resize(image.size, Image.Resampling.NEAREST)
    return np.asarray(sized), difference


class SceneDetector(AtlasDetector):
    """The truth of a rendered image, from its metadata; needs the image as it was written."""

    KIND = "scene"

    def _found(self, request: Request) -> list[Detection]:
        text = request.image.info.get("scene")
        if not isinstance(text, str):
            raise DetectorError(
                "the image says nothing of its scene: only `render:` writes it", code="no-scene"
            )
        scene = Scene.from_json(text)
        names = {entity(query): query for query in request.queries}
        size = Size(*request.image.size)
        scale = (size.width / WIDTH, size.height / HEIGHT) * 2
        found = []
        for number, figure in enumerate(scene.figures):
            if figure.entity not in names:
                continue
            mask = visible(scene, number)
            box = mask_box(mask)
            scaled = box and inside(np.multiply(box, scale), size)
            if scaled is not None:
                full = Image.fromarray(mask).resize(size, Image.Resampling.NEAREST)
                found.append(Detection(names[figure.entity], 1.0, scaled, np.asarray(full)))
        return found


def visible(scene: Scene, number: int) -> Mask:
    """Pixels of a figure that no later one covers, shape (HEIGHT, WIDTH)."""
    own = _opaque(scene.figures[number])
    for later in scene.figures[number + 1 :]:
        own &= ~_opaque(later)
    return own


def _opaque(figure: Figure) -> Mask:
    """Pixels that a figure paints, shape (HEIGHT, WIDTH), without its shadow."""
    image, box = placed_image(figure)
    layer = Image.new("L", (WIDTH, HEIGHT))
    layer.paste(image.getchannel("A"), box[:2])
    return np.asarray(layer) > 128
