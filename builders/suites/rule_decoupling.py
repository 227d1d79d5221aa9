"""`rule_decoupling`: symbolic rules, as they hold here and elsewhere (CF-World 5.1, 198 rows)."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...schema import Provenance, RuleDecoupling
from ..build_result import Composition
from ..checks import duplicate_faults, equal_fault, text_faults
from ..suite import Banks, Fault, SuiteRecipe

RULES = 33
ROWS = 198


def build(banks: Banks, rng: random.Random) -> list[RuleDecoupling]:
    """Every variant of every rule; nothing is sampled."""
    return [
        RuleDecoupling(
            rule=rule.id,
            variant=variant.id,
            factual=variant.factual,
            prompt=rule.prompt.format(**variant.slots),
            assessment_point=rule.shows.format(**variant.slots),
            review=["code", *rule.review],
            provenance=Provenance(
                bank="rules.yaml",
                entry=f"{rule.id}, {variant.id}",
                author=rule.author,
                calls=list(rule.calls),
            ),
        )
        for rule in banks.rules
        for variant in rule.variants
    ]


def faults(rows: list[RuleDecoupling], banks: Banks) -> Iterator[Fault]:
    bank = {row.id: row for row in build(banks, random.Random())}
    for row in rows:
        yield from text_faults(row, "prompt", "assessment_point")
        # A release made from another bank has rules that this one lacks.
        if row.id in bank:
            for field in ("factual", "prompt", "assessment_point"):
                yield from equal_fault(row, field, getattr(bank[row.id], field))
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    rules = {row.rule for row in rows}
    if len(rules) != RULES or len(rows) != ROWS:
        message = f"{len(rows)} rows on {len(rules)} rules, must be {ROWS} on {RULES}"
        yield Fault("", "rule", message)


SUITE = SuiteRecipe(
    name="rule_decoupling",
    rows=ROWS,
    source="CF-World 5.1 (rules ours)",
    summary="Rules stated in the prompt, drawable with plain shapes: is the stated rule drawn "
    "where it is not ours?",
    build=build,
    faults=faults,
    # Factual and counterfactual variants.
    group=lambda row: ("rule", row.rule),
    breakdown=("factual",),
    composition=Composition(by="rule", counts=("factual",)),
)
