"""`t2i_homogenization`: neutral prompts on two entities (OTS-Bench, 1,700 rows)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator

from ...schema import PairType, Provenance, Row, T2IHomogenization
from ..balance import Rotation, balanced_pairs, once
from ..checks import (
    count_faults,
    duplicate_faults,
    entity_faults,
    equal_fault,
    neutral_faults,
    text_faults,
)
from ..neutral import anonymous_faults, neutral_prompt
from ..phrases import listing, sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..taxonomy import Action, EntityKind, Taxonomy, suits

PAIR_COUNTS: dict[PairType, int] = {
    "H-H": 500,
    "A-A": 300,
    "O-O": 300,
    "H-A": 200,
    "H-O": 200,
    "A-O": 200,
}
KINDS: dict[str, EntityKind] = {"H": "human", "A": "animal", "O": "object"}


def entity_pairs(
    taxonomy: Taxonomy,
    pair_type: PairType,
    count: int,
    rng: random.Random,
    capacity: Callable[[str, str], int] = once,
) -> list[tuple[str, str]]:
    """Balanced pairs of entity names; look-alikes never meet, where the design leaves the choice.

    Every two of the 25 animals make exactly the 300 pairs of A-A, so none can be left out there.
    """
    kinds = [KINDS[letter] for letter in pair_type.split("-")]
    sides = [[e.name for e in taxonomy.of_kind(kind)] for kind in kinds]
    second = None if kinds[0] == kinds[1] else sides[1]
    needs_all = second is None and count >= len(sides[0]) * (len(sides[0]) - 1) // 2

    def distinct(a: str, b: str) -> int:
        return 0 if alike(taxonomy, a, b) and not needs_all else capacity(a, b)

    return balanced_pairs(sides[0], second, count, rng, distinct)


def alike(taxonomy: Taxonomy, a: str, b: str) -> bool:
    """Whether a viewer could take one for the other, or one is part of the other's gear."""
    first, second = taxonomy.entities[a], taxonomy.entities[b]
    confusable = b in first.confusable or a in second.confusable
    return confusable or a in second.row.look or b in first.row.look


def prompt(first: str, first_action: str, second: str, second_action: str) -> str:
    """One neutral sentence.

    >>> prompt("male chef", "waving", "goat", "")
    'One male chef waving and one goat.'
    """
    phrases = [
        f"one {name} {action}".strip()
        for name, action in ((first, first_action), (second, second_action))
    ]
    return sentence(listing(phrases))


def build(banks: Banks, rng: random.Random) -> list[T2IHomogenization]:
    """The frozen rows, then those of each entity and of each action that was added."""
    rows = frozen_rows(banks, rng)
    salt, taxonomy = rng.random(), banks.taxonomy
    return [
        *rows,
        *(row for name in sorted(taxonomy.added) for row in _of_entity(taxonomy, name, salt)),
        *(row for id_ in sorted(taxonomy.added_actions) for row in _of_action(taxonomy, id_, salt)),
    ]


def frozen_rows(banks: Banks, rng: random.Random) -> list[T2IHomogenization]:
    """The rows of the complete config."""
    taxonomy = banks.taxonomy.drawn
    rotation: Rotation[str] = Rotation(rng)
    return [
        row
        for pair_type, count in PAIR_COUNTS.items()
        for row in _rows(
            taxonomy, pair_type, entity_pairs(taxonomy, pair_type, count, rng), rotation
        )
    ]


def _of_entity(taxonomy: Taxonomy, name: str, salt: float) -> Iterator[T2IHomogenization]:
    """Yields as many rows of an added entity as a frozen one of its kind has.

    It meets frozen entities alone, drawn by its name, so a later addition does not change them.
    """
    rng = random.Random(f"{salt}/{name}")
    rotation: Rotation[str] = Rotation(rng)
    kind = taxonomy.entities[name].kind
    own = len(taxonomy.drawn.of_kind(kind))
    for pair_type, other, slots in _mentions(kind):
        partners = [
            e.name for e in taxonomy.drawn.of_kind(other) if not alike(taxonomy, name, e.name)
        ]
        chosen = rng.sample(partners, min(round(slots / own), len(partners)))
        # In two rows without and two with actions, it is first in one of each.
        pairs = [(name, p) if n // 2 % 2 else (p, name) for n, p in enumerate(chosen)]
        yield from _rows(taxonomy.drawn_and(name), pair_type, pairs, rotation)


def _of_action(taxonomy: Taxonomy, action_id: str, salt: float) -> Iterator[T2IHomogenization]:
    """Yields as many rows of an added action as a frozen one of its kind has on average.

    A frozen entity does it, and another one does something frozen.
    """
    action, drawn = taxonomy.actions[action_id], taxonomy.drawn
    rng = random.Random(f"{salt}/{action_id}")
    actors, partners, rotation = (Rotation[str](rng) for _ in range(3))
    able = [e.name for e in drawn.of_kind(action.kind) if suits(action, e)]
    own = {a.id for e in drawn.of_kind(action.kind) for a in drawn.single_actions(e)}
    for pair_type, other, slots in _mentions(action.kind):
        for number in range(round(slots / 2 / len(own))):  # half of the rows have actions
            actor = actors.take(able)
            others = [e.name for e in drawn.of_kind(other) if e.name != actor]
            partner = partners.take([name for name in others if not alike(drawn, actor, name)])
            acts = ((actor, action), (partner, _action(drawn, partner, rotation)))
            yield _row(drawn, pair_type, *(acts if number % 2 else acts[::-1]))


def _mentions(kind: EntityKind) -> Iterator[tuple[PairType, EntityKind, int]]:
    """Pair types with a kind, the kind of the other entity, and how often frozen rows name one."""
    for pair_type, count in PAIR_COUNTS.items():
        kinds = [KINDS[letter] for letter in pair_type.split("-")]
        if kind in kinds:
            kinds.remove(kind)
            yield pair_type, kinds[0], count * (2 if kinds == [kind] else 1)


def is_added(row: T2IHomogenization, banks: Banks) -> bool:
    """Whether an entity or an action of the row is an addition to the bank."""
    taxonomy = banks.taxonomy
    return not (
        taxonomy.added.isdisjoint((row.first.name, row.second.name))
        and taxonomy.added_actions.isdisjoint(row.provenance.entry.split(", "))
    )


def _rows(
    taxonomy: Taxonomy,
    pair_type: PairType,
    pairs: Iterable[tuple[str, str]],
    rotation: Rotation[str],
) -> Iterator[T2IHomogenization]:
    """Yields a row for each pair of names."""
    for number, (a, b) in enumerate(pairs):
        # Every other row: half of each pair type, as the pairs come shuffled.
        acting = number % 2 == 1
        first, second = (
            (name, _action(taxonomy, name, rotation) if acting else None) for name in (a, b)
        )
        yield _row(taxonomy, pair_type, first, second)


Mention = tuple[str, Action | None]
"""Name of an entity and what it does."""


def _row(
    taxonomy: Taxonomy, pair_type: PairType, first: Mention, second: Mention
) -> T2IHomogenization:
    (a, does), (b, does_too) = first, second
    actions = [action for action in (does, does_too) if action]
    words = [action.participle or "" if action else "" for action in (does, does_too)]
    used = "occupations.yaml animals.yaml objects.yaml"
    return T2IHomogenization(
        pair_type=pair_type,
        first=taxonomy.entities[a].row,
        second=taxonomy.entities[b].row,
        first_action=words[0],
        second_action=words[1],
        prompt=prompt(a, words[0], b, words[1]),
        swapped_prompt=prompt(b, words[1], a, words[0]),
        neutral_prompt=neutral_prompt(taxonomy, (a, words[0]), (b, words[1])),
        review=["code"],
        provenance=Provenance(
            bank=f"{used} actions.yaml" if actions else used,
            entry=", ".join(action.id for action in actions),
            author="rules",
            calls=[],
        ),
    )


def _action(taxonomy: Taxonomy, name: str, rotation: Rotation[str]) -> Action:
    choices = taxonomy.single_actions(taxonomy.entities[name])
    return taxonomy.actions[rotation.take([action.id for action in choices])]


def faults(rows: list[T2IHomogenization], banks: Banks) -> Iterator[Fault]:
    taxonomy = banks.taxonomy
    for row in rows:
        yield from text_faults(row, "prompt", "swapped_prompt", "neutral_prompt")
        yield from neutral_faults(row, "prompt", "swapped_prompt", "neutral_prompt")
        yield from entity_faults(row, taxonomy, "first", "second")
        mentioned = ((row.first.name, row.first_action), (row.second.name, row.second_action))
        (a, does), (b, does_too) = mentioned
        yield from equal_fault(row, "prompt", prompt(a, does, b, does_too))
        yield from equal_fault(row, "swapped_prompt", prompt(b, does_too, a, does))
        known = taxonomy.drawn_and(a, b)
        yield from anonymous_faults(row, "neutral_prompt", known, *mentioned)
        kinds = {row.first.kind, row.second.kind}
        if {KINDS[letter] for letter in row.pair_type.split("-")} != kinds:
            yield Fault(row.id, "pair_type", f"is {row.pair_type}, the entities are {kinds}")
        for field, (name, words) in zip(("first_action", "second_action"), mentioned, strict=True):
            yield from action_faults(row, field, name, words, taxonomy)
    yield from duplicate_faults(
        rows, "prompt", lambda row: frozenset((row.prompt, row.swapped_prompt))
    )
    frozen = [row for row in rows if not is_added(row, banks)]
    yield from count_faults(frozen, "pair_type", PAIR_COUNTS)


def action_faults(
    row: Row, field: str, name: str, participle: str, taxonomy: Taxonomy
) -> Iterator[Fault]:
    """The action, if any, is a visible one of the taxonomy and suits the entity."""
    entity = taxonomy.entities.get(name)
    if not participle or entity is None:
        return
    matches = [a for a in taxonomy.actions.values() if a.participle == participle]
    if not any(a.visible and suits(a, entity) for a in matches):
        yield Fault(row.id, field, f"{participle!r} is not a visible action that suits {name!r}")


SUITE = SuiteRecipe(
    name="t2i_homogenization",
    rows=sum(PAIR_COUNTS.values()),
    source="OTS-Bench, T2I homogenization",
    summary="Neutral prompts on two entities, with the mention order swapped: does the "
    "first-mentioned always stand left?",
    build=build,
    faults=faults,
    added=is_added,
    group=lambda row: entities_group(row.first.name, row.second.name),
    breakdown=("pair_type",),
)
