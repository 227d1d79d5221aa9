"""`consistency`: given images with caption, edits and questions (ACON); only where there are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import BytesIO

from ...agents.consistency.material import material_faults
from ...agents.hygiene import text_fault
from ...schema import Consistency
from ..suite import Banks, Fault, SuiteRecipe

PARTS = ("caption", "edits", "questions")

CAPTION = 4_010
"""Most characters of a caption: ten sentences of the game."""


def build(banks: Banks, rng: random.Random) -> list[Consistency]:
    """Every item of the bank."""
    return list(banks.consistency)


def faults(rows: list[Consistency], banks: Banks) -> Iterator[Fault]:
    for row in rows:
        yield from (Fault(row.id, field, message) for field, message in _faults(row))


def _faults(row: Consistency) -> Iterator[tuple[str, str]]:
    """Field and fault; the material has the bounds of the game, since people mend banks."""
    if fault := text_fault(row.caption, CAPTION):
        yield "caption", fault
    yield from material_faults(row.questions, row.answers, row.edits)
    if not len(row.written_by) == len(row.checked_by) == len(PARTS):
        yield "checked_by", f"one wrote and one checked each of {', '.join(PARTS)}"
    else:
        for material, writer, checker in zip(PARTS, row.written_by, row.checked_by, strict=True):
            if writer == checker:
                yield "checked_by", f"{writer} checked its own {material}"
    yield from (("image", fault) for fault in _image_faults(row.image.bytes))


def _image_faults(data: bytes) -> Iterator[str]:
    from PIL import Image, UnidentifiedImageError

    from ...images import FORMATS

    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:  # reads the header only
            if (form := (image.format, image.mode)) != ("PNG", "RGB"):
                yield f"is {form[0]} {form[1]}, must be PNG RGB"
    except UnidentifiedImageError:
        yield "is not a readable image"


SUITE = SuiteRecipe(
    name="consistency",
    rows=None,
    source="ACON (images given)",
    summary="A given image with a dense caption, edits and yes/no questions: does what a model "
    "says, draws and edits agree with itself?",
    build=build,
    faults=faults,
    group=lambda row: ("image", row.provenance.entry),
    license=None,
    optional=True,
)
