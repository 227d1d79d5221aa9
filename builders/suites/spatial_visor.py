"""`spatial_visor`: the 25,280 two-object spatial prompts of VISOR, with their published ids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, islice

from ...schema import Provenance, SpatialVISOR
from ..checks import duplicate_faults
from ..phrases import indefinite
from ..suite import Banks, Fault, SuiteRecipe
from .spatial_uc import PHRASES

PROMPTS_PER_PAIR = 10
"""Published ids count four relations in two orders, and two prompts with `and`, for every pair."""


def build(banks: Banks, rng: random.Random) -> list[SpatialVISOR]:
    """Every pair of the 80 COCO classes in both orders and four relations; nothing is sampled."""
    return list(_published(tuple(entry.label for entry in banks.coco)))


@lru_cache(maxsize=2)
def _published(labels: tuple[str, ...]) -> tuple[SpatialVISOR, ...]:
    """Cached, because the checks of the rows compare them with what `build` made."""
    return tuple(
        _row(PROMPTS_PER_PAIR * number + place, pair)
        for number, pair in enumerate(combinations(labels, 2))
        for place in range(2 * len(PHRASES))
    )


def published_row(banks: Banks, visor_id: int) -> SpatialVISOR | None:
    """The row of a published id; None if it is no two-object spatial prompt."""
    number, place = divmod(visor_id, PROMPTS_PER_PAIR)
    pairs = combinations((entry.label for entry in banks.coco), 2)
    pair = next(islice(pairs, number, None), None) if number >= 0 else None
    return _row(visor_id, pair) if pair and place < 2 * len(PHRASES) else None


def _row(visor_id: int, pair: tuple[str, str]) -> SpatialVISOR:
    place = visor_id % PROMPTS_PER_PAIR
    relation, phrase = list(PHRASES.items())[place // 2]
    a, b = pair[::-1] if place % 2 else pair
    return SpatialVISOR(
        visor_id=visor_id,
        relation=relation,
        object_a=a,
        object_b=b,
        prompt=f"{indefinite(a)} {phrase} {indefinite(b)}",
        review=["code"],
        provenance=Provenance(bank="coco.yaml", entry=f"{a}, {b}", author="VISOR", calls=[]),
        license="MIT",
    )


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
