"""Scores with intervals from values per outcome, for all suites."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import ALL, BOTH, FAILURES, Outcome, Score, count_excluded
from ..stats.bootstrap import Array
from ..stats.bounds import bounded_interval
from ..stats.clusters import Statistic, cluster_interval, cluster_values
from ..stats.comparison import SignFlip, sign_flip
from ..stats.estimate import LOG_ODDS
from ..stats.intervals import NOTHING, Interval, folded
from ..stats.log_odds import conditional_log_odds
from .columns import Outcomes, cluster_numbers, labels_of, pair_numbers, variants_of
from .worths import Worth

MANY = 0.1
"""Share of excluded, or unchecked, items above which tables have a mark or a footnote."""


def grouped(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, Outcomes]]:
    """All outcomes, and then those of each value of each of their groups, sorted."""
    whole = Outcomes.of(outcomes)
    yield ALL, whole
    members: dict[tuple[str, str], list[int]] = {}
    for place, outcome in enumerate(whole):
        for column, values in outcome.case.groups.items():
            for value in values.split(BOTH):
                members.setdefault((column, value), []).append(place)
    for (column, value), places in sorted(members.items(), key=lambda item: item[0]):
        yield f"{column}={value}", whole.part(places)


def in_groups(
    outcomes: Sequence[Outcome], score: Callable[[Outcomes, str], Iterable[Score]]
) -> list[Score]:
    """The scores of all outcomes and of each of their groups."""
    return [s for group, members in grouped(outcomes) for s in score(members, group)]


def mean_score(
    name: str,
    values: Array,
    outcomes: Sequence[Outcome],
    *,
    ends: tuple[float, float] = (0, 1),
    unit: str = "%",
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
    tested: bool = False,
) -> Score:
    """The mean of a value of each outcome within `ends`, shape (n,); NaN is left out."""
    (score,) = statistics(
        (name,),
        values[:, None],
        cluster_numbers(outcomes),
        ends=ends,
        counts=(int((~np.isnan(values)).sum()),),
        unit=unit,
        group=group,
        excluded=excluded,
        missing=np.isnan(values)[:, None],
        tested=tested,
    )
    return score


def mean_value(
    name: str,
    outcomes: Sequence[Outcome],
    value: Callable[[Outcome], float],
    reason: Callable[[Outcome], str],
    group: str = ALL,
    *,
    ends: tuple[float, float] = (0, 1),
    unit: str = "1",
    null: float = math.nan,
) -> Score:
    """The mean of a value within `ends`; outcomes without one (NaN) are counted by the reason."""
    values = np.array([value(o) for o in outcomes], dtype=float)
    reasons = (reason(o) for o, number in zip(outcomes, values, strict=True) if np.isnan(number))
    excluded = count_excluded(reasons, ())
    score = mean_score(name, values, outcomes, ends=ends, unit=unit, group=group, excluded=excluded)
    return replace(score, null=null)


def mean_worth(
    name: str,
    outcomes: Sequence[Outcome],
    question: str,
    worth: Worth,
    *,
    unit: str = "%",
    group: str = ALL,
) -> Score:
    """The mean worth of the labels of one question."""
    labels = labels_of(outcomes, question)
    return mean_score(
        name,
        labels.values(worth.of_label),
        outcomes,
        ends=worth.ends,
        unit=unit,
        group=group,
        excluded=labels.excluded(worth.values),
    )


def mean_number(
    name: str,
    outcomes: Sequence[Outcome],
    questions: Sequence[str],
    *,
    group: str = ALL,
    join: Callable[[Sequence[float]], float] = lambda numbers: sum(numbers) / len(numbers),
) -> list[Score]:
    """The mean over images of the numbers that a judge measured; empty if it measured none.

    join: combines the numbers of an image's questions, which are the `weights` of its case if it
    has any, else `questions`.
    """
    values, left_out = [], []
    for outcome in outcomes:
        verdicts = [outcome.verdict(question) for question in outcome.case.weights or questions]
        numbers = [verdict.number for verdict in verdicts if verdict.number is not None]
        complete = len(numbers) == len(verdicts)
        values.append(join(numbers) if complete else math.nan)
        if not complete:
            left_out.append(next(v.label for v in verdicts if v.number is None))
    measured = np.array(values, dtype=float)
    if np.isnan(measured).all():
        return []
    excluded = count_excluded(left_out, ())
    return [mean_score(name, measured, outcomes, group=group, excluded=excluded)]


def difference(means: Array) -> Array:
    """First less second, of means of shape (..., 2)."""
    return np.asarray(means[..., :1] - means[..., 1:])


def paired_difference(
    name: str,
    pairs: Array,
    clusters: NDArray[Any],
    *,
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
) -> Score:
    """The mean of first less second, tested against 0; a pair without both is left out.

    pairs: shape (n, 2), values in [0, 1] or NaN. Not the mean of one column of differences: few
    pairs may differ, and the spread of the others says nothing about how often they do.
    """
    lacks = np.asarray(np.isnan(pairs).any(axis=1))
    columns = np.where(lacks[:, None], np.nan, pairs)
    (score,) = statistics(
        (name,),
        columns,
        clusters,
        ends=(0, 1),
        statistic=difference,
        counts=(int((~lacks).sum()),),
        group=group,
        excluded=excluded,
        missing=np.isnan(columns),
        tested=True,
    )
    return score


def complete_groups(
    outcomes: Sequence[Outcome], question: str, key: Callable[[Outcome], str]
) -> tuple[list[list[Outcome]], int]:
    """Groups of outcomes without a failure, by a key, and the number of the other groups."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case.id):
        groups.setdefault(key(outcome), []).append(outcome)
    complete = [
        members
        for members in groups.values()
        if all(o.label(question) not in FAILURES for o in members)
    ]
    return complete, len(groups) - len(complete)


def variant_scores(
    score_names: Sequence[str],
    outcomes: Sequence[Outcome],
    question: str,
    worth: Worth,
    variants: Sequence[str],
    statistic: Statistic = difference,
    *,
    unit: str = "%",
    group: str = ALL,
) -> list[Score]:
    """Functions of the mean worths of each of two variants; by default first less second."""
    labels = labels_of(outcomes, question)
    values = labels.values(worth.of_label)
    n = int((~np.isnan(values)).sum())
    columns, missing = variant_columns(values, outcomes, variants)
    return statistics(
        score_names,
        columns,
        cluster_numbers(outcomes),
        ends=worth.ends,
        statistic=statistic,
        counts=[n] * len(score_names),
        unit=unit,
        group=group,
        excluded=labels.excluded(worth.values),
        missing=missing,
    )


def variant_columns(
    values: Array, outcomes: Sequence[Outcome], variants: Sequence[str]
) -> tuple[Array, NDArray[np.bool_]]:
    """Values (n,) in a column for each variant, NaN elsewhere, and which of its own each lacks;
    both of shape (n, k)."""
    variant_of = variants_of(outcomes)
    of_variant = np.stack([variant_of.are(variant) for variant in variants], axis=1)
    return np.where(of_variant, values[:, None], np.nan), of_variant & np.isnan(values)[:, None]


def magnitude(name: str, effect: Score, signs: Array, outcomes: Sequence[Outcome]) -> Score:
    """The size of an effect of mention order, which has the mean sign of both orders.

    signs: shape (n,), NaN where there is none. Chance alone gives more than 0: `null` and p-value
    are those of flipping the signs of pairs, with both orders weighing the same, as in the effect;
    NaN where that is, e.g. of images of one order alone.
    """
    variant_of = variants_of(outcomes)
    weights = np.zeros(len(signs))
    for variant in variant_of.names:
        present = variant_of.are(variant) & ~np.isnan(signs)
        weights[present] = 1 / max(1, int(present.sum()))
    test = SignFlip(math.nan, math.nan)
    if not math.isnan(effect.value):
        weighted = signs * weights * (weights > 0).sum() / weights.sum()
        test = sign_flip(weighted, pair_numbers(outcomes))
    return replace(
        effect,
        name=name,
        value=abs(effect.value),
        interval=folded(effect.interval),
        these_items=folded(effect.these_items),
        bounds=folded(effect.bounds),
        null=test.null * factor_of(effect.unit),
        p_value=test.p_value,
    )


def statistics(
    score_names: Sequence[str],
    columns: Array,
    clusters: NDArray[Any],
    *,
    ends: tuple[float, float],
    statistic: Callable[[Array], Array] | None = None,
    counts: Sequence[int],
    unit: str = "%",
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
    missing: NDArray[np.bool_] | None = None,
    tested: bool = False,
) -> list[Score]:
    """Functions of the means of columns (n, k) with values within `ends`, one score for each name.

    `statistic` maps means of shape (..., k) to values of shape (..., m), m >= the number of names:
    only the first ones are scores. counts: n of each; missing: shape (n, k), values that are asked
    for and not known, for `bounds`; tested: whether scores have the p-value of their difference
    from 0.
    """
    estimates = cluster_interval(columns, clusters, ends, statistic, tested=tested)
    # Sorted, so that not even a last digit depends on the order of the outcomes.
    images = columns[np.lexsort(columns.T)]
    alone = cluster_interval(images, np.arange(len(images)), ends, statistic)
    reach = _bounds(columns, clusters, ends, statistic, missing, len(estimates))
    factor = factor_of(unit)
    return [
        Score.of(
            estimate.scaled(factor),
            name=name,
            unit=unit,
            n=n,
            excluded=excluded or {},
            group=group,
            these_items=own.interval.scaled(factor),
            effective=n * float(np.minimum(1, (own.interval.width / estimate.interval.width) ** 2)),
            bounds=ends_of_score.scaled(factor),
            p_value=estimate.p_value if tested else math.nan,
        )
        for name, n, estimate, own, ends_of_score in zip(
            score_names, counts, estimates, alone, reach, strict=False
        )
    ]


def _bounds(
    columns: Array,
    clusters: NDArray[Any],
    ends: tuple[float, float],
    statistic: Statistic | None,
    missing: NDArray[np.bool_] | None,
    number: int,
) -> list[Interval]:
    """For each statistic, from the worst case of the missing values to the best, each with its
    sampling error (Imbens and Manski 2004); NOTHING without missing values.

    Exact where a statistic rises or falls with each mean, as differences and ratios do.
    """
    if missing is None or not missing.any():
        return [NOTHING] * number
    varied = np.flatnonzero(missing.any(axis=0))
    filled: list[Array] = []
    corners: Iterable[tuple[float, ...]] = product(ends, repeat=len(varied))
    if statistic is None:  # each mean depends on its own column alone
        corners = ((end,) * len(varied) for end in ends)
    for values in corners:
        fill = np.zeros(columns.shape[1])
        fill[varied] = values
        filled.append(np.where(missing, fill, columns))
    # Intervals take long, and most corners are neither the worst nor the best case.
    cases = [cluster_values(corner, clusters, ends, statistic) for corner in filled]
    of_statistics = [of_corner.__getitem__ for of_corner in zip(*cases, strict=True)]
    numbers = range(len(filled))
    extremes = [(min(numbers, key=value), max(numbers, key=value)) for value in of_statistics]
    estimates = {
        corner: cluster_interval(filled[corner], clusters, ends, statistic)
        for corner in sorted({corner for pair in extremes for corner in pair})
    }
    return [
        bounded_interval(estimates[worst][number], estimates[best][number])
        for number, (worst, best) in enumerate(extremes)
    ]


def order_log_odds(
    follows: Array,
    swapped: NDArray[np.bool_],
    strata: NDArray[np.intp],
    outcomes: Sequence[Outcome],
    group: str,
) -> Score:
    """The effect of mention order in log odds, see `conditional_log_odds`; arrays of shape (n,).

    follows: signs, +1 for an image that follows the order of mention, -1 for the opposite.
    """
    estimate = conditional_log_odds(
        (follows + 1) / 2, swapped.astype(int), strata, cluster_numbers(outcomes)
    )
    excluded = {reason: n for reason, n in estimate.excluded.items() if n}
    return Score.of(estimate, name="order_log_odds", unit=LOG_ODDS, group=group, excluded=excluded)


def valid_score(
    name: str, outcomes: Sequence[Outcome], question: str, worth: Worth, group: str
) -> Score:
    """Share of judged images whose label counts; failures are excluded."""
    labels = labels_of(outcomes, question)
    valid = labels.values(
        lambda label: math.nan if label in FAILURES else float(label in worth.values)
    )
    failed = {label: n for label, n in sorted(labels.counts().items()) if label in FAILURES}
    return mean_score(name, valid, outcomes, group=group, excluded=failed)


def factor_of(unit: str) -> int:
    """Factor from a share in [0, 1] to a unit."""
    return 100 if unit == "%" else 1
