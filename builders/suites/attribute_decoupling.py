"""`attribute_decoupling`: concepts with a rare and a common attribute (CF-World 5.2, 100 + 100)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...schema import AttributeDecoupling, Provenance
from ..attributes import PLACE, AttributePair, Rarity, rarity_faults
from ..checks import count_faults, duplicate_faults, equal_fault, text_faults
from ..suite import Banks, Fault, SuiteRecipe

PAIRS = 100


def build(banks: Banks, rng: random.Random) -> list[AttributeDecoupling]:
    """Every pair of the bank, rare row first; nothing is sampled."""
    return [
        AttributeDecoupling(
            pair=pair.id,
            rarity=rarity,
            concepts=[pair.concept, attribute],
            seen=banks.counted.sightings(f"{pair.id}/{rarity}"),
            prompt=pair.prompt.replace(PLACE, attribute),
            assessment_point=pair.shows.replace(PLACE, attribute),
            review=["code", *pair.review],
            provenance=Provenance(
                bank="attributes.yaml", entry=pair.id, author="curated", calls=[]
            ),
        )
        for pair in banks.attributes[:PAIRS]
        for rarity, attribute in _attributes(pair).items()
    ]


def _attributes(pair: AttributePair) -> dict[Rarity, str]:
    return {"rare": pair.rare, "common": pair.common}


def faults(rows: list[AttributeDecoupling], banks: Banks) -> Iterator[Fault]:
    bank: dict[str, AttributePair] = {pair.id: pair for pair in banks.attributes}
    for row in rows:
        yield from text_faults(row, "prompt", "assessment_point")
        if (pair := bank.get(row.pair)) is not None:
            attribute = _attributes(pair)[row.rarity]
            yield from equal_fault(row, "concepts", [pair.concept, attribute])
            sightings = banks.counted.sightings(f"{pair.id}/{row.rarity}")
            yield from equal_fault(row, "seen", sightings)
            yield from equal_fault(row, "prompt", pair.prompt.replace(PLACE, attribute))
            yield from equal_fault(row, "assessment_point", pair.shows.replace(PLACE, attribute))
    for name, message in rarity_faults(banks.attributes[:PAIRS], banks.counted):
        yield Fault("", "seen", f"{name}: {message}")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    yield from count_faults(rows, "rarity", {"rare": PAIRS, "common": PAIRS})


SUITE = SuiteRecipe(
    name="attribute_decoupling",
    rows=2 * PAIRS,
    source="CF-World 5.2 (pairs ours)",
    summary="The same sentence with a rare and with a common attribute, place or partner: is the "
    "prompt drawn, or the habit?",
    build=build,
    faults=faults,
    # The rare and the common attribute.
    group=lambda row: ("attribute", row.pair),
    breakdown=("rarity",),
)
