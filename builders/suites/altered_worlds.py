"""`altered_worlds`: the groups of `counterfactual`, controlled, phrased in three ways and asked for
both worlds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...schema import AlteredWorld, KeyedQuestion, Provenance, Row
from ..bank import BankError
from ..build_result import Composition
from ..checks import equal_fault, text_faults
from ..counterfactual import CounterfactualScene, Law
from ..suite import Banks, Fault, SuiteRecipe
from ..worlds import (
    KEYED,
    PHRASINGS,
    real_law_prompt,
    shortened,
    time_clause,
    world_prompts,
)
from .counterfactual import GROUPS, groups, is_added

LEVELS: tuple[Any, ...] = ("L0", "L1", "L2", "L3")
UNEVEN = 0.1
"""Share of a discipline's groups by which one phrasing may be ahead of another."""
CONTENT = [name for name in AlteredWorld.model_fields if name not in Row.model_fields]


def build(banks: Banks, rng: random.Random) -> list[AlteredWorld]:
    """All levels of the released groups that have an entry, in the order of the bank."""
    return [
        row
        for file, law, scene in groups(banks)
        if scene.id in banks.worlds
        for row in group_rows(banks, file, law, scene)
    ]


def group_rows(banks: Banks, file: str, law: Law, scene: CounterfactualScene) -> list[AlteredWorld]:
    """All levels of one group, L0 first. Raises BankError for an unknown control."""
    entry = banks.worlds[scene.id]
    control = next((candidate for candidate in _laws(banks) if candidate.id == entry.control), None)
    if control is None:
        raise BankError(
            f"worlds/{file}.yaml: {scene.id}: control: no law {entry.control!r}",
            code="unknown-reference",
        )
    texts = world_prompts(law, scene, entry, control)
    _, used_scene = shortened(law, scene, entry.short)
    timed = time_clause(used_scene.scene)
    questions: dict[str, Any] = {
        name: KeyedQuestion(
            text=getattr(scene, f"q_{name}").text,
            world="real" if name.endswith("_factual") else "altered",
        )
        for name in KEYED
    }
    return [
        AlteredWorld(
            group=scene.id,
            level=level,
            law=law.id,
            discipline=law.discipline,
            prompt=texts[level if level == "L1" else f"{level}/{entry.phrasing}"],
            phrasing=entry.phrasing,
            control=control.id if level == "L0" else "",
            real_law_prompt=real_law_prompt(law, scene, entry) if level == "L1" else "",
            depth=entry.depth,
            naive_outcome=entry.naive_outcome,
            logic_kind=entry.logic_kind,
            timed=timed,
            presence=entry.presence,
            **questions,
            status=scene.status,
            review=["code", *scene.review],
            provenance=Provenance(
                bank=f"counterfactual/{file}.yaml worlds/{file}.yaml",
                entry=scene.id,
                author=scene.author,
                calls=list(scene.calls),
            ),
        )
        for level in LEVELS
    ]


def _laws(banks: Banks) -> Iterator[Law]:
    return (law for some in banks.laws.values() for law in some)


def faults(rows: list[AlteredWorld], banks: Banks) -> Iterator[Fault]:
    bank_groups = {scene.id: (file, law, scene) for file, law, scene in groups(banks)}
    rows_by_group: dict[str, dict[str, AlteredWorld]] = {}
    for row in rows:
        yield from text_faults(row, "prompt")
        rows_by_group.setdefault(row.group, {})[row.level] = row
    phrasings: dict[str, Counter[str]] = {}
    for group, levels in rows_by_group.items():
        some = next(iter(levels.values()))
        phrasings.setdefault(some.discipline, Counter(dict.fromkeys(PHRASINGS, 0)))[
            some.phrasing
        ] += 1
        if set(levels) != set(LEVELS):
            yield Fault(some.id, "level", f"group {group} has levels {sorted(levels)}")
        # A release made from another bank has groups that this one lacks.
        if group in bank_groups and group in banks.worlds:
            for expected in group_rows(banks, *bank_groups[group]):
                if expected.level in levels:
                    for field in CONTENT:
                        yield from equal_fault(
                            levels[expected.level], field, getattr(expected, field)
                        )
    for discipline, counts in phrasings.items():
        if max(counts.values()) - min(counts.values()) > max(1, UNEVEN * counts.total()):
            yield Fault("", "phrasing", f"{discipline}: not balanced: {dict(counts)}")


SUITE = SuiteRecipe(
    name="altered_worlds",
    rows=GROUPS * len(LEVELS),
    source="CF-World (controls, both keys, phrasings and depth ours)",
    summary="The same scenes, with a control (L0) and premises told in three ways; each image is "
    "asked for the real and for the altered world.",
    build=build,
    faults=faults,
    added=is_added,
    # All levels, here and in `counterfactual`, are one scene.
    group=lambda row: ("scene", row.group),
    breakdown=("level", "phrasing", "depth", "naive_outcome", "logic_kind"),
    composition=Composition(
        by="discipline", distinct=("law", "group"), filled=("real_law_prompt",)
    ),
)
