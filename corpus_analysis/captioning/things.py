"""Images with two things side by side: drawn, or photographs with boxes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from PIL.Image import Image

from ...errors import UsageError
from ...eval.core import ImageRequest
from ...eval.detectors.instances import BoxedImage, Instances
from ...eval.generators import draw, open_generator
from ...eval.geometry.boxes import Box, is_apart, is_beside
from ...images import open_image
from ...scenes.sprites import clothes, entity_names
from ..captions.ontology import CaptionEntity, Ontology, distinct

LEAST_AREA = 0.01
"""Least area of a thing's box, share of the image."""
LONGEST_SIDE = 1024
"""Longest side of an image as shown, pixels; larger images are scaled down."""


@dataclass(frozen=True)
class TwoThings:
    """An image in which one thing is known to stand left of another."""

    id: str
    """Unique among the images of a run."""
    left: CaptionEntity
    """Thing on the left."""
    right: CaptionEntity
    """Thing on the right."""
    digest: str
    """Changes with the image."""
    open: Callable[[], Image]
    """Opens the image, RGB. Raises ImageError if it is unreadable."""

    @property
    def names(self) -> tuple[str, str]:
        """Both names, sorted."""
        first, second = sorted((self.left.name, self.right.name))
        return first, second


def drawn(count: int, seed: int) -> list[TwoThings]:
    """Returns rendered scenes of two different animals or objects, at random; no people, whose
    occupations have too many names."""
    ontology, renderer = Ontology.read(), open_generator("render:")
    version = "/".join(renderer.identity().values())
    entities = [ontology.surface.get(n) for n in entity_names() if clothes(n) is None]
    named = [entity for entity in entities if entity is not None]
    pairs = [pair for pair in itertools.permutations(named, 2) if distinct(*pair)]
    rng = random.Random(f"two things/{seed}")
    chosen = itertools.islice(_rounds(pairs, rng), count)
    scenes = []
    for number, (left, right) in enumerate(chosen):
        prompt = f"A {left.name} on the left and a {right.name} on the right."
        request = ImageRequest(prompt, seed=number)
        scenes.append(
            TwoThings(
                id=f"scene-{number:05}",
                left=left,
                right=right,
                digest=sha256(f"{version}/{prompt}/{number}".encode()).hexdigest(),
                open=partial(draw, renderer, request),
            )
        )
    return scenes


def _rounds(
    pairs: list[tuple[CaptionEntity, CaptionEntity]], rng: random.Random
) -> Iterator[tuple[CaptionEntity, CaptionEntity]]:
    """Yields all pairs in random order, endlessly."""
    while True:
        yield from rng.sample(pairs, len(pairs))


@dataclass(frozen=True)
class Photographs:
    """Photographs with boxes, and counts of others by the reason to skip them."""

    things: tuple[TwoThings, ...]
    """In the order of the file."""
    skipped: dict[str, int]
    """Reason -> images."""
    ids: dict[str, str]
    """Name of a photograph in captions (number, file name or address) -> its id."""


def photographs(boxes: Path, folder: Path | None, limit: int | None = None) -> Photographs:
    """Reads the photographs in which two things of different classes stand side by side.

    Each is the only one of its class, so that its name is unambiguous. Of several such pairs, the
    one whose smaller thing is largest counts. folder: of the files, by file name; without it,
    images can't be opened. limit: most images to take. Raises UsageError, DataError for
    unreadable boxes, and UsageError if no image shows two things.
    """
    skipped = dict.fromkeys(("few_classes", "not_beside", "no_file"), 0)
    chosen: list[TwoThings] = []
    ids: dict[str, str] = {}
    for image in Instances.read(boxes).images:
        if limit is not None and len(chosen) == limit:
            break
        name = image.names[0].rpartition("/")[2]
        pair = _two(image)
        path = None if folder is None else folder / name
        if isinstance(pair, str):
            skipped[pair] += 1
        elif path is not None and not path.is_file():
            skipped["no_file"] += 1
        else:
            left, right = pair
            data = b"" if path is None else path.read_bytes()
            things = TwoThings(
                image.id, left, right, sha256(data).hexdigest(), partial(_show, path)
            )
            chosen.append(things)
            ids |= dict.fromkeys((image.id, name, *image.names), image.id)
    if not chosen:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in skipped.items())
        raise UsageError(
            f"{boxes}: no image shows two things side by side ({reasons})", code="nothing-to-do"
        )
    return Photographs(tuple(chosen), skipped, ids)


def _two(image: BoxedImage) -> tuple[CaptionEntity, CaptionEntity] | str:
    """Returns the left and the right thing of an image, or the reason that it has none."""
    ontology = Ontology.read()
    single: list[tuple[CaptionEntity, Box]] = []
    for name, boxes in image.boxes.items():
        entity = ontology.surface.get(name.lower())
        is_only = len(boxes) == 1 and name not in image.crowds
        if is_only and entity is not None and boxes[0].area >= LEAST_AREA:
            single.append((entity, boxes[0]))
    if len(single) < 2:
        return "few_classes"
    pairs = [
        sorted(pair, key=lambda thing: thing[1].center)
        for pair in itertools.combinations(single, 2)
        if distinct(pair[0][0], pair[1][0]) and _side_by_side(pair[0][1], pair[1][1])
    ]
    if not pairs:
        return "not_beside"
    left, right = max(pairs, key=lambda pair: min(box.area for _, box in pair))
    return left[0], right[0]


def _side_by_side(a: Box, b: Box) -> bool:
    return is_beside(a, b) and is_apart(a, b)


def _show(path: Path | None) -> Image:
    if path is None:
        raise UsageError(
            "a captioner needs the photographs: name their folder with --images",
            code="missing-option",
        )
    image = open_image(path)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return image
