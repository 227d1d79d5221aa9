"""`pixels`: figures of the atlas by template matching; `scene`: what the renderer says it drew.

`pixels` sees pixels alone and may err; its masks are the matched templates. `scene` is the truth:
boxes and visible pixels of every figure, from the image's own metadata.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import ClassVar

import numpy as np
from PIL import Image

from ...scenes.drawing import acting_image, placed_image
from ...scenes.language import entity_of
from ...scenes.matching import OF_SEVERAL, SCALES, SHRINK, Match, SearchedImage
from ...scenes.scene import HEIGHT, WIDTH, Figure, Scene
from ...scenes.sprites import TONES, atlas_digest, clothes, entity_names
from ..geometry.boxes import Size
from . import Detection, DetectorError, Mask, Request, inside, mask_box, ranked
from .loading import SingleImageDetector

FOUND = 0.6
"""Minimum correlation of a detected figure, as in the judge `pixels`."""
SIZES = (*SCALES, *OF_SEVERAL)
"""All sizes: one of two figures may stand behind the other."""
LIKE = 40.0
"""Maximum mean difference of colors, of 255, of a true match: correlation alone
takes a frame on the wall for a chair. Of 93 figures 91 are below, of 70 false matches 3."""
MOST = 8
"""Maximum number of matches in one image."""


def entity(query: str) -> str:
    """Returns the atlas' name of a query. Raises DetectorError unless it names one entity."""
    if query in entity_names():
        return query
    try:
        return entity_of(query)
    except ValueError as error:
        raise DetectorError(str(error), code="unknown-class") from error


class AtlasDetector(SingleImageDetector):
    """Detector of the atlas' figures, without options."""

    KIND: ClassVar[str]

    def identity(self) -> dict[str, str]:
        return {"kind": self.KIND, "version": "3", "atlas": atlas_digest()[:12]}


class PixelDetector(AtlasDetector):
    """Takes the best match of all queries, hides it, and searches again until none remains."""

    KIND = "pixels"

    def detect_image(self, request: Request) -> list[Detection]:
        entities = {query: entity(query) for query in request.queries}
        sizes = SIZES if len(entities) < 3 else OF_SEVERAL
        remaining = SearchedImage(request.image)
        matches = {query: remaining.find(name, scales=sizes) for query, name in entities.items()}
        detections: list[Detection] = []
        for _ in range(MOST if entities else 0):
            query = max(matches, key=lambda q: matches[q].score)
            match = matches[query]
            if match.score < FOUND:
                break
            mask, difference = _template_mask(request.image, entities[query], match)
            box = mask_box(mask)
            if box is not None and difference <= LIKE:
                detections.append(Detection(query, min(1.0, match.score), box, mask))
            remaining = remaining.without(match)
            # Matches elsewhere are still the best of their query.
            for other_query, other_match in matches.items():
                if other_query == query or other_match.overlap(match) > 0:
                    matches[other_query] = remaining.find(entities[other_query], scales=sizes)
        return ranked(detections)


def _template_mask(image: Image.Image, name: str, match: Match) -> tuple[Mask, float]:
    """Returns the figure's pixels by the template that differs least in the match's place, and
    their mean difference of colors, of 255."""
    pixels = np.asarray(image.convert("RGB").resize((WIDTH, HEIGHT)), dtype=float)
    candidates: list[tuple[float, Mask]] = []
    tones = ("", *TONES) if clothes(name) else ("",)
    for scale, faces, tone in product(SIZES, (1, -1), tones):
        figure = Figure(name, 0.5, 0.9, scale, faces, tone=tone)
        if abs(_width(figure) / WIDTH - match.width) > 1.5 * SHRINK / WIDTH:
            continue
        template = acting_image(figure)
        layer = Image.new("RGBA", (WIDTH, HEIGHT))
        x = round(match.x * WIDTH - template.width / 2)
        layer.paste(template, (x, round(match.y * HEIGHT - template.height / 2)))
        drawn = np.asarray(layer, dtype=float)
        mask = drawn[..., 3] > 128
        if mask.any():
            candidates.append((float(abs(drawn[mask][:, :3] - pixels[mask]).mean()), mask))
    if not candidates:
        return np.zeros((image.height, image.width), bool), 255.0
    difference, best = min(candidates, key=lambda candidate: candidate[0])
    sized = Image.fromarray(best).resize(image.size, Image.Resampling.NEAREST)
    return np.asarray(sized), difference


@lru_cache(maxsize=4096)
def _width(figure: Figure) -> int:
    """Width of a figure as it is drawn, in pixels.

    Cached, because most sizes are too far from a match to be drawn, and the images of a run show
    the same figures again and again.
    """
    return acting_image(figure).width


class SceneDetector(AtlasDetector):
    """The truth of a rendered image, from its metadata; needs the image as it was written."""

    KIND = "scene"

    def detect_image(self, request: Request) -> list[Detection]:
        text = request.image.info.get("scene")
        if not isinstance(text, str):
            raise DetectorError(
                "the image does not hold its scene: only `render:` writes it", code="no-scene"
            )
        scene = Scene.from_json(text)
        if scene.drawing:
            raise DetectorError(
                f"the image is a drawing ({scene.drawing}) and has no figures of the atlas",
                code="no-scene",
            )
        queries = {entity(query): query for query in request.queries}
        size = Size(*request.image.size)
        scale = (size.width / WIDTH, size.height / HEIGHT) * 2
        detections = []
        for number, figure in enumerate(scene.figures):
            if figure.entity not in queries:
                continue
            mask = visible(scene, number)
            box = mask_box(mask)
            scaled = box and inside(np.multiply(box, scale), size)
            if scaled is not None:
                full = Image.fromarray(mask).resize(size, Image.Resampling.NEAREST)
                detections.append(Detection(queries[figure.entity], 1.0, scaled, np.asarray(full)))
        return detections


def visible(scene: Scene, number: int) -> Mask:
    """Mask of the pixels of a figure that no later figure covers, shape (HEIGHT, WIDTH)."""
    mask = _opaque(scene.figures[number])
    for later in scene.figures[number + 1 :]:
        mask &= ~_opaque(later)
    return mask


def _opaque(figure: Figure) -> Mask:
    """Pixels that a figure paints, shape (HEIGHT, WIDTH), without its shadow."""
    image, box = placed_image(figure)
    layer = Image.new("L", (WIDTH, HEIGHT))
    layer.paste(image.getchannel("A"), box[:2])
    return np.asarray(layer) > 128
