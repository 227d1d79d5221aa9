"""Scores that both homogenization suites share: how strong is the prior, and whose is it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..core import PROBES, Outcome, count_excluded
from ..stats.bootstrap import Array, cluster_bootstrap
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, bounds, folded, wilson
from .order import (
    expected_homogenization,
    homogenization,
    order_and_entity_effect,
    signed_index,
)
from .scores import MANY, Score, cluster_labels, member_labels


def signs_of(
    outcomes: Sequence[Outcome], question: str, values: Mapping[str, float], probe: str
) -> Array:
    """Shape (n,): the sign of each outcome's label, NaN for those without one."""
    return np.array(
        [values.get(outcome.label(question, probe), np.nan) for outcome in outcomes], dtype=float
    )


def bias_scores(
    outcomes: Sequence[Outcome], question: str, values: Mapping[str, float], group: str
) -> list[Score]:
    """Hom, the signed index behind it, and how many pictures were valid."""
    labels = [outcome.label(question) for outcome in outcomes]
    signs = signs_of(outcomes, question, values, "original")
    excluded = count_excluded(labels, values)
    n = int((~np.isnan(signs)).sum())
    clusters, members = cluster_labels(outcomes), member_labels(outcomes)
    interval = cluster_interval(signs, clusters, (-1, 1))[0].interval.scaled(100)
    wide = (
        cluster_interval(signs, members, (-1, 1), resamples=2_000)[0].interval.scaled(100)
        if members is not None
        else NOTHING
    )
    total = float(np.nansum(signs))
    left_out = len(outcomes) - n
    limits = (
        bounds(total, n, left_out, -1, 1).scaled(100)
        if left_out > MANY * len(outcomes)
        else NOTHING
    )
    scores = [
        Score(
            "hom", homogenization(int((signs > 0).sum()), int((signs < 0).sum())),
            folded(interval), n, "%", excluded, group, folded(wide),
            null=expected_homogenization(n), bounds=folded(limits),
        ),
        Score("signed_index", signed_index(signs), interval, n, "%", excluded, group, wide,
              bounds=limits),
        Score("valid", 100 * n / len(outcomes) if outcomes else np.nan,
              wilson(n, len(outcomes)).scaled(100), len(outcomes), "%", {}, group),
    ]  # fmt: skip
    scores += _probed(outcomes, question, values, group)
    return scores


def _probed(
    outcomes: Sequence[Outcome], question: str, values: Mapping[str, float], group: str
) -> list[Score]:
    """The signed index averaged over picture and probe: a judge's own side bias cancels."""
    scores = []
    for probe in PROBES:
        if not any((question, probe) in outcome.labels for outcome in outcomes):
            continue
        both = np.stack(
            [signs_of(outcomes, question, values, p) for p in ("original", probe)], axis=1
        )
        signs = np.where(np.isnan(both).any(axis=1), np.nan, both.mean(axis=1))
        n = int((~np.isnan(signs)).sum())
        interval = cluster_bootstrap(signs, cluster_labels(outcomes)).interval().scaled(100)
        scores.append(
            Score(f"signed_index_{probe}_averaged", signed_index(signs), interval, n, "%",
                  {"not_judged_twice": len(outcomes) - n}, group)
        )  # fmt: skip
    return scores


def effect_scores(
    outcomes: Sequence[Outcome],
    question: str,
    values: Mapping[str, float],
    variants: tuple[str, str],
    group: str,
) -> list[Score]:
    """What mention order does and what the entities do, from prompts in both orders."""
    signs = signs_of(outcomes, question, values, "original")
    columns = np.full((len(outcomes), 2), np.nan)
    for row, outcome in enumerate(outcomes):
        columns[row, variants.index(outcome.case.variant)] = signs[row]
    found = cluster_bootstrap(columns, cluster_labels(outcomes), order_and_entity_effect)
    n = int((~np.isnan(signs)).sum())
    excluded = count_excluded([o.label(question) for o in outcomes], values)
    return [
        Score(name, float(100 * found.estimate[number]), found.interval(number).scaled(100), n,
              "%", excluded, group)
        for number, name in enumerate(("order_effect", "entity_effect"))
    ]  # fmt: skip
