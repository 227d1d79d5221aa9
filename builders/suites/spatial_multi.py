"""`spatial_multi`: three or four objects in a chain of relations (after PSE B.2, 100 + 100)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

from ...schema import Provenance, SpatialClauses, SpatialMulti
from ..balance import Rotation
from ..checks import duplicate_faults, equal_fault, text_faults
from ..phrases import in_one_sense, indefinite, listing, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from .spatial_uc import PHRASES, PlaneRelation

OBJECT_COUNTS = {3: 100, 4: 100}
"""Rows with three and with four objects."""


def prompt(objects: list[str], relations: list[str]) -> str:
    """Each relation holds between one object and the next, so that every prompt can be drawn.

    >>> prompt(["cat", "dog", "orange"], ["left_of", "above"])
    'A cat to the left of a dog and the dog above an orange.'
    """
    phrases: dict[str, str] = {str(name): text for name, text in PHRASES.items()}
    objects = [in_one_sense(label) for label in objects]
    clauses = [
        f"{indefinite(a) if number == 0 else f'the {a}'} {phrases[relation]} {indefinite(b)}"
        for number, (a, relation, b) in enumerate(
            zip(objects[:-1], relations, objects[1:], strict=True)
        )
    ]
    return sentence(listing(clauses))


def object_groups(labels: Sequence[str], rng: random.Random) -> Iterator[list[str]]:
    """As many different objects as `OBJECT_COUNTS` says; each label is used about as often."""
    entities: Rotation[str] = Rotation(rng)
    met: set[frozenset[str]] = set()
    for size, count in OBJECT_COUNTS.items():
        for _ in range(count):
            objects: list[str] = []
            while len(objects) < size:
                fresh = [x for x in labels if x not in objects and {*objects, x} not in met]
                objects.append(entities.take(fresh))
            met.add(frozenset(objects))
            yield objects


def provenance(objects: Sequence[str]) -> Provenance:
    """Where a row of such objects comes from."""
    return Provenance(bank="coco.yaml", entry=", ".join(objects), author="rules", calls=[])


def build(banks: Banks, rng: random.Random) -> list[SpatialMulti]:
    used: Rotation[PlaneRelation] = Rotation(rng)
    rows = []
    for objects in object_groups(countable_labels(banks), rng):
        relations: list[str] = [used.take(list(PHRASES)) for _ in objects[1:]]
        rows.append(
            SpatialMulti(
                objects=objects,
                subjects=objects[:-1],
                relations=relations,
                references=objects[1:],
                prompt=prompt(objects, relations),
                review=["code"],
                provenance=provenance(objects),
            )
        )
    return rows


def countable_labels(banks: Banks) -> list[str]:
    """COCO labels of things that can be counted."""
    return [entry.label for entry in banks.coco if entry.countable]


def label_faults(row: SpatialMulti | SpatialClauses, labels: Collection[str]) -> Iterator[Fault]:
    """Objects that are none of the countable labels."""
    if unknown := sorted(set(row.objects) - set(labels)):
        yield Fault(row.id, "objects", f"{unknown} are not countable COCO labels")


def group_faults(rows: Sequence[SpatialMulti | SpatialClauses]) -> Iterator[Fault]:
    """Objects that come together twice; other numbers of rows by their number of objects."""
    yield from duplicate_faults(rows, "objects", lambda row: frozenset(row.objects))
    sizes = {size: sum(len(row.objects) == size for row in rows) for size in OBJECT_COUNTS}
    if sizes != OBJECT_COUNTS:
        yield Fault("", "objects", f"rows by number of objects are {sizes}, not {OBJECT_COUNTS}")


def faults(rows: list[SpatialMulti], banks: Banks) -> Iterator[Fault]:
    labels = set(countable_labels(banks))
    for row in rows:
        yield from text_faults(row, "prompt")
        yield from label_faults(row, labels)
        if len(set(row.objects)) != len(row.objects) or len(row.objects) < 3:
            yield Fault(row.id, "objects", "must be three or more, all different")
            continue
        yield from equal_fault(row, "subjects", row.objects[:-1])
        yield from equal_fault(row, "references", row.objects[1:])
        if len(row.relations) != len(row.objects) - 1 or not set(row.relations) <= {*PHRASES}:
            yield Fault(row.id, "relations", f"must be one of {list(PHRASES)} between neighbors")
            continue
        yield from equal_fault(row, "prompt", prompt(row.objects, row.relations))
    yield from group_faults(rows)


SUITE = SuiteRecipe(
    name="spatial_multi",
    rows=sum(OBJECT_COUNTS.values()),
    source="PSE B.2 (sizes as published, prompts ours)",
    summary="Three or four objects and the relations between neighbors in the chain.",
    build=build,
    faults=faults,
    group=lambda row: entities_group(*row.objects),
)
