"""`t2i_correctness`, `i2i_correctness`: right in both mention orders, or in one? (OTS-Bench)"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...scenes.poses import find_pose
from ...scenes.scene import Scene
from ...schema import I2ICorrectness, T2ICorrectness, T2ICorrectnessGold
from ..core import INVALID, Case, Outcome, Question, Score, count_excluded, is_mirrored
from ..questions.asking import Alternative, Stated, Subject, ask_binding, ask_which
from ..questions.frames import VIEWS
from ..questions.truth import STANDING, scene_label
from ..stats.bootstrap import Array
from ..stats.comparison import mcnemar
from ..stats.intervals import NOTHING
from .base import Headline, Measure, PaperSuite, R, about_pair, by_variant, case_items
from .columns import cluster_numbers
from .scoring import (
    in_groups,
    mean_worth,
    paired_difference,
    statistics,
    valid_score,
    variant_scores,
)
from .worths import Worth, values_of

ACTIONS = ("is lying down on the ground", "is jumping high into the air")
"""Actions of the left and the right entity in rows whose truth a renderer knows."""
RIGHT = Worth({"correct": 1.0, "wrong": 0.0}, prior="correct", unscored=(INVALID,))
UNCONDITIONAL = Worth({**RIGHT.values, INVALID: 0.0}, prior="correct")
"""An image that doesn't show the pair as asked isn't right either."""


def correctness_headline(question: str) -> Headline:
    """Ranks by accuracy where mention order misleads, over all images that were judged."""
    return Headline(
        score="accuracy_reverse_unconditional",
        better="higher",
        meaning="Share of images that show the pair, and right, where the order of mention speaks "
        "against it.",
        items=case_items(question, UNCONDITIONAL, "reverse"),
        broken_down=("accuracy_aligned", "accuracy_reverse"),
        slope=("accuracy_aligned", "accuracy_reverse"),
        checks=("accuracy_aligned_unconditional", "delta", "valid_aligned", "valid_reverse"),
    )


def ask_arrangement(
    row: T2ICorrectness | T2ICorrectnessGold,
    case: Case,
    probe: str,
    images: Sequence[Image],
    *,
    by_paper: bool,
) -> Question:
    """Does the pair stand as it must? Gold images get the question of the suite."""
    alternative = Alternative(
        "arrangement",
        Subject(row.left, row.tell_left),
        Subject(row.right, row.tell_right),
        ("correct", "wrong"),
        prior=RIGHT.prior,
        values={
            "context": row.context,
            "seen": VIEWS[row.frame],
            "left_thing": row.left,
            "right_thing": row.right,
        },
        by_paper=by_paper,
    )
    return ask_which(alternative, case, probe, images)


ORDERS: tuple[str, ...] = ("aligned", "reverse")
"""Variants of a row that mention both things."""
CELLS = {
    "right_in_both": ((1.0, 1.0),),
    "right_only_aligned": ((1.0, 0.0),),
    "right_only_reverse": ((0.0, 1.0),),
    "wrong_in_both": ((0.0, 0.0),),
}
"""Score -> right aligned, right reverse."""


class Correctness(PaperSuite[R]):
    """One question, right or wrong, asked of both mention orders."""

    has_right_images = True
    variants = ORDERS
    meanings = {
        "accuracy_aligned": "Share of right images where mention order helps (Ali).",
        "accuracy_reverse": "Share of right images where mention order misleads (Rev).",
        **{
            f"accuracy_{variant}_unconditional": f"Share of judged images, mention order {what}, "
            "that show the pair as asked and right. One that doesn't show it counts as not right: "
            "images that can't be told gain nothing."
            for variant, what in (("aligned", "helping"), ("reverse", "misleading"))
        },
        "valid_aligned": "Share of judged images, mention order helping, that show the pair as "
        "asked.",
        "valid_reverse": "Share of judged images, mention order misleading, that show the pair as "
        "asked.",
        "delta": "Ali - Rev, as the paper prints it: each accuracy over its own valid images.",
        "delta_paired": "Mean of right aligned - right reverse over the pairs and seeds that are "
        "valid in both orders; p over clusters, or McNemar's exact one if that is larger.",
        "right_in_both": "Share of these pairs and seeds that are right in both orders: grounded.",
        "right_only_aligned": "Share right only where mention order helps: it follows the order.",
        "right_only_reverse": "Share right only where mention order misleads.",
        "wrong_in_both": "Share wrong in both orders: it follows another prior.",
    }

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for question in self.worths:
            for variant, of_variant in self._by_variant(outcomes):
                yield self.measure(f"accuracy_{variant}", of_variant, question)

    def _by_variant(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
        """The outcomes of both orders, and of any other variant that occurs."""
        for variant, of_variant in by_variant(outcomes, self.variants):
            if of_variant or variant in ORDERS:
                yield variant, of_variant

    def correctness(self, outcome: Outcome) -> float:
        (question,) = self.worths
        return UNCONDITIONAL.of(outcome.verdict(question))

    def right_if_valid(self, outcome: Outcome) -> float:
        """1 or 0 by the label; NaN for an image that doesn't show the pair as asked."""
        (question,) = self.worths
        return RIGHT.of(outcome.verdict(question))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, self._scores)

    def _scores(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        (question,) = self.worths
        for variant, of_variant in self._by_variant(outcomes):
            name = f"accuracy_{variant}"
            accuracy = mean_worth(name, of_variant, question, RIGHT, group=group)
            yield replace(accuracy, null=50)  # a coin decides the layout of a valid image
            if variant in ORDERS:
                name += "_unconditional"
                yield mean_worth(name, of_variant, question, UNCONDITIONAL, group=group)
            yield valid_score(f"valid_{variant}", of_variant, question, RIGHT, group)
        ordered = [outcome for outcome in outcomes if outcome.case.variant in ORDERS]
        yield from variant_scores(("delta",), ordered, question, RIGHT, ORDERS, group=group)
        yield from self._paired(ordered, group)

    def _paired(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        """Ali - Rev over the rows and seeds that are valid in both orders, and their four cells."""
        pairs: dict[tuple[str, int], list[float]] = {}
        first: dict[tuple[str, int], Outcome] = {}
        for outcome in outcomes:
            key = outcome.case.row, outcome.case.seed
            place = ORDERS.index(outcome.case.variant)
            pairs.setdefault(key, [math.nan, math.nan])[place] = self.right_if_valid(outcome)
            first.setdefault(key, outcome)
        values = np.array(list(pairs.values())).reshape(-1, 2)
        difference = values[:, 0] - values[:, 1]
        n = int((~np.isnan(difference)).sum())
        only = int((difference > 0).sum()), int((difference < 0).sum())
        clusters = cluster_numbers(list(first.values()))
        excluded = {"not_valid_in_both": len(values) - n}
        paired = paired_difference("delta_paired", values, clusters, group=group, excluded=excluded)
        # Few differences need the exact test, and alike seeds of a pair that of clusters.
        yield replace(paired, p_value=max(paired.p_value, mcnemar(*only))) if n else paired
        yield from kinds(CELLS, values, clusters, group, excluded)


RightPattern = tuple[float, ...]
"""Values of an item of a kind."""


def kinds(
    patterns: Mapping[str, Sequence[RightPattern]],
    values: Array,
    clusters: NDArray[np.intp],
    group: str,
    excluded: Mapping[str, int],
) -> Iterator[Score]:
    """For each kind the share of items whose values, shape (n, k), are one of its patterns.

    Items that lack a value are left out. The null is that of a coin for each value.
    """
    complete = np.asarray(~np.isnan(values).any(axis=1))
    columns = [
        np.where(
            complete, [any(tuple(row) == pattern for pattern in kind) for row in values], np.nan
        )
        for kind in patterns.values()
    ]
    scores = statistics(
        tuple(patterns),
        np.stack(columns, axis=1).astype(float),
        clusters,
        ends=(0, 1),
        counts=[int(complete.sum())] * len(patterns),
        missing=np.tile(~complete[:, None], len(patterns)),
        group=group,
        excluded=excluded,
    )
    for score, kind in zip(scores, patterns.values(), strict=True):
        yield replace(score, null=100 * len(kind) / 2 ** values.shape[1])


UNORDERED = "unordered"
TWINS = {
    "twins_right": ((1.0, 1.0, 1.0, 1.0),),
    "twins_habit": ((1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 1.0)),
    "twins_order": ((1.0, 0.0, 1.0, 0.0),),
}
"""Score -> correctness of twins with one seed: aligned and reverse of the first, of the second."""


def knowledge(unordered: Mapping[int, float], number: int) -> float:
    """Weight of a row by how its images without order came out, seen from one of its seeds.

    unordered: number of a seed -> whether its image without order is right, 1 or 0, NaN for
    neither. Images of other seeds decide where there are two: the same noise may draw the same
    layout. With r of m right: r (2 r - 1 - m) / (m (m - 1)), on average u (2 u - 1) if a share u is
    right: 1 for what is known, 0 for what is guessed and for what is known wrongly. NaN for m < 2.
    """
    right = {seed: value for seed, value in unordered.items() if not math.isnan(value)}
    others = [value for seed, value in right.items() if seed != number]
    values = others if len(others) > 1 else list(right.values())
    r, m = sum(values), len(values)
    return r * (2 * r - 1 - m) / (m * (m - 1)) if m > 1 else math.nan


def _of_known(means: Array) -> Array:
    """From means of weighted values and of weights, of each order, to Ali, Rev and Ali - Rev."""
    weighted, weights = means[..., ::2], np.maximum(means[..., 1::2], 1e-9)
    accuracies = np.clip(weighted / weights, 0, 1)
    return np.concatenate([accuracies, accuracies[..., :1] - accuracies[..., 1:]], axis=-1)


class T2ICorrectnessSuite(Correctness[T2ICorrectness]):
    """Does the image follow the world or the order of mention? The right layout is the same."""

    name = "t2i_correctness"
    offline_rows = 0
    population = "families of pairs"
    variants = (*ORDERS, UNORDERED)
    meanings = {
        **Correctness.meanings,
        "accuracy_unordered": "Share of right images where the prompt names neither thing.",
        "accuracy_aligned_known": "Ali over what the generator knows: rows count by how often the "
        "prompt that names neither thing comes out right, in such a way that rows on which it "
        "guesses, or is wrong each time, cancel. For two seeds or more.",
        "accuracy_reverse_known": "Rev over the same rows.",
        "delta_known": "Ali - Rev over the same rows: what mention order does to what is known.",
        "valid_unordered": "Share of judged images, neither thing named, that show the pair.",
        "twins_right": "Of two rows with the same things and opposite frames, with one seed: share "
        "right in both frames and both orders.",
        "twins_habit": "Share of them with the same layout in all four images: the frame is "
        "ignored, and so is the order.",
        "twins_order": "Share of them where the first-mentioned is on the left in all four.",
    }
    gold = "t2i_correctness_gold"
    prompts = ("arrangement",)
    worths = {"arrangement": RIGHT}
    headline = correctness_headline("arrangement")

    def cases(self, row: T2ICorrectness, seeds: int) -> Iterator[Case]:
        prompts = {"aligned": row.aligned_prompt, "reverse": row.reverse_prompt}
        if row.unordered_prompt:
            prompts[UNORDERED] = row.unordered_prompt
        groups = {
            "domain": row.domain,
            "basis": row.basis,
            "recognized_by": "text" if row.text_bound else "looks",
            "twin": "yes" if row.twin else "no",
        }
        linked = ("/".join(sorted((row.id, row.twin))),) if row.twin else ()
        return self.seeded(row, seeds, prompts, (row.cluster, *linked), groups)

    def _scores(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        yield from super()._scores(outcomes, group)
        yield from self._given_knowledge(outcomes, group)
        yield from self._twins(outcomes, group)

    def _given_knowledge(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        """Ali, Rev and their difference over what a generator knows; empty for one seed.

        Each image counts by how surely its row is known, see `knowledge`, from images of the
        prompt without order. No image is both a reason to count and counted.
        """
        unordered: dict[str, dict[int, float]] = {}
        for outcome in outcomes:
            if outcome.case.variant == UNORDERED:
                right = self.right_if_valid(outcome)
                unordered.setdefault(outcome.case.row, {})[outcome.case.number] = right
        if max(map(len, unordered.values()), default=0) < 2:
            return
        ordered = [outcome for outcome in outcomes if outcome.case.variant in ORDERS]
        values = values_of(ordered, "arrangement", RIGHT)
        weights = np.array(
            [knowledge(unordered.get(o.case.row, {}), o.case.number) for o in ordered]
        )
        variant_of = np.array([outcome.case.variant for outcome in ordered], dtype=str)
        columns = []
        for variant in ORDERS:
            weight = np.where(variant_of == variant, weights + 0 * values, np.nan)
            columns += [weight * values, weight]
        counts = [int((~np.isnan(columns[place])).sum()) for place in (1, 3)]
        excluded = count_excluded([o.label("arrangement") for o in ordered], RIGHT.values)
        for lacking, value, outcome in zip(np.isnan(weights), values, ordered, strict=True):
            if lacking and not math.isnan(value):
                asked = outcome.case.row in unordered
                reason = "too_few_valid_without_order" if asked else "not_asked_without_order"
                excluded[reason] = excluded.get(reason, 0) + 1
        scores = statistics(
            ("accuracy_aligned_known", "accuracy_reverse_known", "delta_known"),
            np.stack(columns, axis=1),
            cluster_numbers(ordered),
            ends=(-1, 1),
            statistic=_of_known,
            counts=(*counts, sum(counts)),
            group=group,
            excluded=excluded,
        )
        # Without more right than wrong images, nothing is known that the scores could be of.
        known = [np.nansum(columns[place]) > 0 for place in (1, 3)]
        for score, defined in zip(scores, (*known, all(known)), strict=True):
            yield score if defined else replace(score, value=math.nan, interval=NOTHING)

    def _twins(self, outcomes: Sequence[Outcome], group: str) -> Iterator[Score]:
        """The kinds of twins with one seed."""
        twins: dict[tuple[str, int], dict[tuple[str, str], Outcome]] = {}
        for outcome in outcomes:
            case = outcome.case
            if len(case.clusters) == 2 and case.variant in ORDERS:
                cells = twins.setdefault((case.clusters[1], case.number), {})
                cells[case.row, case.variant] = outcome
        # Rows whose twin was not sampled don't count as excluded: nobody planned their twin.
        twins = {k: cells for k, cells in twins.items() if len({row for row, _ in cells}) == 2}
        if not twins:
            return
        values = np.full((len(twins), 4), math.nan)
        for place, ((linked, _), cells) in enumerate(twins.items()):
            for column, key in enumerate(product(linked.split("/"), ORDERS)):
                if key in cells:
                    values[place, column] = self.right_if_valid(cells[key])
        clusters = cluster_numbers([next(iter(cells.values())) for cells in twins.values()])
        lost = {"not_valid_in_all_four": int(np.isnan(values).any(axis=1).sum())}
        yield from kinds(TWINS, values, clusters, group, lost)

    def questions(
        self, row: T2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        if is_mirrored(probe) and not row.mirror_safe:
            return []
        return [ask_arrangement(row, case, probe, images, by_paper=self.by_paper)]

    def truth(self, row: T2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        claim = Stated(row.left, "left_of", row.right)
        label = INVALID if STANDING & {*scene.faults} else scene_label(scene, claim)
        return {"arrangement": {"holds": "correct", "opposite": "wrong"}.get(label, label)}


class I2ICorrectnessSuite(Correctness[I2ICorrectness]):
    """Do the actions go to whom they were given? Who does what is the same in both orders."""

    name = "i2i_correctness"
    population = "pairs of entities"
    prompts = ("binding",)
    worths = {"binding": RIGHT}
    headline = correctness_headline("binding")

    def cases(self, row: I2ICorrectness, seeds: int) -> Iterator[Case]:
        prompts = {"aligned": row.aligned_instruction, "reverse": row.reverse_instruction}
        (pair, *_), groups = about_pair(row.pair_type, row.left, row.right)
        return self.seeded(row, seeds, prompts, (pair,), {**groups, "relation": row.relation})

    def questions(
        self, row: I2ICorrectness, case: Case, images: Sequence[Image], probe: str
    ) -> list[Question]:
        alternative = Alternative(
            "binding",
            Subject(row.left.name, row.left.look, row.left_expected),
            Subject(row.right.name, row.right.look, row.right_expected),
            ("correct", "wrong"),
            prior=RIGHT.prior,
            by_paper=self.by_paper,
        )
        return [ask_binding(alternative, case, probe, images)]

    def truth(self, row: I2ICorrectness, case: Case, scene: Scene) -> Mapping[str, str]:
        right = scene.pose_of(row.left.name) == find_pose(ACTIONS[0])
        return {"binding": "correct" if right else "wrong"}
