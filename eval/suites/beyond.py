"""`order_beyond`: mention order with three entities, one above the other, and in depth (OTS-Bench).

Every two entities of an image are asked about. Kendall's tau says how far the order in the image is
the order of mention: 1 where it is the same, -1 where it is reversed; with two entities there is
nothing between. An image is valid where all of its pairs are decided and give one order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from PIL.Image import Image

from ...scenes.scene import Scene
from ...schema import OrderBeyond
from ..core import (
    ALL,
    FAILURES,
    INVALID,
    Case,
    Outcome,
    Question,
    Score,
    count_excluded,
    is_mirrored,
)
from ..questions.asking import AMONG, PROMPTS, STATEMENTS, Alternative, Stated, Subject, ask_which
from ..questions.truth import scene_label
from ..stats.bootstrap import Array
from .base import Headline, Items, Measure, Suite
from .columns import cluster_numbers, row_numbers
from .homogenization import order_and_entity_effect, order_effect, order_items
from .scoring import magnitude, mean_score, order_log_odds, statistics, variant_columns
from .worths import Worth

IN_ORDER = Worth({"in_order": 1.0, "against": -1.0}, prior="in_order", unscored=(INVALID,))
PAIRS = {"pair_12": (0, 1), "pair_13": (0, 2), "pair_23": (1, 2)}
"""Question -> places of its two entities in the order of mention."""
FORWARD = {"horizontal": "left_of", "vertical": "above", "depth": "in_front_of"}
FIXED = "three_correctness"
"""The setting in which one order is right."""


def order_of(outcome: Outcome) -> str:
    """The label that keeps an image from having one order; empty if it has one.

    A failure before `invalid`; `invalid` too where the answers go in a circle.
    """
    labels = [outcome.label(question) for question in outcome.case.weights]
    for label in (*FAILURES, INVALID):
        if label in labels:
            return label
    if len(labels) == len(PAIRS) and labels[0] == labels[2] != labels[1]:
        return INVALID  # first before second before third before first
    return ""


def tau(outcome: Outcome) -> float:
    """Kendall's tau of the order in the image and the order of mention; NaN where there is none."""
    if order_of(outcome):
        return math.nan
    signs = [IN_ORDER.of(outcome.verdict(question)) for question in outcome.case.weights]
    return sum(signs) / len(signs)


def monotone(outcome: Outcome) -> float:
    """1 where the image shows the order of mention; NaN where it has no order."""
    correlation = tau(outcome)
    return correlation if math.isnan(correlation) else float(correlation == 1)


def right(outcome: Outcome) -> float:
    """1 where the image shows the order that a fact fixes, whichever way it is mentioned."""
    correlation = tau(outcome)
    expected = 1 if outcome.case.variant == "plain" else -1
    return correlation if math.isnan(correlation) else float(correlation == expected)


def _neutral(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.case.groups.get("setting") != FIXED]


def _items(outcomes: Sequence[Outcome]) -> Items:
    return order_items(tau, OrderBeyondSuite.variants)(_neutral(outcomes))


class OrderBeyondSuite(Suite[OrderBeyond]):
    """Effect of mention order on three entities, on one above the other, and on depth."""

    name = "order_beyond"
    population = "sets of entities"
    scores_by_group = True
    variants = ("plain", "swapped")
    prompts = (AMONG, PROMPTS["vertical"], PROMPTS["depth"])
    worths = dict.fromkeys(PAIRS, IN_ORDER)
    headline = Headline(
        score="order_bias",
        better="lower",
        meaning="How far the order of mention always becomes the order in the image, over the "
        "neutral settings; 0 without a prior.",
        items=_items,
        ends=(-1.0, 1.0),
        statistic=order_effect,
        is_size=True,
        broken_down=("order_index",),
    )
    meanings = {
        "order_bias": "Size of the mean order index of the two orders of mention, each of which "
        "weighs the same: chance alone gives more than 0. p: share of sign patterns "
        "over sets of entities that give as much (sign-flip test).",
        "order_index": "Mean of Kendall's tau of order in the image and order of mention, times "
        "100: +100 where every image shows the order of mention, -100 where every image reverses "
        "it. With two entities that is the signed index.",
        "order_log_odds": "The effect of mention order on two entities, one mentioned right after "
        "the other, in log odds within each pair, whatever the pair prefers.",
        "monotone": "Share of valid images that show the whole order of mention.",
        "monotone_of_all": "The same of all judged images; one without an order counts as failed, "
        "as the rebuttal counts three entities.",
        "valid": "Share of judged images whose entities have one order.",
        "accuracy_aligned": "Share of valid images with the order that a fact fixes, mentioned in "
        "that order.",
        "accuracy_reverse": "The same, mentioned the other way round.",
        "delta": "Aligned less reverse: what mention order costs where a fact decides.",
    }

    def cases(self, row: OrderBeyond, seeds: int) -> Iterator[Case]:
        clusters = ("/".join(sorted(row.entities)),)
        if row.setting == FIXED:
            clusters = (row.provenance.entry,)  # triples of one sequence overlap
        weights = {name: 1.0 for name, (_, second) in PAIRS.items() if second < len(row.entities)}
        prompts = {"plain": row.prompt, "swapped": row.swapped_prompt}
        yield from self.seeded(row, seeds, prompts, clusters, {"setting": row.setting}, weights)

    def together(self, row: OrderBeyond) -> str:
        return row.provenance.entry if row.setting == FIXED else row.id

    def questions(
        self, row: OrderBeyond, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe) and row.axis != "horizontal":
            return []
        looks = list(zip(row.entities, row.looks, strict=True))
        subjects = [Subject(*pair) for pair in (looks if case.variant == "plain" else looks[::-1])]
        several = len(subjects) > 2
        alternatives = [
            Alternative(
                "order",
                subjects[first],
                subjects[second],
                ("in_order", "against"),
                prior="in_order",
                prompt=AMONG if several else PROMPTS[row.axis],
                statement=STATEMENTS[row.axis],
                axis=row.axis,
                objects=tuple(row.entities) if several else (),
                name=name,
            )
            for name, (first, second) in PAIRS.items()
            if name in case.weights
        ]
        return [ask_which(alternative, case, probe, images) for alternative in alternatives]

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        scores = self.order_scores(_neutral(outcomes), ALL)
        for setting in sorted({o.case.groups["setting"] for o in outcomes}):
            of_setting = [o for o in outcomes if o.case.groups["setting"] == setting]
            group = f"setting={setting}"
            scores += self.order_scores(of_setting, group)
        fixed = [o for o in outcomes if o.case.groups["setting"] == FIXED]
        return [*scores, *(correctness_scores(fixed) if fixed else ())]

    def order_scores(self, outcomes: Sequence[Outcome], group: str) -> list[Score]:
        """Scores of mention order over some images."""
        if not outcomes:
            return []
        reasons = [order_of(outcome) for outcome in outcomes]
        excluded = count_excluded(reasons, [""])
        failed = {label: n for label, n in excluded.items() if label in FAILURES}
        taus = np.array([tau(outcome) for outcome in outcomes])
        monotone_values = np.array([monotone(outcome) for outcome in outcomes])
        valid = np.array([math.nan if k in FAILURES else float(not k) for k in reasons])
        of_all = np.where(valid == 0, 0.0, np.where(np.isnan(valid), math.nan, monotone_values))
        index = mean_score(
            "order_index", taus, outcomes, ends=IN_ORDER.ends, group=group, excluded=excluded
        )
        columns, missing = variant_columns(taus, outcomes, self.variants)
        (effect,) = statistics(
            ("order_effect",),
            columns,
            cluster_numbers(outcomes),
            ends=IN_ORDER.ends,
            statistic=order_and_entity_effect,
            counts=(int((~np.isnan(taus)).sum()),),
            group=group,
            excluded=excluded,
            missing=missing,
        )
        return [
            magnitude("order_bias", effect, taus, outcomes),
            index,
            _log_odds(outcomes, group),
            replace(
                mean_score("monotone", monotone_values, outcomes, group=group, excluded=excluded),
                null=100 * _chance(outcomes),
            ),
            mean_score("monotone_of_all", of_all, outcomes, group=group, excluded=failed),
            mean_score("valid", valid, outcomes, group=group, excluded=failed),
        ]

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        neutral = _neutral(outcomes)
        questions = {question for outcome in neutral for question in outcome.case.weights}
        if neutral:
            yield frozenset(questions), Measure("order_index", neutral, tau, IN_ORDER)

    def truth(self, row: OrderBeyond, case: Case, scene: Scene) -> Mapping[str, str]:
        named = row.entities if case.variant == "plain" else row.entities[::-1]
        means = {"holds": "in_order", "opposite": "against", INVALID: INVALID}
        return {
            name: means[scene_label(scene, Stated(named[a], FORWARD[row.axis], named[b]))]
            for name, (a, b) in PAIRS.items()
            if name in case.weights
        }


def _log_odds(outcomes: Sequence[Outcome], group: str) -> Score:
    """The effect of mention order on two entities that are mentioned one right after the other.

    Two neighbors are neighbors in the other order, too: `pair_12` of three entities is its
    `pair_23`.
    """
    named = [outcome for outcome in outcomes for _ in range(max(1, len(outcome.case.weights) - 1))]
    neighbors = [
        question
        for outcome in outcomes
        for question in outcome.case.weights
        if question != "pair_13"
    ]
    swapped = [outcome.case.variant == "swapped" for outcome in named]
    second_pair = [
        len(outcome.case.weights) > 1 and (question == "pair_23") != is_swapped
        for outcome, question, is_swapped in zip(named, neighbors, swapped, strict=True)
    ]
    signs = np.array(
        [
            math.nan if order_of(outcome) else IN_ORDER.of(outcome.verdict(question))
            for outcome, question in zip(named, neighbors, strict=True)
        ]
    )
    pairs = 2 * row_numbers(named) + np.array(second_pair, dtype=int)
    return order_log_odds(signs, np.array(swapped, dtype=bool), pairs, named, group)


def correctness_scores(fixed: Sequence[Outcome]) -> list[Score]:
    """Accuracy where a fact fixes the order, mentioned in that order and in the other."""
    values = np.array([right(outcome) for outcome in fixed])
    columns, _ = variant_columns(values, fixed, OrderBeyondSuite.variants)
    counts = [int((~np.isnan(column)).sum()) for column in columns.T]

    def with_difference(means: Array) -> Array:
        return np.concatenate([means, means[..., :1] - means[..., 1:]], axis=-1)

    scores = statistics(
        ("accuracy_aligned", "accuracy_reverse", "delta"),
        columns,
        np.array([outcome.case.clusters[0] for outcome in fixed]),
        ends=(0, 1),
        statistic=with_difference,
        counts=(*counts, sum(counts)),
        excluded=count_excluded([order_of(outcome) for outcome in fixed], [""]),
    )
    chance = 100 * _chance(fixed)
    return [score if score.name == "delta" else replace(score, null=chance) for score in scores]


def _chance(outcomes: Sequence[Outcome]) -> float:
    """Share of valid images with one given order where all orders are alike; NaN without a valid
    image."""
    valid = [outcome for outcome in outcomes if not order_of(outcome)]
    orders = {1: 2, len(PAIRS): 6}
    shares = [1 / orders[len(outcome.case.weights)] for outcome in valid]
    return sum(shares) / len(shares) if shares else math.nan
