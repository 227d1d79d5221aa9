"""`i2i_correctness`: edits that bind actions to two entities (OTS-Bench, 1,100 rows)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...schema import I2ICorrectness, PairType, Provenance
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
from ..phrases import sentence
from ..suite import Banks, Fault, SuiteRecipe, entities_group
from ..taxonomy import Taxonomy, suits
from .i2i_homogenization import PAIR_COUNTS, seed_prompt, told_apart
from .t2i_homogenization import entity_pairs

DIRECTED_COUNTS: dict[PairType, int] = {"H-H": 200, "A-A": 60, "O-O": 0}
"""Rows of each pair type in which one entity acts on the other; the rest are independent."""


@dataclass(frozen=True)
class Binding:
    """Action of each entity, and the sentence that says so with either entity first."""

    entry: str
    """Ids of the bank's actions."""
    agent: Literal["left", "right", "both"]
    left: str
    """Clause that is true of the left entity in a correct edit."""
    right: str
    """Clause that is true of the right entity in a correct edit."""
    aligned: str
    """Instruction that mentions the left entity first."""
    reverse: str
    """Instruction that mentions the right entity first."""


def independent(entry: str, left: str, left_clause: str, right: str, right_clause: str) -> Binding:
    """Each does its own thing.

    >>> independent("", "dog", "is standing", "pig", "is lying down").reverse
    'The pig is lying down and the dog is standing.'
    """
    a, b = f"the {left} {left_clause}", f"the {right} {right_clause}"
    return Binding(
        entry,
        "both",
        left=left_clause,
        right=right_clause,
        aligned=sentence(f"{a} and {b}"),
        reverse=sentence(f"{b} and {a}"),
    )


def directed(
    entry: str, left: str, right: str, active: str, passive: str, agent: Literal["left", "right"]
) -> Binding:
    """One acts on the other; the passive keeps who does what while the order of mention flips.

    >>> directed("", "chef", "nurse", "is pointing at {patient}", "is being pointed at by {agent}",
    ...          "right").aligned
    'The chef is being pointed at by the nurse.'
    """
    actor, undergoer = (left, right) if agent == "left" else (right, left)
    does = active.format(patient=f"the {undergoer}")
    undergoes = passive.format(agent=f"the {actor}")
    by_actor, by_undergoer = (
        sentence(f"the {actor} {does}"),
        sentence(f"the {undergoer} {undergoes}"),
    )
    if agent == "left":
        return Binding(
            entry, agent, left=does, right=undergoes, aligned=by_actor, reverse=by_undergoer
        )
    return Binding(entry, agent, left=undergoes, right=does, aligned=by_undergoer, reverse=by_actor)


def build(banks: Banks, rng: random.Random) -> list[I2ICorrectness]:
    taxonomy = banks.taxonomy.drawn
    rotation: Rotation[str] = Rotation(rng)
    rows: list[I2ICorrectness] = []

    def meetings(a: str, b: str) -> int:
        """One row of any two that an editor can tell apart and that can do things at once."""
        return int(told_apart(taxonomy, a, b) and bool(contrasts(taxonomy, a, b)))

    for pair_type, count in PAIR_COUNTS.items():
        pairs = entity_pairs(taxonomy, pair_type, count, rng, meetings)
        acting = 0
        for left, right in pairs:
            choices = (
                directed_ids(taxonomy, left, right) if acting < DIRECTED_COUNTS[pair_type] else []
            )
            if choices:
                # The agent's side alternates: voice and order of mention must not go together.
                side: Literal["left", "right"] = "left" if acting % 2 == 0 else "right"
                action = taxonomy.actions[rotation.take(choices)]
                assert action.directed is not None
                binding = directed(
                    action.id,
                    left,
                    right=right,
                    active=action.directed.active,
                    passive=action.directed.passive,
                    agent=side,
                )
                acting += 1
            else:
                options = contrasts(taxonomy, left, right)
                clauses = options[rotation.take(list(options))]
                binding = independent(clauses[0], left, clauses[1], right, clauses[2])
            rows.append(_row(taxonomy, pair_type, left, right, binding))
        if acting != DIRECTED_COUNTS[pair_type]:
            raise ValueError(f"{pair_type}: only {acting} pairs suit a directed action")
    return rows


def directed_ids(taxonomy: Taxonomy, left: str, right: str) -> list[str]:
    """Ids of the actions that either could do to the other."""
    entities = [taxonomy.entities[name] for name in (left, right)]
    return [
        action.id
        for action in taxonomy.directed_actions(entities[0].kind)
        if all(suits(action, entity) for entity in entities)
    ]


def contrasts(taxonomy: Taxonomy, left: str, right: str) -> dict[str, tuple[str, str, str]]:
    """Bank entry, left clause and right clause of every two things that the two can do at once.

    They clearly differ in an image: contrasting actions, or the members of a parallel pair. None is
    what a seed image shows anyway, of which half the edit would be none.
    """
    options = {}
    a, b = taxonomy.entities[left], taxonomy.entities[right]
    theirs = {action.id: action for action in taxonomy.edits(b)}
    for action in taxonomy.edits(a):
        for contrasting in action.contrast:
            if contrasting in theirs:
                entry = f"{action.id}, {contrasting}"
                options[entry] = (entry, action.clause or "", theirs[contrasting].clause or "")
    for action in taxonomy.parallel_edits(a, b):
        if action.pair:
            for left_phrases, right_phrases in (action.pair, action.pair[::-1]):
                options[f"{action.id}: {left_phrases.clause}"] = (
                    action.id,
                    left_phrases.clause,
                    right_phrases.clause,
                )
    return options


def _row(
    taxonomy: Taxonomy, pair_type: PairType, left: str, right: str, binding: Binding
) -> I2ICorrectness:
    return I2ICorrectness(
        pair_type=pair_type,
        relation="independent" if binding.agent == "both" else "directed",
        left=taxonomy.entities[left].row,
        right=taxonomy.entities[right].row,
        aligned_instruction=binding.aligned,
        reverse_instruction=binding.reverse,
        left_expected=binding.left,
        right_expected=binding.right,
        agent=binding.agent,
        seed_prompt=seed_prompt(pair_type, left, right),
        review=["code"],
        provenance=Provenance(
            bank="occupations.yaml animals.yaml objects.yaml actions.yaml",
            entry=binding.entry,
            author="rules",
            calls=[],
        ),
    )


def faults(rows: list[I2ICorrectness], banks: Banks) -> Iterator[Fault]:
    taxonomy = banks.taxonomy.drawn
    for row in rows:
        yield from text_faults(row, "aligned_instruction", "reverse_instruction", "seed_prompt")
        yield from neutral_faults(row, "aligned_instruction", "reverse_instruction")
        yield from entity_faults(row, taxonomy, "left", "right")
        described = seed_prompt(row.pair_type, row.left.name, row.right.name)
        yield from equal_fault(row, "seed_prompt", described)
        for field, binding in _bindings(row, taxonomy).items():
            yield from equal_fault(row, field, binding)
        mentioned = [f"the {row.left.name}", f"the {row.right.name}"]
        yield from mention_faults(row, "aligned_instruction", *mentioned)
        yield from mention_faults(row, "reverse_instruction", *reversed(mentioned))
        if (row.relation == "independent") != (row.agent == "both"):
            yield Fault(row.id, "agent", f"is {row.agent!r} in a row that is {row.relation}")
    yield from duplicate_faults(
        rows,
        "seed_prompt",
        lambda row: (frozenset((row.left.name, row.right.name)), row.provenance.entry),
    )
    yield from count_faults(rows, "pair_type", PAIR_COUNTS)


def _bindings(row: I2ICorrectness, taxonomy: Taxonomy) -> dict[str, str]:
    """Returns the texts expected from the bank's actions; empty for entities that it lacks."""
    entities = (row.left.name, row.right.name)
    if any(name not in taxonomy.entities for name in entities):
        return {}
    if row.agent == "both":
        options = contrasts(taxonomy, *entities).values()
        matches = [o for o in options if o[1:] == (row.left_expected, row.right_expected)]
        if not matches:
            return {"left_expected": "an action that contrasts with the other's and suits it"}
        binding = independent(matches[0][0], entities[0], matches[0][1], entities[1], matches[0][2])
    else:
        action = taxonomy.actions.get(row.provenance.entry)
        if (
            action is None
            or action.directed is None
            or action.id not in directed_ids(taxonomy, *entities)
        ):
            return {"left_expected": "a directed action of the bank that suits both"}
        binding = directed(
            action.id, *entities, action.directed.active, action.directed.passive, row.agent
        )
    return {
        "left_expected": binding.left,
        "right_expected": binding.right,
        "aligned_instruction": binding.aligned,
        "reverse_instruction": binding.reverse,
    }


SUITE = SuiteRecipe(
    name="i2i_correctness",
    rows=sum(PAIR_COUNTS.values()),
    source="OTS-Bench, I2I correctness",
    summary="A seed image of two entities and an edit that says which of them does what, in "
    "both orders of mention: does the binding hold?",
    build=build,
    faults=faults,
    # Rows on the same two share a seed image.
    group=lambda row: entities_group(row.left.name, row.right.name),
    breakdown=("pair_type", "relation"),
    license="CC-BY-4.0 AND Apache-2.0",
)
