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
    """Every variant of every rule, of additions last; nothing is sampled."""
    added = {rule.id: not banks.frozen.holds("rules", rule.id) for rule in banks.rules}
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
        for rule in sorted(banks.rules, key=lambda rule: added[rule.id])
        for variant in rule.variants
    ]


def is_added(row: RuleDecoupling, banks: Banks) -> bool:
    """Whether a row's rule is an addition to the frozen draw."""
    return not banks.frozen.holds("rules", row.rule)


def faults(rows: list[RuleDecoupling], banks: Banks) -> Iterator[Fault]:
    bank = {row.id: row for row in build(banks, random.Random())}
    for row in rows:
        yield from text_faults(row, "prompt", "assessment_point")
        # A release made from another bank has rules that this one lacks.
        if row.id in bank:
            for field in ("factual", "prompt", "assessment_point"):
                yield from equal_fault(row, field, getattr(bank[row.id], field))
    yield from duplicate_faults(rows, "prompt", lambda row: row.prompt)
    frozen = [row for row in rows if not is_added(row, banks)]
    rules = {row.rule for row in frozen}
    if len(rules) != RULES or len(frozen) != ROWS:
        message = f"{len(frozen)} rows on {len(rules)} rules, must be {ROWS} on {RULES}"
        yield Fault("", "rule", message)


SUITE = SuiteRecipe(
    name="rule_decoupling",
    rows=ROWS,
    source="CF-World 5.1 (rules ours)",
    summary="Rules stated in the prompt, drawable with plain shapes: is the stated rule drawn "
    "where it is not ours?",
    build=build,
    faults=faults,
    added=is_added,
    # Factual and counterfactual variants.
    group=lambda row: ("rule", row.rule),
    breakdown=("factual",),
    composition=Composition(by="rule", counts=("factual",)),
)
