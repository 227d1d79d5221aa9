"""`i2i_homogenization`: edits that leave open which of two entities acts (OTS-Bench, 1,100)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from ...schema import Entity, I2IHomogenization, PairType, Provenance, SeededRow
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
from ..taxonomy import Action, EntityKind, Taxonomy, looks, shown_by, shows, suits
from .t2i_homogenization import KINDS, entity_pairs

PAIR_COUNTS: dict[PairType, int] = {"H-H": 500, "A-A": 300, "O-O": 300}
PLACEMENTS = 2
"""Rows of a scene: either entity on the left."""
ONE_OF: dict[EntityKind, str] = {"human": "person", "animal": "animal", "object": "object"}


def seed_prompt(pair_type: PairType, left: str, right: str) -> str:
    """Text for the seed image, layout explicit; objects have no body to be shown in full.

    >>> seed_prompt("A-A", "cat", "owl")
    'A cat on the left and an owl on the right, full body, horizontal composition.'
    """
    whole = "" if pair_type == "O-O" else "full body, "
    return sentence(
        f"{indefinite(left)} on the left and {indefinite(right)} on the right, {whole}"
        f"horizontal composition"
    )


def instruction(kind: EntityKind, clause: str) -> str:
    """An edit that does not say which of the two is meant."""
    return sentence(f"one {ONE_OF[kind]} {clause}")


def build(banks: Banks, rng: random.Random) -> list[I2IHomogenization]:
    taxonomy = banks.taxonomy.drawn
    rotation: Rotation[str] = Rotation(rng)
    rows: list[I2IHomogenization] = []

    def choices(a: str, b: str) -> int:
        return len(shared_actions(taxonomy, a, b)) if told_apart(taxonomy, a, b) else 0

    for pair_type, count in PAIR_COUNTS.items():
        actions_by_pair: dict[frozenset[str], set[str]] = {}
        for left, right in entity_pairs(taxonomy, pair_type, count // PLACEMENTS, rng, choices):
            taken = actions_by_pair.setdefault(frozenset((left, right)), set())
            left_over = [x for x in shared_actions(taxonomy, left, right) if x not in taken]
            action = taxonomy.actions[rotation.take(left_over)]
            taken.add(action.id)
            rows += (
                _row(taxonomy, pair_type, *placed, action)
                for placed in ((left, right), (right, left))
            )
    return rows


def _row(
    taxonomy: Taxonomy, pair_type: PairType, left: str, right: str, action: Action
) -> I2IHomogenization:
    return I2IHomogenization(
        pair_type=pair_type,
        left=taxonomy.entities[left].row,
        right=taxonomy.entities[right].row,
        action=action.name,
        instruction=instruction(KINDS[pair_type[0]], action.clause or ""),
        seed_prompt=seed_prompt(pair_type, left, right),
        review=["code"],
        provenance=Provenance(
            bank="occupations.yaml animals.yaml objects.yaml actions.yaml",
            entry=action.id,
            author="rules",
            calls=[],
        ),
    )


def shared_actions(taxonomy: Taxonomy, a: str, b: str) -> list[str]:
    """Ids of the visible actions that either of the two could do, and that no seed image shows."""
    others = {action.id for action in taxonomy.edits(taxonomy.entities[b])}
    return [x.id for x in taxonomy.edits(taxonomy.entities[a]) if x.id in others]


def told_apart(taxonomy: Taxonomy, a: str, b: str) -> bool:
    """Whether an editor can see in the renderer's image which of the two is which.

    Two of one sex are, if at least one wears something of the trade: what people only hold is small
    and may go once their hands do something else.
    """
    first, second = (taxonomy.entities[name] for name in (a, b))
    if {first.kind, second.kind} != {"human"}:
        return True
    drawn = [looks(entity.row)[-1] for entity in (first, second)]
    same_sex = first.name.partition(" ")[0] == second.name.partition(" ")[0]
    return not same_sex or any(wears_trade(look) for look in drawn)


def wears_trade(look: str) -> bool:
    """Whether a person as drawn wears or bears more than hair, clothes and what the hands hold.

    >>> wears_trade("man with short red hair, green top, dark green trousers, holding a syringe")
    False
    >>> wears_trade("woman in a tall dark gray bearskin hat, long dark brown hair, red top")
    True
    """
    worn = look.partition(", holding ")[0].split(", ")
    return not all(re.search(r"(?:\bhair|\btop|\btrousers)$", part) for part in worn)


def faults(rows: list[I2IHomogenization], banks: Banks) -> Iterator[Fault]:
    taxonomy = banks.taxonomy.drawn
    visible = [a for a in taxonomy.actions.values() if a.clause and a.visible]
    clauses = {(a.kind, instruction(a.kind, a.clause or "")): a for a in visible}
    for row in rows:
        yield from text_faults(row, "instruction", "seed_prompt")
        yield from neutral_faults(row, "instruction")
        yield from entity_faults(row, taxonomy, "left", "right")
        described = seed_prompt(row.pair_type, row.left.name, row.right.name)
        yield from equal_fault(row, "seed_prompt", described)
        yield from mention_faults(row, "instruction", f"one {ONE_OF[row.left.kind]}")
        action = clauses.get((row.left.kind, row.instruction))
        entities = [taxonomy.entities.get(e.name) for e in (row.left, row.right)]
        if action is None or not all(e and suits(action, e) for e in entities):
            yield Fault(row.id, "instruction", "is not a visible action that suits both entities")
        elif action.ordinary:
            yield Fault(row.id, "instruction", "is what an ordinary image shows anyway")
        else:
            for side in ("left", "right"):
                yield from shown_faults(row, side, action)
    yield from duplicate_faults(
        rows, "seed_prompt", lambda row: (row.left.name, row.right.name, row.action)
    )
    placed = {(row.left.name, row.right.name, row.action) for row in rows}
    for left, right, action_name in sorted(placed):
        if (right, left, action_name) not in placed:
            alone = f"{left} and {right}, {action_name}: no row has them the other way around"
            yield Fault("", "seed_prompt", alone)
    yield from count_faults(rows, "pair_type", PAIR_COUNTS)


def shown_faults(row: SeededRow, side: str, action: Action) -> Iterator[Fault]:
    """The seed image does not show the action of the entity on one side already."""
    entity: Entity = getattr(row, side)
    if said := shows(entity.look, action) or shown_by(entity, action):
        text = f"of {entity.name!r} says {said!r}: the seed image shows {action.name!r} already"
        yield Fault(row.id, f"{side}.look", text)


SUITE = SuiteRecipe(
    name="i2i_homogenization",
    rows=sum(PAIR_COUNTS.values()),
    source="OTS-Bench, I2I homogenization",
    summary="A seed image of two entities and an edit that leaves open which of them acts: is "
    "it always the left one? Every scene in both placements.",
    build=build,
    faults=faults,
    # Rows on the same two share a seed image.
    group=lambda row: entities_group(row.left.name, row.right.name),
    breakdown=("pair_type",),
    license="CC-BY-4.0 AND Apache-2.0",
)
