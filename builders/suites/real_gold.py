"""`real_gold`: what readers saw in 1,600 images of four generators, without the images."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from ...readings import columns_of
from ...schema import Provenance, RealGold, SpatialVISOR
from ..real import FILE, ImageReadings, Reader
from ..suite import Banks, Fault, SuiteRecipe
from .spatial_visor import published_row


def build(banks: Banks, rng: random.Random) -> list[RealGold]:
    """Every image of the bank."""
    prompts: dict[int, SpatialVISOR | None] = {}
    rows = []
    for image in banks.real:
        number = image.prompt_id
        prompts.setdefault(number, published_row(banks, number))
        rows.append(_row(image, prompts[number], banks.readers))
    return rows


def _row(
    image: ImageReadings, prompt: SpatialVISOR | None, readers: Mapping[str, Reader]
) -> RealGold:
    stated = (
        prompt.model_dump(include={"prompt", "relation", "object_a", "object_b"}) if prompt else {}
    )
    return RealGold(
        image_file=image.image,
        image_sha256=image.sha256,
        model=image.model,
        source_id=prompt.id if prompt else "",
        review=["code"],
        provenance=Provenance(bank=FILE, entry=image.image, author="readers", calls=[]),
        **{"object_a": "", "object_b": "", **stated},
        **columns_of(image.readings, {name: reader.kind for name, reader in readers.items()}),
    )


def faults(rows: list[RealGold], banks: Banks) -> Iterator[Fault]:
    built = {row.image_file: row for row in build(banks, random.Random())}
    for row in rows:
        original = built.get(row.image_file)
        if not row.prompt:
            yield Fault(row.id, "image_file", f"{row.image_file}: VISOR has no such prompt")
        if len(row.readers) < 2:
            yield Fault(row.id, "readers", "has fewer than two readers")
        if original is None:
            yield Fault(row.id, "image_file", f"{row.image_file} is not in the bank")
            continue
        for field in RealGold.model_fields:
            if field not in ("id", "status") and getattr(row, field) != getattr(original, field):
                yield Fault(row.id, field, "differs from what the bank's readings give")


SUITE = SuiteRecipe(
    name="real_gold",
    rows=1_600,
    source="images of microsoft/VISOR, MIT; our readings",
    summary="What readers saw in images that four generators made of 100 prompts of VISOR: labels "
    "and file names, no images; to check judges.",
    build=build,
    faults=faults,
    group=None,
    breakdown=("model",),
    optional=True,
)
