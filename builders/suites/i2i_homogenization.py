"""`i2i_homogenization`: edits that leave open which of two entities acts (OTS-Bench, 1,100)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...schema import I2IHomogenization, PairType, Provenance
from ..balance import Rotation
from ..checks import (
    count_faults,
    duplicate_faults,
    entity_faults,
    equal_fault,
    mention_faults,
    neutral_faults,
    text_faults,
)
from ..phrases import indefinite, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..taxonomy import EntityKind, Taxonomy, suits
from .t2i_homogenization import KINDS, entity_pairs

PAIR_COUNTS: dict[PairType, int] = {"H-H": 500, "A-A": 300, "O-O": 300}
ONE_OF: dict[EntityKind, str] = {"human": "person", "animal": "animal", "object": "object"}


def seed_prompt(left: str, right: str) -> str:
    """Text for the seed image, layout explicit.

    >>> seed_prompt("cat", "owl")
    'A cat on the left and an owl on the right, full body, horizontal composition.'
    """
    return sentence(
        f"{indefinite(left)} on the left and {indefinite(right)} on the right, full body, "
        f"horizontal composition"
    )


def instruction(kind: EntityKind, clause: str) -> str:
    """An edit that does not say which of the two is meant."""
    return sentence(f"one {ONE_OF[kind]} {clause}")


def build(banks: Banks, rng: random.Random) -> list[I2IHomogenization]:
    taxonomy = banks.taxonomy
    rotation: Rotation[str] = Rotation(rng)
    rows: list[I2IHomogenization] = []

    def choices(a: str, b: str) -> int:
        return len(shared_actions(taxonomy, a, b))

    for pair_type, count in PAIR_COUNTS.items():
        kind = KINDS[pair_type[0]]
        actions_by_pair: dict[frozenset[str], set[str]] = {}
        for left, right in entity_pairs(taxonomy, pair_type, count, rng, choices):
            taken = actions_by_pair.setdefault(frozenset((left, right)), set())
            left_over = [x for x in shared_actions(taxonomy, left, right) if x not in taken]
            action = taxonomy.actions[rotation.take(left_over)]
            taken.add(action.id)
            rows.append(
                I2IHomogenization(
                    pair_type=pair_type,
                    left=taxonomy.entities[left].row,
                    right=taxonomy.entities[right].row,
                    action=action.name,
                    instruction=instruction(kind, action.clause or ""),
                    seed_prompt=seed_prompt(left, right),
                    review=["code"],
                    provenance=Provenance(
                        bank="occupations.yaml animals.yaml objects.yaml actions.yaml",
                        entry=action.id,
                        author="rules",
                        calls=[],
                    ),
                )
            )
    return rows


def shared_actions(taxonomy: Taxonomy, a: str, b: str) -> list[str]:
    """Ids of the visible actions that either of the two could do and does not do anyway."""
    suited = [{x.id for x in taxonomy.single_actions(taxonomy.entities[name])} for name in (a, b)]
    shared = suited[0] & suited[1]
    return [x for x, action in taxonomy.actions.items() if x in shared and not action.ordinary]


def faults(rows: list[I2IHomogenization], banks: Banks) -> Iterator[Fault]:
    taxonomy = banks.taxonomy
    visible = [a for a in taxonomy.actions.values() if a.clause and a.visible]
    clauses = {(a.kind, instruction(a.kind, a.clause or "")): a for a in visible}
    for row in rows:
        yield from text_faults(row, "instruction", "seed_prompt")
        yield from neutral_faults(row, "instruction")
        yield from entity_faults(row, taxonomy, "left", "right")
        yield from equal_fault(row, "seed_prompt", seed_prompt(row.left.name, row.right.name))
        yield from mention_faults(row, "instruction", f"one {ONE_OF[row.left.kind]}")
        action = clauses.get((row.left.kind, row.instruction))
        entities = [taxonomy.entities.get(e.name) for e in (row.left, row.right)]
        if action is None or not all(e and suits(action, e) for e in entities):
            yield Fault(row.id, "instruction", "is not a visible action that suits both entities")
    yield from duplicate_faults(
        rows, "seed_prompt", lambda row: (frozenset((row.left.name, row.right.name)), row.action)
    )
    yield from count_faults(rows, "pair_type", PAIR_COUNTS)


SUITE = SuiteRecipe(
    name="i2i_homogenization",
    rows=sum(PAIR_COUNTS.values()),
    source="OTS-Bench, I2I homogenization",
    summary="A seed image of two entities and an edit that leaves open which of them acts: is "
    "it always the left one?",
    build=build,
    faults=faults,
    # Rows on the same two share a seed image.
    group=lambda row: entities_group(row.left.name, row.right.name),
    breakdown=("pair_type",),
    license="CC-BY-4.0 AND Apache-2.0",
)
