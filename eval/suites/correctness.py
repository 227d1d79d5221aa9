"""What both correctness suites share: right in both mention orders, or only where it helps?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..core import Outcome, Score, count_excluded
from ..stats.bootstrap import Array
from ..stats.comparison import mcnemar
from .base import INVALID, Headline, Measure, R, Suite, Worth, by_variant, case_items, values_of
from .scores import cluster_labels, in_groups, mean_score, statistics, valid_score

RIGHT = Worth({"correct": 1.0, "wrong": 0.0}, prior="correct", others=(INVALID,))
VARIANTS = ("aligned", "reverse")
MEANINGS = {
    "accuracy_aligned": "Share of right images where mention order helps (Ali).",
    "accuracy_reverse": "Share of right images where mention order misleads (Rev).",
    "valid_aligned": "Share of judged images, mention order helping, that show the pair as asked.",
    "valid_reverse": "Share of judged images, mention order misleading, that show the pair as "
    "asked.",
    "delta": "Ali - Rev, as the paper prints it: each accuracy over its own valid images.",
    "delta_paired": "Mean of right aligned - right reverse over the pairs and seeds that are valid "
    "in both orders; p by McNemar's exact test.",
}


def correctness_headline(question: str) -> Headline:
    """Ranks by accuracy where mention order misleads."""
    return Headline(
        score="accuracy_reverse",
        better="higher",
        meaning="Share of right images where the order of mention speaks against the right one.",
        items=case_items(question, RIGHT, "reverse"),
        broken_down=("accuracy_aligned", "accuracy_reverse"),
        slope=("accuracy_aligned", "accuracy_reverse"),
    )


class Correctness(Suite[R]):
    """One question, right or wrong, asked of both mention orders."""

    has_right_images = True
    variants = VARIANTS
    meanings = MEANINGS

    def measures(self, outcomes: Sequence[Outcome]) -> Iterator[tuple[frozenset[str], Measure]]:
        for question in self.worths:
            for variant, part in by_variant(outcomes, VARIANTS):
                yield self.measure(f"accuracy_{variant}", part, question)

    def correctness(self, outcome: Outcome) -> float:
        (question,) = self.worths
        return RIGHT.of(outcome.verdict(question))

    def score(self, outcomes: Sequence[Outcome]) -> list[Score]:
        return in_groups(outcomes, self._scores)

    def _scores(self, outcomes: list[Outcome], group: str) -> list[Score]:
        (question,) = self.worths
        scores = []
        for variant, part in by_variant(outcomes, VARIANTS):
            values = values_of(part, question, RIGHT)
            labels = [outcome.label(question) for outcome in part]
            left_out = count_excluded(labels, RIGHT.values)
            scores += [
                mean_score(f"accuracy_{variant}", values, part, group=group, excluded=left_out),
                valid_score(f"valid_{variant}", values, labels, part, group),
            ]
        return [*scores, *_deltas(outcomes, question, group)]


def _deltas(outcomes: Sequence[Outcome], question: str, group: str) -> list[Score]:
    """Ali - Rev over all valid images, and paired over rows and seeds that are valid in both."""
    columns = np.full((len(outcomes), 2), np.nan)
    for place, outcome in enumerate(outcomes):
        value = RIGHT.of(outcome.verdict(question))
        columns[place, VARIANTS.index(outcome.case.variant)] = value
    n = int((~np.isnan(columns)).sum())
    labels = [outcome.label(question) for outcome in outcomes]
    unpaired = statistics(
        ("delta",),
        columns,
        cluster_labels(outcomes),
        ends=(0, 1),
        statistic=lambda means: means[..., :1] - means[..., 1:],
        counts=(n,),
        group=group,
        excluded=count_excluded(labels, RIGHT.values),
    )
    return [*unpaired, _paired(outcomes, columns, group)]


def _paired(outcomes: Sequence[Outcome], columns: Array, group: str) -> Score:
    pairs: dict[tuple[str, int], list[float]] = {}
    first: dict[tuple[str, int], Outcome] = {}
    for outcome, values in zip(outcomes, columns, strict=True):
        key = outcome.case.row, outcome.case.seed
        number = VARIANTS.index(outcome.case.variant)
        pairs.setdefault(key, [math.nan, math.nan])[number] = values[number]
        first.setdefault(key, outcome)
    both = np.array(list(pairs.values())).reshape(-1, 2)
    difference = both[:, 0] - both[:, 1]
    n = int((~np.isnan(difference)).sum())
    only = int((difference > 0).sum()), int((difference < 0).sum())
    (score,) = statistics(
        ("delta_paired",),
        difference[:, None],
        cluster_labels(list(first.values())),
        ends=(-1, 1),
        counts=(n,),
        group=group,
        excluded={"not_valid_in_both": len(both) - n},
        p_value=mcnemar(*only) if n else math.nan,
    )
    return score
