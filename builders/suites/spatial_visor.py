"""`spatial_visor`: the 25,280 two-object spatial prompts of VISOR, with their published ids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

from ...schema import Provenance, SpatialVISOR
from ..checks import duplicate_faults
from ..phrases import indefinite
from ..suite import Banks, Fault, SuiteRecipe
from .spatial_uc import PHRASES

PROMPTS_PER_PAIR = 10
"""Published ids count four relations in two orders, and two prompts with `and`, for every pair."""


def build(banks: Banks, rng: random.Random) -> list[SpatialVISOR]:
    """Every pair of the 80 COCO classes in both orders and four relations; nothing is sampled."""
    labels = [entry.label for entry in banks.coco]
    rows = []
    for pair, (first, second) in enumerate(combinations(labels, 2)):
        for number, (relation, phrase) in enumerate(PHRASES.items()):
            for swapped, (a, b) in enumerate(((first, second), (second, first))):
                rows.append(
                    SpatialVISOR(
                        visor_id=PROMPTS_PER_PAIR * pair + 2 * number + swapped,
                        relation=relation,
                        object_a=a,
                        object_b=b,
                        prompt=f"{indefinite(a)} {phrase} {indefinite(b)}",
                        review=["code"],
                        provenance=Provenance(
                            bank="coco.yaml", entry=f"{a}, {b}", author="VISOR", calls=[]
                        ),
                        license="MIT",
                    )
                )
    return rows


def faults(rows: list[SpatialVISOR], banks: Banks) -> Iterator[Fault]:
    published = {row.visor_id: row for row in build(banks, random.Random())}
    for row in rows:
        original = published.get(row.visor_id)
        if original is None:
            yield Fault(row.id, "visor_id", f"{row.visor_id} is not a two-object spatial prompt")
            continue
        for field in ("relation", "object_a", "object_b", "prompt", "license"):
            if getattr(row, field) != getattr(original, field):
                yield Fault(row.id, field, f"differs from VISOR's prompt {row.visor_id}")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)


SUITE = SuiteRecipe(
    name="spatial_visor",
    rows=25_280,
    source="VISOR (microsoft/VISOR), as scored by PSE",
    summary="Every pair of the 80 COCO classes, both orders, four relations.",
    build=build,
    faults=faults,
    group=None,
    breakdown=("relation",),
    license="MIT",
)
