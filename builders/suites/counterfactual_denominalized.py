"""`counterfactual_denominalized`: outcomes described instead of named (CF-World 5.3)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from ...schema import CounterfactualDenominalized, Provenance
from ..checks import equal_fault, text_faults
from ..counterfactual import CounterfactualScene, Law, denominalized_prompt, prompts
from ..lemmas import content, lemma
from ..suite import Banks, Fault, SuiteRecipe
from ..worlds import naming, world_prompts
from .counterfactual import groups


class Described(NamedTuple):
    """The prompts of a group, and the text that one of them no longer contains."""

    prompt: str
    """With the outcome described."""
    original_prompt: str
    """L2, with the outcome named."""
    plain_prompt: str
    """L1."""
    replaced: str
    """The noun, or the text that names the outcome."""


def build(banks: Banks, rng: random.Random) -> list[CounterfactualDenominalized]:
    rows = []
    for file, law, scene in groups(banks):
        described = _described(banks, law, scene)
        if described is None:
            continue
        worlds = f" worlds/{file}.yaml" if scene.id in banks.worlds else ""
        rows.append(
            CounterfactualDenominalized(
                group=scene.id,
                prompt=described.prompt,
                original_prompt=described.original_prompt,
                replaced=[described.replaced],
                altered_law=law.altered,
                assessment_point=scene.point_counterfactual,
                visual_integrity=scene.q_visual,
                assessment=scene.q_point_counterfactual,
                logic_consistency=scene.q_logic_counterfactual,
                plain_prompt=described.plain_prompt,
                plain_visual_integrity=scene.q_visual,
                plain_assessment=scene.q_point_factual,
                plain_logic_consistency=scene.q_logic_factual,
                status=scene.status,
                review=["code", *scene.review],
                provenance=Provenance(
                    bank=f"counterfactual/{file}.yaml{worlds}",
                    entry=scene.id,
                    author=scene.author,
                    calls=list(scene.calls),
                ),
            )
        )
    return rows


def _described(banks: Banks, law: Law, scene: CounterfactualScene) -> Described | None:
    """The prompts of a group whose outcome the bank describes; None if it does not.

    Where a group has an entry in `worlds/`, that decides, and both prompts are told alike: in the
    short form if there is one. A bank that models wrote has no entries. The two prompts differ in
    the outcome alone, and the noun is one that a scored question asks about: else a change of score
    would not come from the noun.
    """
    if (entry := banks.worlds.get(scene.id)) is not None:
        if entry.described is None or entry.described.altered or entry.described.scene:
            return None
        if not asked_about(entry.described.noun, scene):
            return None
        prompts_by_level = world_prompts(law, scene, entry, None)
        return Described(
            prompts_by_level["described"],
            prompts_by_level["L2/template"],
            prompts_by_level["L1"],
            entry.described.noun,
        )
    prompt, levels = denominalized_prompt(law, scene), prompts(law, scene)
    if prompt is None or scene.denominalized is None:
        return None
    return Described(prompt, levels["L2"], levels["L1"], scene.denominalized.replace)


def asked_about(noun: str, scene: CounterfactualScene) -> bool:
    """Whether one of the two scored questions about the altered world names the noun."""
    questions = (scene.q_point_counterfactual, scene.q_logic_counterfactual)
    return any(lemma(noun) in content(question.text) for question in questions)


def faults(rows: list[CounterfactualDenominalized], banks: Banks) -> Iterator[Fault]:
    bank_groups = {scene.id: (law, scene) for _, law, scene in groups(banks)}
    for row in rows:
        yield from text_faults(row, "prompt", "original_prompt")
        for noun in row.replaced:
            if noun.lower() not in row.original_prompt.lower():
                yield Fault(row.id, "replaced", f"{noun!r} is not in the original prompt")
            elif row.group not in banks.worlds:
                yield from _part_faults(row, noun)
        # A release made from another bank has groups that this one lacks.
        expected = _described(banks, *bank_groups[row.group]) if row.group in bank_groups else None
        if expected is None or row.group not in banks.worlds:
            continue
        for field in ("prompt", "original_prompt", "plain_prompt"):
            yield from equal_fault(row, field, getattr(expected, field))
        deduced, _, _ = row.original_prompt.partition(". ")
        if not row.prompt.startswith(f"{deduced}. "):
            yield Fault(row.id, "prompt", "differs from the original in premise or scene")
        scene = bank_groups[row.group][1]
        if not asked_about(expected.replaced, scene):
            yield Fault(row.id, "replaced", f"no scored question asks about {expected.replaced!r}")
        for message in naming(
            row.prompt, expected.replaced, f"{scene.scene} {scene.counterfactual}"
        ):
            yield Fault(row.id, "prompt", message)


def _part_faults(row: CounterfactualDenominalized, named: str) -> Iterator[Fault]:
    """Yields the faults of a prompt in which only some text of the outcome was replaced."""
    before, _, after = row.original_prompt.rpartition(named)
    if not (row.prompt.startswith(before) and row.prompt.endswith(after)):
        yield Fault(row.id, "prompt", f"differs from the original beyond {named!r}")
    elif named.lower() in row.prompt[len(before) :].lower():
        yield Fault(row.id, "prompt", f"still names {named!r}")


SUITE = SuiteRecipe(
    name="counterfactual_denominalized",
    rows=None,
    source="CF-World 5.3",
    summary="L2 prompts whose outcome is a thing that a scored question names, and the same "
    "without its noun anywhere, the thing told by its looks: is it the noun that the image "
    "follows?",
    build=build,
    faults=faults,
    # L1, L2, L3 and the description in place of the noun are one scene.
    group=lambda row: ("scene", row.group),
)
