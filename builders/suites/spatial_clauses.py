"""`spatial_clauses`: three or four objects and two relations, in the sentences of PSE's Table 15.

Of three objects the first is the subject of both relations; of four there are two clauses.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from ...schema import SpatialClauses
from ..balance import Rotation
from ..checks import equal_fault, text_faults
from ..phrases import in_one_sense, indefinite, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from .spatial_multi import (
    OBJECT_COUNTS,
    countable_labels,
    group_faults,
    label_faults,
    object_groups,
    provenance,
)
from .spatial_uc import PlaneRelation

PHRASES: dict[PlaneRelation, str] = {
    "left_of": "on the left of",
    "right_of": "on the right of",
    "above": "on the top of",
    "below": "on the bottom of",
}


def claims(objects: Sequence[str]) -> tuple[list[str], list[str]]:
    """Subjects and references of the two relations.

    >>> claims(["cat", "dog", "cup"])
    (['cat', 'cat'], ['dog', 'cup'])
    """
    if len(objects) == 3:
        return [objects[0], objects[0]], list(objects[1:])
    return list(objects[::2]), list(objects[1::2])


def prompt(objects: Sequence[str], relations: Sequence[str]) -> str:
    """The sentence of the paper.

    >>> prompt(["balloon", "chicken", "lamp"], ["below", "left_of"])
    'A balloon on the bottom of a chicken and on the left of a lamp.'
    >>> prompt(["cup", "dog", "bicycle", "man"], ["right_of", "left_of"])
    'A cup on the right of a dog and a bicycle on the left of a man.'
    """
    objects = [in_one_sense(label) for label in objects]
    phrases: dict[str, str] = {str(name): text for name, text in PHRASES.items()}
    subjects, references = claims(objects)
    first, second = (
        f"{phrases[relation]} {indefinite(reference)}"
        for relation, reference in zip(relations, references, strict=True)
    )
    again = f"{indefinite(subjects[1])} " if len(objects) == 4 else ""
    return sentence(f"{indefinite(subjects[0])} {first} and {again}{second}")


def build(banks: Banks, rng: random.Random) -> list[SpatialClauses]:
    used: Rotation[PlaneRelation] = Rotation(rng)
    rows = []
    for objects in object_groups(countable_labels(banks), rng):
        relations: list[PlaneRelation] = []
        while len(relations) < 2:
            # Of one subject, the same relation to both would say less.
            free = [r for r in PHRASES if len(objects) == 4 or r not in relations]
            relations.append(used.take(free))
        subjects, references = claims(objects)
        rows.append(
            SpatialClauses(
                objects=objects,
                subjects=subjects,
                relations=list(relations),
                references=references,
                prompt=prompt(objects, relations),
                review=["code"],
                provenance=provenance(objects),
            )
        )
    return rows


def faults(rows: list[SpatialClauses], banks: Banks) -> Iterator[Fault]:
    labels = set(countable_labels(banks))
    for row in rows:
        yield from text_faults(row, "prompt")
        yield from label_faults(row, labels)
        if len(set(row.objects)) != len(row.objects) or len(row.objects) not in OBJECT_COUNTS:
            yield Fault(row.id, "objects", "must be three or four, all different")
            continue
        subjects, references = claims(row.objects)
        yield from equal_fault(row, "subjects", subjects)
        yield from equal_fault(row, "references", references)
        if len(row.relations) != 2 or not set(row.relations) <= {*PHRASES}:
            yield Fault(row.id, "relations", f"must be two of {list(PHRASES)}")
            continue
        yield from equal_fault(row, "prompt", prompt(row.objects, row.relations))
    yield from group_faults(rows)


SUITE = SuiteRecipe(
    name="spatial_clauses",
    rows=sum(OBJECT_COUNTS.values()),
    source="PSE, Table 15 (sentences as published, objects ours)",
    summary="Three objects with one subject, or four in two clauses, and two relations.",
    build=build,
    faults=faults,
    group=lambda row: entities_group(*row.objects),
)
