"""Scores that both correctness suites share: right in both orders, or only where it helps?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core import Outcome, count_excluded
from ..stats.bootstrap import Array, cluster_bootstrap
from ..stats.clusters import cluster_interval
from ..stats.comparison import mcnemar
from ..stats.intervals import NOTHING, bounds, wilson
from .scores import MANY, Score, cluster_labels

RIGHT = {"correct": 1.0, "wrong": 0.0}
"""Labels that count; `invalid` does not."""
VARIANTS = ("aligned", "reverse")


def accuracy_scores(outcomes: Sequence[Outcome], question: str, group: str) -> list[Score]:
    """Accuracy where mention order helps and where it misleads, and the paired difference."""
    columns = _columns(outcomes, question)
    clusters = cluster_labels(outcomes)
    scores = []
    for number, variant in enumerate(VARIANTS):
        asked = [o for o in outcomes if o.case.variant == variant]
        values = columns[:, number]
        n = int((~np.isnan(values)).sum())
        total = float(np.nansum(values))
        excluded = count_excluded([o.label(question) for o in asked], RIGHT)
        left_out = len(asked) - n
        limits = (
            bounds(total, n, left_out, 0, 1).scaled(100)
            if left_out > MANY * len(asked)
            else NOTHING
        )
        interval = cluster_interval(values, clusters, (0, 1))[0].interval.scaled(100)
        scores.append(
            Score(f"accuracy_{variant}", 100 * total / n if n else np.nan, interval, n, "%",
                  excluded, group, bounds=limits)
        )  # fmt: skip
        scores.append(
            Score(f"valid_{variant}", 100 * n / len(asked) if asked else np.nan,
                  wilson(n, len(asked)).scaled(100), len(asked), "%", {}, group)
        )  # fmt: skip
    return [*scores, _delta(outcomes, columns, group)]


def _delta(outcomes: Sequence[Outcome], columns: Array, group: str) -> Score:
    """Delta = accuracy aligned - reverse over rows and seeds that have both."""
    pairs: dict[tuple[str, int], list[float]] = {}
    cluster_of: dict[tuple[str, int], str] = {}
    for outcome, values in zip(outcomes, columns, strict=True):
        key = (outcome.case.row, outcome.case.seed)
        pair = pairs.setdefault(key, [np.nan, np.nan])
        cluster_of[key] = outcome.case.clusters[0]
        number = VARIANTS.index(outcome.case.variant)
        pair[number] = values[number]
    both = np.array(list(pairs.values())).reshape(-1, 2)
    difference = both[:, 0] - both[:, 1]
    clusters = np.array(list(cluster_of.values()))
    found = cluster_bootstrap(difference, clusters)
    n = int((~np.isnan(difference)).sum())
    p_value = mcnemar(int((difference > 0).sum()), int((difference < 0).sum())) if n else np.nan
    return Score(
        "delta", 100 * float(found.estimate[0]), found.interval().scaled(100), n, "%",
        {"not_valid_in_both": len(both) - n}, group, p_value=p_value,
    )  # fmt: skip


def _columns(outcomes: Sequence[Outcome], question: str) -> Array:
    """Shape (n, 2): right (1) or wrong (0) under the variant that was asked, else NaN."""
    columns = np.full((len(outcomes), 2), np.nan)
    for row, outcome in enumerate(outcomes):
        number = VARIANTS.index(outcome.case.variant)
        columns[row, number] = RIGHT.get(outcome.label(question), np.nan)
    return columns
