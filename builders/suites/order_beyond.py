"""`order_beyond`: mention order beyond two entities side by side (OTS-Bench rebuttal, 800 rows)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from ...schema import OrderBeyond, Provenance
from ..balance import Rotation, balanced_pairs
from ..bank import BankError
from ..build_result import Composition
from ..checks import (
    count_faults,
    duplicate_faults,
    equal_fault,
    mention_faults,
    neutral_faults,
    side_faults,
    text_faults,
)
from ..constrained import located
from ..phrases import listing, sentence
from ..sequences import Sequence
from ..suite import Banks, Fault, Group, SuiteRecipe, entities_group
from ..taxonomy import Taxonomy
from .t2i_homogenization import alike

OrderSetting = Literal["three_homogenization", "three_correctness", "vertical", "depth"]

COUNTS: dict[OrderSetting, int] = {
    "three_homogenization": 500,
    "three_correctness": 100,
    "vertical": 100,
    "depth": 100,
}
ONE_OTHER = {"vertical": ", one above the other", "depth": ", one in front of the other"}
"""Asks for the axis without saying which of the two comes first on it."""

_BANKS = "occupations.yaml animals.yaml objects.yaml"


def neutral_prompt(entities: list[str], ending: str = "") -> str:
    """One sentence that names the entities in order.

    >>> neutral_prompt(["cat", "dog"], ONE_OTHER["vertical"])
    'One cat and one dog, one above the other.'
    """
    return sentence(listing([f"one {name}" for name in entities]) + ending)


def build(banks: Banks, rng: random.Random) -> list[OrderBeyond]:
    return [
        *_three_entities(banks.taxonomy.drawn, rng),
        *_sequences(banks, rng),
        *_two_entities(banks.taxonomy.drawn, rng, "vertical"),
        *_two_entities(banks.taxonomy.drawn, rng, "depth"),
    ]


def _three_entities(taxonomy: Taxonomy, rng: random.Random) -> Iterator[OrderBeyond]:
    """Every entity about equally often, and about equally often at each place of the sentence."""
    rotation: Rotation[str] = Rotation(rng)
    places = [Rotation[str](rng) for _ in range(3)]
    met: set[frozenset[str]] = set()
    names = list(taxonomy.entities)
    beside = {
        x: {name for name in names if name != x and not alike(taxonomy, name, x)} for x in names
    }
    for _ in range(COUNTS["three_homogenization"]):
        chosen: list[str] = []
        allowed = set(names)
        while len(chosen) < 3:
            chosen.append(
                rotation.take(
                    [n for n in names if n in allowed and frozenset((*chosen, n)) not in met]
                )
            )
            allowed &= beside[chosen[-1]]
        met.add(frozenset(chosen))
        order: list[str] = []
        for place in places:
            order.append(place.take([name for name in chosen if name not in order]))
        yield _neutral_row(taxonomy, "three_homogenization", order, "")


def _two_entities(
    taxonomy: Taxonomy, rng: random.Random, setting: Literal["vertical", "depth"]
) -> Iterator[OrderBeyond]:
    def allowed(a: str, b: str) -> int:
        return int(not alike(taxonomy, a, b))

    for pair in balanced_pairs(list(taxonomy.entities), None, COUNTS[setting], rng, allowed):
        yield _neutral_row(taxonomy, setting, list(pair), ONE_OTHER[setting])


def _neutral_row(
    taxonomy: Taxonomy, setting: OrderSetting, entities: list[str], ending: str
) -> OrderBeyond:
    return OrderBeyond(
        setting=setting,
        axis=_axis(setting),
        entities=entities,
        looks=[taxonomy.entities[name].row.look for name in entities],
        prompt=neutral_prompt(entities, ending),
        swapped_prompt=neutral_prompt(entities[::-1], ending),
        expected=[],
        standards=[],
        review=["code"],
        provenance=Provenance(bank=_BANKS, entry="", author="rules", calls=[]),
    )


def _axis(setting: OrderSetting) -> Literal["horizontal", "vertical", "depth"]:
    return setting if setting in ("vertical", "depth") else "horizontal"


def _sequences(banks: Banks, rng: random.Random) -> Iterator[OrderBeyond]:
    """Three of a sequence, left to right; sequences take turns until the count is reached."""
    triples_by_sequence = {s.id: list(combinations(s.items, 3)) for s in banks.sequences}
    for triples in triples_by_sequence.values():
        rng.shuffle(triples)
    chosen: list[tuple[Sequence, tuple[str, ...]]] = []
    while len(chosen) < COUNTS["three_correctness"]:
        if not any(triples_by_sequence.values()):
            raise BankError(
                f"{banks.root}/sequences.yaml: gives only {len(chosen)} triples; add sequences",
                code="too-few-items",
            )
        for sequence in banks.sequences:
            if triples_by_sequence[sequence.id] and len(chosen) < COUNTS["three_correctness"]:
                chosen.append((sequence, triples_by_sequence[sequence.id].pop()))
    for sequence, items in sorted(chosen, key=lambda c: (c[0].id, c[1])):
        phrases = [sequence.phrase.format(item) for item in items]
        cited = [banks.standards[name] for name in sequence.standards]
        yield OrderBeyond(
            setting="three_correctness",
            axis="horizontal",
            entities=phrases,
            looks=[sequence.tell.format(item) for item in items],
            prompt=sentence(f"{listing(phrases)} {sequence.context}"),
            swapped_prompt=sentence(f"{listing(phrases[::-1])} {sequence.context}"),
            expected=phrases,
            standards=[standard.citation for standard in cited],
            sources=located(cited),
            review=["code", *sequence.review],
            provenance=Provenance(
                bank="sequences.yaml", entry=sequence.id, author="curated", calls=[]
            ),
        )


def faults(rows: list[OrderBeyond], banks: Banks) -> Iterator[Fault]:
    taxonomy = banks.taxonomy
    sequences = {s.id: s for s in banks.sequences}
    for row in rows:
        yield from text_faults(row, "prompt", "swapped_prompt")
        yield from mention_faults(row, "prompt", *row.entities)
        yield from mention_faults(row, "swapped_prompt", *row.entities[::-1])
        yield from equal_fault(row, "axis", _axis(row.setting))
        yield from side_faults(row, "prompt", "swapped_prompt")
        if row.setting == "three_correctness":
            yield from equal_fault(row, "expected", row.entities)
            yield from _sequence_faults(row, sequences.get(row.provenance.entry))
            continue
        ending = ONE_OTHER.get(row.setting, "")
        yield from neutral_faults(row, "prompt", "swapped_prompt", allowed=ending)
        yield from equal_fault(row, "prompt", neutral_prompt(row.entities, ending))
        yield from equal_fault(row, "swapped_prompt", neutral_prompt(row.entities[::-1], ending))
        yield from equal_fault(row, "expected", [])
        for name in row.entities:
            if name not in taxonomy.entities:
                yield Fault(row.id, "entities", f"{name!r} is not an entity of the taxonomy")
    yield from duplicate_faults(
        rows, "prompt", lambda row: (row.setting, row.provenance.entry, frozenset(row.entities))
    )
    yield from count_faults(rows, "setting", COUNTS)


def _sequence_faults(row: OrderBeyond, sequence: Sequence | None) -> Iterator[Fault]:
    """Where this bank knows the sequence, the row follows its order."""
    if sequence is None:
        return
    order = [sequence.phrase.format(item) for item in sequence.items]
    places = [order.index(name) if name in order else -1 for name in row.expected]
    if -1 in places or places != sorted(places):
        yield Fault(row.id, "expected", f"is not in the order of the sequence {sequence.id}")


def _group(row: OrderBeyond) -> Group:
    """The triples of one sequence overlap; the others share their things."""
    if row.expected:
        return ("sequence", row.provenance.entry)
    return entities_group(*row.entities)


SUITE = SuiteRecipe(
    name="order_beyond",
    rows=sum(COUNTS.values()),
    source="OTS-Bench, rebuttal",
    summary="Three entities in a row, with and without a fixed order; one above the other; one in "
    "front of the other.",
    build=build,
    faults=faults,
    group=_group,
    breakdown=("setting",),
    composition=Composition(by="setting", counts=("sources",)),
)
