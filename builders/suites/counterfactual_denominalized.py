"""`counterfactual_denominalized`: outcomes described instead of named (CF-World 5.3)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...schema import CounterfactualDenominalized, Provenance
from ..checks import text_faults
from ..counterfactual import denominalized_prompt, prompts
from ..suite import Banks, Fault, SuiteRecipe
from .counterfactual import groups


def build(banks: Banks, rng: random.Random) -> list[CounterfactualDenominalized]:
    rows = []
    for file, law, scene in groups(banks):
        prompt = denominalized_prompt(law, scene)
        if prompt is None or scene.denominalized is None:
            continue
        levels = prompts(law, scene)
        rows.append(
            CounterfactualDenominalized(
                group=scene.id,
                prompt=prompt,
                original_prompt=levels["L2"],
                replaced=[scene.denominalized.replace],
                altered_law=law.altered,
                assessment_point=scene.point_counterfactual,
                visual_integrity=scene.q_visual,
                assessment=scene.q_point_counterfactual,
                logic_consistency=scene.q_logic_counterfactual,
                plain_prompt=levels["L1"],
                plain_visual_integrity=scene.q_visual,
                plain_assessment=scene.q_point_factual,
                plain_logic_consistency=scene.q_logic_factual,
                status=scene.status,
                review=["code", *scene.review],
                provenance=Provenance(
                    bank=f"counterfactual/{file}.yaml",
                    entry=scene.id,
                    author=scene.author,
                    calls=list(scene.calls),
                ),
            )
        )
    return rows


def faults(rows: list[CounterfactualDenominalized], banks: Banks) -> Iterator[Fault]:
    for row in rows:
        yield from text_faults(row, "prompt", "original_prompt")
        for noun in row.replaced:
            before, found, after = row.original_prompt.rpartition(noun)
            if not found:
                yield Fault(row.id, "replaced", f"{noun!r} is not in the original prompt")
            elif not (row.prompt.startswith(before) and row.prompt.endswith(after)):
                yield Fault(row.id, "prompt", f"differs from the original beyond {noun!r}")
            elif noun.lower() in row.prompt[len(before) :].lower():
                yield Fault(row.id, "prompt", f"still names {noun!r}")


SUITE = SuiteRecipe(
    name="counterfactual_denominalized",
    rows=None,
    source="CF-World 5.3",
    summary="The L2 prompts whose outcome names a target, with a description in place of the name: "
    "is it the noun that the image follows?",
    build=build,
    faults=faults,
    # L1, L2, L3 and the description in place of the noun are one scene.
    group=lambda row: ("scene", row.group),
)
