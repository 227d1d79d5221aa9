"""The bank of symbolic rules, each as it holds in our world and in others (CF-World 5.1)."""

from __future__ import annotations

import string
from collections.abc import Iterator
from pathlib import Path

from ..schema import Struct
from .bank import BankError, by_name, read_entries


class RuleVariant(Struct):
    """One variant of a rule."""

    id: str
    """Slug within the rule; never changes."""
    factual: bool
    """Whether it holds in our world."""
    slots: dict[str, str]
    """Values of the slots in the rule's texts."""


class Rule(Struct):
    """A rule that can be drawn with plain shapes."""

    id: str
    """Slug; never changes."""
    law: str
    """The rule of our world, one sentence."""
    prompt: str
    """Prompt with ``{slots}``."""
    shows: str
    """Assessment point: content that the image must show, with ``{slots}``."""
    variants: list[RuleVariant]
    """Six: one or two factual, the others not."""
    review: tuple[str, ...] = ()
    """Reviewers besides the author: `reviewer-model`, `human`."""
    author: str = "curated"
    """Author: `curated`, or the model, e.g. `openai:MODEL`."""
    calls: tuple[str, ...] = ()
    """Ledger ids of the model calls it was written with."""


def read_rules(bank: Path) -> list[Rule]:
    """Every rule, checked. Raises BankError naming the entry."""
    file = bank / "rules.yaml"
    rules = read_entries(file, Rule)
    by_name(rules, "id", str(file))
    for rule in rules:
        for reason in rule_faults(rule):
            raise BankError(f"{file}, {rule.id}{reason}", code="bad-entry")
    return rules


def rule_faults(rule: Rule) -> Iterator[str]:
    """Yields the faults of a rule; each starts with `: ` or with `, ` and a variant's id."""
    ids = [variant.id for variant in rule.variants]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f": id {name!r} is used twice"
    factual = sum(variant.factual for variant in rule.variants)
    if not 1 <= factual <= 2 or not 4 <= len(rule.variants) - factual <= 5:
        yield ": needs 1-2 factual and 4-5 counterfactual variants"
    needed = _slots(rule.prompt) | _slots(rule.shows)
    for variant in rule.variants:
        if set(variant.slots) != needed:
            yield f", {variant.id}: slots must be {sorted(needed)}"
            return
    points = [rule.shows.format(**variant.slots) for variant in rule.variants]
    for variant, point in zip(rule.variants, points, strict=True):
        if points.count(point) > 1:
            yield f", {variant.id}: another variant shows the same: {point!r}"


def _slots(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}
