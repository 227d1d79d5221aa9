"""`spatial_3d`: two things and a relation in depth (T2I-CompBench 3D style, 1,000 rows)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from ...schema import Provenance, Spatial3D, item_id
from ..balance import balanced_pairs
from ..checks import count_faults, duplicate_faults, equal_fault, text_faults
from ..phrases import indefinite, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..taxonomy import Taxonomy

Depth = Literal["in_front_of", "behind", "hidden_by"]

PHRASES: dict[Depth, str] = {
    "in_front_of": "in front of",
    "behind": "behind",
    "hidden_by": "partly hidden by",
}
PAIR_COUNTS: dict[Depth, int] = {"in_front_of": 200, "behind": 200, "hidden_by": 100}
"""Pairs of prompts for each relation; the two of a pair exchange the things."""

_SIZES = ("small", "medium", "large")


FRONTED = frozenset(
    "chair,couch,desk,cabinet,laptop,television,camera,cell phone,computer keyboard,table clock,"
    "piano,bicycle,motorcycle,car,bus,truck,boat,airplane".split(",")
)
"""Objects with a front of their own, so that "in front of" may be meant from where they face."""


def prompt(a: str, relation: Depth, b: str, fronted: bool) -> str:
    """One sentence; where the second thing has a front of its own, it says whose view is meant.

    >>> prompt("cat", "hidden_by", "umbrella", False)
    'A cat partly hidden by an umbrella.'
    >>> prompt("cat", "behind", "dog", True)
    'A cat behind a dog, as seen by the viewer.'
    """
    view = ", as seen by the viewer" if fronted and relation != "hidden_by" else ""
    return sentence(f"{indefinite(a)} {PHRASES[relation]} {indefinite(b)}{view}")


def has_front(taxonomy: Taxonomy, name: str) -> bool:
    """Whether a thing has a front of its own: every animal, and the objects in `FRONTED`."""
    entity = taxonomy.entities.get(name)
    return name in FRONTED or (entity is not None and entity.kind == "animal")


def build(banks: Banks, rng: random.Random) -> list[Spatial3D]:
    things = {e.name: e for e in banks.taxonomy.drawn.entities.values() if e.kind != "human"}

    def comparable(a: str, b: str) -> int:
        # Nothing can be seen of a spoon behind a bus: sizes one step apart at most.
        steps = _SIZES.index(things[a].size) - _SIZES.index(things[b].size)
        return int(abs(steps) <= 1 and b not in things[a].confusable)

    pairs = balanced_pairs(list(things), None, sum(PAIR_COUNTS.values()), rng, comparable)
    relations = [relation for relation, count in PAIR_COUNTS.items() for _ in range(count)]
    return [
        Spatial3D(
            relation=relation,
            object_a=first,
            object_b=second,
            prompt=prompt(first, relation, second, has_front(banks.taxonomy, second)),
            pair_id=item_id("spatial_3d-pair", relation, *sorted((a, b))),
            review=["code"],
            provenance=Provenance(
                bank="animals.yaml objects.yaml",
                entry=f"{first}, {second}",
                author="rules",
                calls=[],
            ),
        )
        for relation, (a, b) in zip(relations, pairs, strict=True)
        for first, second in ((a, b), (b, a))
    ]


def faults(rows: list[Spatial3D], banks: Banks) -> Iterator[Fault]:
    pairs: dict[str, list[Spatial3D]] = {}
    for row in rows:
        yield from text_faults(row, "prompt")
        fronted = has_front(banks.taxonomy, row.object_b)
        expected = prompt(row.object_a, row.relation, row.object_b, fronted)
        yield from equal_fault(row, "prompt", expected)
        for field in ("object_a", "object_b"):
            if getattr(row, field) not in banks.taxonomy.entities:
                yield Fault(
                    row.id, field, f"{getattr(row, field)!r} is not an entity of the taxonomy"
                )
        pairs.setdefault(row.pair_id, []).append(row)
    for rows_of_pair in pairs.values():
        places = sorted((row.object_a, row.object_b) for row in rows_of_pair)
        if len(places) != 2 or places[0] != places[1][::-1]:
            yield Fault(rows_of_pair[0].id, "pair_id", f"its pair holds {places}")
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    yield from count_faults(rows, "relation", {r: 2 * n for r, n in PAIR_COUNTS.items()})


SUITE = SuiteRecipe(
    name="spatial_3d",
    rows=2 * sum(PAIR_COUNTS.values()),
    source="T2I-CompBench 3D style, PSE 3D (prompts ours)",
    summary="In front of, behind, partly hidden by: each with the two things exchanged.",
    build=build,
    faults=faults,
    group=lambda row: entities_group(row.object_a, row.object_b),
    breakdown=("relation",),
)
