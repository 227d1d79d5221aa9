"""`spatial_distance`: two things near each other or far apart (after PSE, Eq. 8, 9: 400 rows)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from ...schema import Provenance, SpatialDistance, item_id
from ..balance import Rotation
from ..checks import count_faults, duplicate_faults, equal_fault, text_faults
from ..phrases import indefinite, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group

Distance = Literal["near", "far"]

PHRASES: dict[Distance, str] = {"near": "near", "far": "far from"}
PAIRS = 200
"""Pairs of things; each has a prompt for each distance, so that only the distance differs."""


def prompt(a: str, relation: Distance, b: str) -> str:
    """One sentence.

    >>> prompt("cat", "far", "umbrella")
    'A cat far from an umbrella.'
    """
    return sentence(f"{indefinite(a)} {PHRASES[relation]} {indefinite(b)}")


def build(banks: Banks, rng: random.Random) -> list[SpatialDistance]:
    labels = [entry.label for entry in banks.coco if entry.countable]
    things: Rotation[str] = Rotation(rng)
    pairs: list[tuple[str, str]] = []
    met: set[frozenset[str]] = set()
    while len(pairs) < PAIRS:
        a = things.take(labels)
        b = things.take([label for label in labels if label != a and {a, label} not in met])
        met.add(frozenset((a, b)))
        pairs.append((a, b) if len(pairs) % 2 else (b, a))
    return [
        SpatialDistance(
            relation=relation,
            object_a=a,
            object_b=b,
            prompt=prompt(a, relation, b),
            pair_id=item_id("spatial_distance-pair", *sorted((a, b))),
            review=["code"],
            provenance=Provenance(bank="coco.yaml", entry=f"{a}, {b}", author="rules", calls=[]),
        )
        for a, b in pairs
        for relation in PHRASES
    ]


def faults(rows: list[SpatialDistance], banks: Banks) -> Iterator[Fault]:
    labels = {entry.label for entry in banks.coco if entry.countable}
    pairs: dict[str, list[SpatialDistance]] = {}
    for row in rows:
        yield from text_faults(row, "prompt")
        yield from equal_fault(row, "prompt", prompt(row.object_a, row.relation, row.object_b))
        for field in ("object_a", "object_b"):
            if getattr(row, field) not in labels:
                yield Fault(row.id, field, f"{getattr(row, field)!r} is not a countable COCO label")
        pairs.setdefault(row.pair_id, []).append(row)
    for members in pairs.values():
        things = {(row.object_a, row.object_b) for row in members}
        if len(things) != 1 or sorted(row.relation for row in members) != sorted(PHRASES):
            yield Fault(members[0].id, "pair_id", f"its pair holds {sorted(things)}")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    yield from count_faults(rows, "relation", dict.fromkeys(PHRASES, PAIRS))


SUITE = SuiteRecipe(
    name="spatial_distance",
    rows=2 * PAIRS,
    source="PSE, Eq. 8 and 9 (prompts ours)",
    summary="Two things near each other, and the same two far apart.",
    build=build,
    faults=faults,
    group=lambda row: entities_group(row.object_a, row.object_b),
    breakdown=("relation",),
)
