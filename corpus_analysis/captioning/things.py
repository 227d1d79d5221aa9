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
"""Of a box, share of the image, below which a thing is too small to ask about."""
LONGEST_SIDE = 1024
"""Of an image as it is shown, pixels; larger ones are scaled down."""


@dataclass(frozen=True)
class TwoThings:
    """An image of which we know that one thing stands left of another."""

    id: str
    """Unique among the images of a run."""
    left: CaptionEntity
    """What stands on the left."""
    right: CaptionEntity
    """What stands on the right."""
    digest: str
    """Changes where the image does."""
    open: Callable[[], Image]
    """The image, RGB. Raises ImageError where it can't be read."""

    @property
    def names(self) -> tuple[str, str]:
        """Both names, sorted."""
        first, second = sorted((self.left.name, self.right.name))
        return first, second


def drawn(count: int, seed: int) -> list[TwoThings]:
    """Rendered scenes of two different animals or objects, drawn at random; no people, whose
    occupations have too many names."""
    ontology, renderer = Ontology.read(), open_generator("render:")
    version = "/".join(renderer.identity().values())
    entities = [ontology.surface.get(n) for n in entity_names() if clothes(n) is None]
    named = [entity for entity in entities if entity is not None]
    pairs = [pair for pair in itertools.permutations(named, 2) if distinct(*pair)]
    rng = random.Random(f"two things/{seed}")
    chosen = itertools.islice(_rounds(pairs, rng), count)
    found = []
    for number, (left, right) in enumerate(chosen):
        prompt = f"A {left.name} on the left and a {right.name} on the right."
        request = ImageRequest(prompt, seed=number)
        found.append(
            TwoThings(
                id=f"scene-{number:05}",
                left=left,
                right=right,
                digest=sha256(f"{version}/{prompt}/{number}".encode()).hexdigest(),
                open=partial(draw, renderer, request),
            )
        )
    return found


def _rounds(
    pairs: list[tuple[CaptionEntity, CaptionEntity]], rng: random.Random
) -> Iterator[tuple[CaptionEntity, CaptionEntity]]:
    """All pairs in random order, again and again."""
    while True:
        yield from rng.sample(pairs, len(pairs))


@dataclass(frozen=True)
class Photographs:
    """Photographs with boxes, and why others were not taken."""

    things: tuple[TwoThings, ...]
    """In the order of the file."""
    skipped: dict[str, int]
    """Reason -> images."""
    ids: dict[str, str]
    """What captions may call a photograph (its number, file name or address) -> its id."""


def photographs(boxes: Path, folder: Path | None, limit: int | None = None) -> Photographs:
    """The photographs in which two things of different classes stand side by side.

    Each is the only one of its class, so that a name says which is meant. Of several such pairs the
    one counts whose smaller thing is largest. folder: where the files lie, by file name; without
    it, images can't be opened. limit: most images to take. Raises UsageError, DataError for boxes
    that can't be read, and UsageError where no image shows two things.
    """
    skipped = dict.fromkeys(("few_classes", "not_beside", "no_file"), 0)
    found: list[TwoThings] = []
    ids: dict[str, str] = {}
    for image in Instances.read(boxes).images:
        if limit is not None and len(found) == limit:
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
            found.append(things)
            ids |= dict.fromkeys((image.id, name, *image.names), image.id)
    if not found:
        why = ", ".join(f"{reason} {count:,}" for reason, count in skipped.items())
        raise UsageError(
            f"{boxes}: no image shows two things side by side ({why})", code="nothing-to-do"
        )
    return Photographs(tuple(found), skipped, ids)


def _two(image: BoxedImage) -> tuple[CaptionEntity, CaptionEntity] | str:
    """The left and the right thing of an image, or why there are none."""
    ontology = Ontology.read()
    single: list[tuple[CaptionEntity, Box]] = []
    for name, boxes in image.boxes.items():
        entity = ontology.surface.get(name.lower())
        one = len(boxes) == 1 and name not in image.crowds
        if one and entity is not None and boxes[0].area >= LEAST_AREA:
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
