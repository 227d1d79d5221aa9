"""From values per outcome to scores with intervals, for all suites alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import ALL, BOTH, FAILURES, Outcome, Score, count_excluded
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, Interval, bounds
from .worths import Worth

MANY = 0.1
"""Share of excluded items above which a score shows its bounds."""


def grouped(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, list[Outcome]]]:
    """All outcomes, and then those of each value of each of their groups, sorted."""
    yield ALL, list(outcomes)
    parts: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        for column, values in outcome.case.groups.items():
            for value in values.split(BOTH):
                parts.setdefault((column, value), []).append(outcome)
    for (column, value), part in sorted(parts.items(), key=lambda item: item[0]):
        yield f"{column}={value}", part


def in_groups(
    outcomes: Sequence[Outcome], score: Callable[[list[Outcome], str], Iterable[Score]]
) -> list[Score]:
    """The scores of all outcomes and of each of their groups."""
    return [s for group, part in grouped(outcomes) for s in score(part, group)]


def mean_score(
    name: str,
    values: Array,
    outcomes: Sequence[Outcome],
    *,
    ends: tuple[float, float] = (0, 1),
    unit: str = "%",
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
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
    )
    return replace(score, bounds=limits(values, ends).scaled(factor_of(unit)))


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
    without = (reason(o) for o, one in zip(outcomes, values, strict=True) if np.isnan(one))
    excluded = count_excluded(without, ())
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
    labels = [outcome.label(question) for outcome in outcomes]
    return mean_score(
        name,
        worth.of_labels(labels),
        outcomes,
        ends=worth.ends,
        unit=unit,
        group=group,
        excluded=count_excluded(labels, worth.values),
    )


def mean_number(
    name: str,
    outcomes: Sequence[Outcome],
    questions: Sequence[str],
    *,
    group: str = ALL,
    join: Callable[[Sequence[float]], float] = lambda numbers: sum(numbers) / len(numbers),
) -> list[Score]:
    """The mean over images of what a judge measured; empty where it measured nothing.

    join: makes one number of those of an image's questions, which are the `weights` of its case
    where it has any, else `questions`.
    """
    values, left_out = [], []
    for outcome in outcomes:
        said = [outcome.verdict(question) for question in outcome.case.weights or questions]
        numbers = [verdict.number for verdict in said if verdict.number is not None]
        whole = len(numbers) == len(said)
        values.append(join(numbers) if whole else math.nan)
        if not whole:
            left_out.append(next(v.label for v in said if v.number is None))
    measured = np.array(values, dtype=float)
    if np.isnan(measured).all():
        return []
    excluded = count_excluded(left_out, ())
    return [mean_score(name, measured, outcomes, group=group, excluded=excluded)]


def complete_groups(
    outcomes: Sequence[Outcome], question: str, key: Callable[[Outcome], str]
) -> tuple[list[list[Outcome]], int]:
    """Outcomes by a key, in their order, and how many groups are left out: those with a failure."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda one: one.case.id):
        groups.setdefault(key(outcome), []).append(outcome)
    whole = [
        part for part in groups.values() if all(o.label(question) not in FAILURES for o in part)
    ]
    return whole, len(groups) - len(whole)


def variant_scores(
    names: Sequence[str],
    outcomes: Sequence[Outcome],
    question: str,
    worth: Worth,
    variants: Sequence[str],
    statistic: Callable[[Array], Array] = lambda means: means[..., :1] - means[..., 1:],
    *,
    unit: str = "%",
    group: str = ALL,
) -> list[Score]:
    """Functions of the mean worths of each of two variants; first less second unless told."""
    labels = [outcome.label(question) for outcome in outcomes]
    values = worth.of_labels(labels)
    shown = np.array([outcome.case.variant for outcome in outcomes], dtype=str)
    n = int((~np.isnan(values)).sum())
    return statistics(
        names,
        np.stack([np.where(shown == variant, values, np.nan) for variant in variants], axis=1),
        cluster_numbers(outcomes),
        ends=worth.ends,
        statistic=statistic,
        counts=[n] * len(names),
        unit=unit,
        group=group,
        excluded=count_excluded(labels, worth.values),
    )


def statistics(
    names: Sequence[str],
    columns: Array,
    clusters: NDArray[Any],
    *,
    ends: tuple[float, float],
    statistic: Callable[[Array], Array] | None = None,
    counts: Sequence[int],
    unit: str = "%",
    group: str = ALL,
    excluded: Mapping[str, int] | None = None,
    p_value: float = math.nan,
) -> list[Score]:
    """Functions of the means of columns (n, k) with values within `ends`, one score a name.

    `statistic` maps means of shape (..., k) to values of shape (..., m), m >= the number of names:
    only the first ones are scores. counts: n of each.
    """
    estimates = cluster_interval(columns, clusters, ends, statistic)
    return [
        Score.of(
            estimate.scaled(factor_of(unit)),
            name=name,
            unit=unit,
            n=n,
            excluded=excluded or {},
            group=group,
            p_value=p_value,
        )
        for name, n, estimate in zip(names, counts, estimates, strict=False)
    ]


def valid_score(
    name: str, outcomes: Sequence[Outcome], question: str, worth: Worth, group: str
) -> Score:
    """Share of judged images whose label counts; a failure is no part of a rate."""
    labels = [outcome.label(question) for outcome in outcomes]
    valid = [math.nan if label in FAILURES else float(label in worth.values) for label in labels]
    failed = count_excluded(labels, set(labels) - set(FAILURES))
    return mean_score(name, np.array(valid), outcomes, group=group, excluded=failed)


def factor_of(unit: str) -> int:
    """What a share is multiplied by in a unit."""
    return 100 if unit == "%" else 1


def limits(values: Array, ends: tuple[float, float]) -> Interval:
    """Least and largest mean if all missing values were the one or the other end.

    Only where more than `MANY` are missing; shape (n,).
    """
    valid = values[~np.isnan(values)]
    left_out = len(values) - len(valid)
    if left_out <= MANY * len(values):
        return NOTHING
    return bounds(float(valid.sum()), len(valid), left_out, *ends)


def cluster_numbers(outcomes: Sequence[Outcome]) -> NDArray[np.intp]:
    """Shape (n,): the narrowest cluster of each outcome."""
    return _numbers([outcome.case.clusters[0] for outcome in outcomes])


def member_numbers(outcomes: Sequence[Outcome]) -> NDArray[np.intp] | None:
    """Shape (n, 2): both members of each outcome's pair; None where members don't recur."""
    clusters = [outcome.case.clusters for outcome in outcomes]
    if set(map(len, clusters)) != {3}:
        return None
    return np.stack([_numbers([names[place] for names in clusters]) for place in (1, 2)], axis=1)


def _numbers(names: Sequence[str]) -> NDArray[np.intp]:
    """Shape (n,): the place of each name among all, sorted; numpy sorts texts many times slower."""
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.fromiter(map(places.__getitem__, names), np.intp, len(names))
