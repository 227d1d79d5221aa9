"""COCO's captions with a relation added that people's boxes show (PSE paper, Table 8).

The paper takes 20,000 images of 2017 with a distinct relation and adds it to their captions; it
prints no rule, so the rule is ours: both things occur once, their boxes share no column or no row,
and of several pairs the one whose smaller box is largest counts.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from ...errors import DataError
from ...parsing import parse, read_json
from ..geometry.boxes import Box
from ..geometry.instances import BoxedImage, Instances
from .asking import Stated

CAPTIONS, INSTANCES = "captions", "instances"
"""Starts of the names of COCO's two files of one split."""
PHRASES = {
    "left_of": "to the left of",
    "right_of": "to the right of",
    "above": "above",
    "below": "below",
}
"""Relation -> its words."""


class CaptionRow(BaseModel):
    """An annotation of COCO's file of captions."""

    image_id: int
    caption: Annotated[str, Field(min_length=1)]


def captions_with_relations(path: Path) -> Iterator[tuple[str, str, Stated]]:
    """Image, caption with the added relation, and the relation, for each image that has one.

    path: COCO's ``captions_SPLIT.json``; ``instances_SPLIT.json`` lies beside it. The first caption
    of an image counts. Raises DataError that names file, annotation and field.
    """
    boxes = path.with_name(path.name.replace(CAPTIONS, INSTANCES, 1))
    if boxes == path or not boxes.is_file():
        raise DataError(
            f"{path}: needs COCO's boxes of the same images beside it",
            f"name the file {CAPTIONS}_SPLIT.json, beside {INSTANCES}_SPLIT.json",
            code="no-such-file",
        )
    content = read_json(path)
    entries = content.get("annotations") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise DataError(f"{path}: has no list `annotations`", code="missing-field")
    caption_by_image: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        fields = parse(CaptionRow, entry, path, number)
        caption_by_image.setdefault(str(fields.image_id), fields.caption)
    for image in Instances.read(boxes).images:
        caption, claim = caption_by_image.get(image.id), distinct_relation(image)
        if caption is not None and claim is not None:
            sentence = f"{_a(claim.a).capitalize()} is {PHRASES[claim.relation]} {_a(claim.b)}."
            yield image.id, f"{caption.strip().rstrip('.')}. {sentence}", claim


def distinct_relation(image: BoxedImage) -> Stated | None:
    """The relation in the plane that is plainest in an image; None without any.

    Which of the two things comes first is drawn, so that no order of mention is the usual one.
    """
    single = {
        name: boxes[0]
        for name, boxes in sorted(image.boxes.items())
        if len(boxes) == 1 and name not in image.crowds
    }
    claims = [
        (min(single[a].area, single[b].area), a, relation, b)
        for a, b in itertools.combinations(single, 2)
        if (relation := _apart(single[a], single[b]))
    ]
    if not claims:
        return None
    _, a, relation, b = max(claims)
    if random.Random(f"{image.id}/first").random() < 0.5:
        reverse = {"left_of": "right_of", "right_of": "left_of", "above": "below", "below": "above"}
        a, relation, b = b, reverse[relation], a
    return Stated(a, relation, b)


def _apart(a: Box, b: Box) -> str:
    """Where a is, seen from b, if they share no column or no row; else empty."""
    gaps = {
        "left_of": b.x1 - a.x2,
        "right_of": a.x1 - b.x2,
        "above": b.y1 - a.y2,
        "below": a.y1 - b.y2,
    }
    relation = max(gaps, key=gaps.__getitem__)
    return relation if gaps[relation] >= 0 else ""


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
