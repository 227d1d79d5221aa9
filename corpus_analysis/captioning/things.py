"""Images with two things side by side: drawn, or photographs with boxes; the rows of a run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ...errors import UsageError
from ...eval.core import ImageRequest
from ...eval.generators import draw, open_generator
from ...eval.geometry.boxes import Box, is_apart, is_beside
from ...eval.geometry.instances import BoxedImage, Instances
from ...eval.suites.caption_order import UNPUBLISHED
from ...images import ImageError, encode_png, open_image
from ...scenes.sprites import clothes, entity_names
from ...schema import CaptionOrder
from ...storage import write_whole
from ..captions.ontology import CaptionEntity, Ontology, distinct

LEAST_AREA = 0.01
"""Least area of a thing's box, share of the image."""
SCENES = "scenes"
"""Folder of the drawn scenes, in the folder of a run."""


def scenes(count: int, seed: int, folder: Path) -> list[CaptionOrder]:
    """Draws scenes of two different animals or objects, at random; no people, whose occupations
    have too many names. folder: of the images; those that are there are not drawn again."""
    ontology, renderer = Ontology.read(), open_generator("render:")
    version = "/".join(renderer.identity().values())
    entities = [ontology.surface.get(n) for n in entity_names() if clothes(n) is None]
    named = [entity for entity in entities if entity is not None]
    pairs = [pair for pair in itertools.permutations(named, 2) if distinct(*pair)]
    rng = random.Random(f"two things/{seed}")
    chosen = itertools.islice(_rounds(pairs, rng), count)
    rows = []
    for number, (left, right) in enumerate(chosen):
        prompt = f"A {left.name} on the left and a {right.name} on the right."
        digest = sha256(f"{version}/{prompt}/{number}".encode()).hexdigest()[:12]
        path = folder / f"{number:05}-{digest}.png"
        if not path.exists():
            write_whole(path, encode_png(draw(renderer, ImageRequest(prompt, seed=number))))
        rows.append(_row(f"scene-{number:05}", number, left, right, path))
    return rows


def _row(
    image: str,
    place: int,
    left: CaptionEntity,
    right: CaptionEntity,
    path: Path | None,
    is_readable: bool = True,
) -> CaptionOrder:
    return CaptionOrder(
        image=image,
        place=place,
        left=left.name,
        right=right.name,
        left_category=left.category,
        right_category=right.category,
        image_sha256="" if path is None else sha256(path.read_bytes()).hexdigest(),
        is_readable=is_readable,
        file="" if path is None else str(path),
        **UNPUBLISHED,
    )


def _rounds(
    pairs: list[tuple[CaptionEntity, CaptionEntity]], rng: random.Random
) -> Iterator[tuple[CaptionEntity, CaptionEntity]]:
    """Yields all pairs in random order, endlessly."""
    while True:
        yield from rng.sample(pairs, len(pairs))


@dataclass(frozen=True)
class Photographs:
    """Photographs with boxes, and counts of others by the reason to skip them."""

    rows: tuple[CaptionOrder, ...]
    """In the order of the file."""
    skipped: dict[str, int]
    """Reason -> images."""
    ids: dict[str, str]
    """Name of a photograph in captions (number, file name or address) -> its name in the rows."""


def photographs(boxes: Path, folder: Path | None, limit: int | None = None) -> Photographs:
    """Reads the photographs in which two things of different classes stand side by side.

    Each is the only one of its class, so that its name is unambiguous. Of several such pairs, the
    one whose smaller thing is largest counts. folder: of the files, by file name; without it,
    images can't be shown. limit: most images to take. Raises UsageError, DataError for
    unreadable boxes, and UsageError if no image shows two things.
    """
    skipped = dict.fromkeys(("few_classes", "not_beside", "no_file"), 0)
    chosen: list[CaptionOrder] = []
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
            chosen.append(_row(image.id, len(chosen), *pair, path, path is None or _is_image(path)))
            ids |= dict.fromkeys((image.id, name, *image.names), image.id)
    if not chosen:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in skipped.items())
        raise UsageError(
            f"{boxes}: no image shows two things side by side ({reasons})", code="nothing-to-do"
        )
    return Photographs(tuple(chosen), skipped, ids)


def _is_image(path: Path) -> bool:
    try:
        open_image(path)
    except ImageError:
        return False
    return True


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
