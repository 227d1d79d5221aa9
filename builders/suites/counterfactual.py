"""`counterfactual`: scenes in worlds with one altered law, at three levels (CF-World, 3,273)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...schema import AlteredWorld, Counterfactual, Provenance
from ..build_result import Composition
from ..checks import equal_fault, text_faults
from ..counterfactual import CounterfactualScene, Law, near_duplicates, prompts
from ..suite import Banks, Fault, SuiteRecipe

GROUPS = 1_091
LEVELS = ("L1", "L2", "L3")
DUPLICATE_INDEX = 0.4
"""Jaccard index of three-word shingles above which two groups are near-duplicates."""
DUPLICATE_SHARE = 0.02
"""Share of groups that may be flagged."""


def build(banks: Banks, rng: random.Random) -> list[Counterfactual]:
    """All levels of the released groups, in the order of the bank."""
    return [
        _row(file, law, scene, level, prompts(law, scene)[level])
        for file, law, scene in groups(banks)
        for level in LEVELS
    ]


def groups(banks: Banks) -> list[tuple[str, Law, CounterfactualScene]]:
    """Bank file, law and scene of every released group, in the order of the bank.

    Where the bank has more than are released, the laws with the most scenes give up their last.
    Groups that were added to the frozen draw follow, all of them.
    """
    active = [
        (file, law, scene)
        for file, laws in banks.laws.items()
        for law in laws
        for scene in law.scenes
        if scene.status != "retired"
    ]
    places: Counter[str] = Counter()
    ranked = []
    for file, law, scene in active:
        if banks.frozen.holds("scenes", scene.id):
            ranked.append((places[law.id], file, law, scene))
            places[law.id] += 1
    released = {scene.id for _, _, _, scene in sorted(ranked, key=lambda group: group[0])[:GROUPS]}
    return [
        *((file, law, scene) for _, file, law, scene in ranked if scene.id in released),
        *(group for group in active if not banks.frozen.holds("scenes", group[2].id)),
    ]


def is_added(row: Counterfactual | AlteredWorld, banks: Banks) -> bool:
    """Whether a row's group is an addition to the frozen draw."""
    return not banks.frozen.holds("scenes", row.group)


def _row(
    file: str, law: Law, scene: CounterfactualScene, level: Any, prompt: str
) -> Counterfactual:
    factual = level == "L1"
    return Counterfactual(
        group=scene.id,
        level=level,
        discipline=law.discipline,
        branch=law.branch,
        prompt=prompt,
        law=law.law,
        altered_law=law.altered,
        assessment_point=scene.point_factual if factual else scene.point_counterfactual,
        visual_integrity=scene.q_visual,
        assessment=scene.q_point_factual if factual else scene.q_point_counterfactual,
        logic_consistency=scene.q_logic_factual if factual else scene.q_logic_counterfactual,
        status=scene.status,
        review=["code", *scene.review],
        provenance=Provenance(
            bank=f"counterfactual/{file}.yaml",
            entry=scene.id,
            author=scene.author,
            calls=list(scene.calls),
        ),
    )


def faults(rows: list[Counterfactual], banks: Banks) -> Iterator[Fault]:
    levels: dict[str, dict[str, Counterfactual]] = {}
    for row in rows:
        yield from text_faults(row, "prompt")
        levels.setdefault(row.group, {})[row.level] = row
    for group in levels.values():
        some = next(iter(group.values()))
        if set(group) != set(LEVELS):
            yield Fault(some.id, "level", f"group {some.group} has levels {sorted(group)}")
            continue
        deduced, explicit = group["L3"], group["L2"]
        if not explicit.prompt.startswith(deduced.prompt + " "):
            yield Fault(explicit.id, "prompt", "must be L3's prompt and then the outcome")
        scene = group["L1"].prompt.removeprefix("Draw ")
        expected = f"If {deduced.altered_law}, draw {scene}"
        yield from equal_fault(deduced, "prompt", expected)
        if group["L1"].assessment_point == explicit.assessment_point:
            yield Fault(explicit.id, "assessment_point", "is that of L1")
    texts = {name: group["L2"].prompt for name, group in levels.items() if "L2" in group}
    alike = near_duplicates(texts, DUPLICATE_INDEX)
    flagged = {name for a, b, _ in alike for name in (a, b)}
    if len(flagged) > DUPLICATE_SHARE * len(texts):
        worst = ", ".join(f"{a} ~ {b} ({index:.2f})" for a, b, index in alike[:3])
        yield Fault("", "prompt", f"{len(flagged)} groups are near-duplicates, first {worst}")


SUITE = SuiteRecipe(
    name="counterfactual",
    rows=GROUPS * len(LEVELS),
    source="CF-World",
    summary="Worlds with one altered law: the scene (L1), with premise and outcome (L2), with the "
    "premise alone (L3): does the image follow the premise or the world it knows?",
    build=build,
    faults=faults,
    added=is_added,
    # L1, L2, L3 and the description in place of the noun are one scene.
    group=lambda row: ("scene", row.group),
    breakdown=("discipline", "level"),
    composition=Composition(by="branch", distinct=("altered_law", "group")),
)
