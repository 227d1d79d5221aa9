"""`rule_decoupling`, `attribute_decoupling`: does the image show what usually isn't so? (CF-World)

Rules as they hold here and elsewhere, on plain shapes (section 5.1); the same concepts in rare and
in common company (section 5.2). One question an image: does it show its assessment point? The
judge's `degree` of yes counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from PIL.Image import Image

from ...schema import AttributeDecoupling, RuleDecoupling
from ..core import ALL, ORIGINAL, Case, Outcome, Question, Score, count_excluded
from ..questions import read_prompt
from ..questions.asking import ask_yes_no
from .base import Headline, Item, Measure, Suite, by_variant
from .columns import cluster_numbers
from .scoring import difference, grouped, mean_value, statistics, variant_columns
from .worths import YES_NO, degree

QUESTION = "shows"
D = TypeVar("D", RuleDecoupling, AttributeDecoupling)


def shown(outcome: Outcome) -> float:
    """How far an image shows its point by its judge, in [0, 1]; NaN for a failure."""
    return degree(outcome.verdict(QUESTION))


def mean_shown(name: str, outcomes: Sequence[Outcome], group: str = ALL) -> Score:
    """The mean of `shown`."""
    return mean_value(name, outcomes, shown, lambda outcome: outcome.label(QUESTION), group)


def shown_headline(variant: str, meaning: str) -> Headline:
    """Ranks by the share of one variant's images that show their point."""
    return Headline(
        score=f"shown_{variant}",
        better="higher",
        meaning=meaning,
        items=lambda outcomes: {
            o.case.id: Item((shown(o),), o.case.cluster)
            for o in outcomes
            if o.case.variant == variant
        },
        broken_down=("shown",),
    )


class Decoupling(Suite[D]):
    """Share of images that show their point, in two variants, and the gap between them."""

    has_right_images = True
    worths = {QUESTION: YES_NO}

    def questions(self, row: D, case: Case, images: Sequence[Image], probe: str) -> list[Question]:
        if probe != ORIGINAL:
            return []
        question = f"Does the picture show the following? {row.assessment_point}"
        return [ask_yes_no(case, QUESTION, read_prompt(*self.prompts), question, images[-1])]

    def correctness(self, outcome: Outcome) -> float:
        return shown(outcome)

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for variant, of_variant in by_variant(outcomes, self.variants):
            measure = Measure(f"shown_{variant}", of_variant, shown, YES_NO, "1")
            yield frozenset((QUESTION,)), measure

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        values = np.array([shown(outcome) for outcome in outcomes], dtype=float)
        columns, missing = variant_columns(values, outcomes, self.variants)
        labels = (outcome.label(QUESTION) for outcome in outcomes)
        gap: list[Score] = statistics(
            ("gap",),
            columns,
            cluster_numbers(outcomes),
            ends=YES_NO.ends,
            statistic=difference,
            counts=[int((~np.isnan(values)).sum())],
            unit="1",
            excluded=count_excluded(labels, YES_NO.values),
            missing=missing,
        )
        of_variants: list[Score] = [
            mean_shown(f"shown_{variant}", of_variant)
            for variant, of_variant in by_variant(outcomes, self.variants)
        ]
        return [*of_variants, *gap]


class RuleDecouplingSuite(Decoupling[RuleDecoupling]):
    """Share of images that obey the stated rule, where it is ours and where it isn't."""

    name = "rule_decoupling"
    offline_rows = 0
    population = "rules"
    variants = ("factual", "counterfactual")
    headline = shown_headline(
        "counterfactual", "Share of images that obey a rule which doesn't hold here."
    )
    meanings = {
        "shown_factual": "Share of images that obey a rule of our world.",
        "shown_counterfactual": "Share of images that obey a rule which doesn't hold here.",
        "gap": "Factual less counterfactual.",
        "shown": "Share of images that obey the rule, in all of its variants.",
    }

    def cases(self, row: RuleDecoupling, seeds: int) -> Iterator[Case]:
        variant = self.variants[0 if row.factual else 1]
        return self.seeded(row, seeds, {variant: row.prompt}, (row.rule,), {"rule": row.rule})

    def together(self, row: RuleDecoupling) -> str:
        return row.rule

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        by_rule = [
            mean_shown("shown", members, group)
            for group, members in grouped(outcomes)
            if group != ALL
        ]
        return [*super().score(outcomes), *by_rule]


class AttributeDecouplingSuite(Decoupling[AttributeDecoupling]):
    """Share of images with the attribute, where it is usual and where it isn't."""

    name = "attribute_decoupling"
    offline_rows = 0
    population = "pairs of values"
    variants = ("common", "rare")
    headline = shown_headline("rare", "Share of images that show a rare attribute.")
    meanings = {
        "shown_common": "Share of images that show an attribute where it is usual.",
        "shown_rare": "Share of images that show an attribute where it is rare.",
        "gap": "Common less rare.",
    }

    def cases(self, row: AttributeDecoupling, seeds: int) -> Iterator[Case]:
        return self.seeded(row, seeds, {row.rarity: row.prompt}, (row.pair,))

    def together(self, row: AttributeDecoupling) -> str:
        return row.pair
