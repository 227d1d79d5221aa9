"""Several trainings of one condition: intervals for other training seeds, and a test of a trend.

A model that is trained again with another seed is another model. What one training gives for other
entities is in no interval what another training would give.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .estimate import Estimate
from .intervals import Interval, student_quantile

ONE_TRAINING = "one training: the interval is for other entities, not for other training seeds"
"""Warning of an interval that holds no variance between trainings."""


def over_replicates(
    pooled: Estimate, values: ArrayLike, ends: tuple[float, float], one_more: bool = False
) -> Estimate:
    """The estimate with an interval for other trainings and other entities, both crossed.

    pooled: mean over all replicates, with its interval for other entities; values: shape (m,), the
    same statistic of each replicate, NaN where it has none; ends: least and largest value possible;
    one_more: the interval is one for what a single further training gives, in place of the mean.

    An end's distance is the root of the sum of two squares: the distance of the pooled interval,
    and that of Student's t with m - 1 degrees of freedom for the mean of m replicates (MOVER, Zou
    and Donner 2008), or for one more. What entities and trainings vary by together is in both, so
    that the interval is conservative where trainings hardly differ. With one replicate, `warning`
    says what it lacks.
    """
    x = np.asarray(values, dtype=float)
    x = x[~np.isnan(x)]
    if math.isnan(pooled.value) or math.isnan(pooled.interval.low):
        return pooled
    if len(x) < 2:
        return replace(pooled, warning=ONE_TRAINING)
    spread = math.sqrt(1 / len(x) + one_more) * float(x.std(ddof=1))
    reach = student_quantile(len(x) - 1) * spread
    low, high = pooled.interval
    return replace(
        pooled,
        interval=Interval(
            max(ends[0], pooled.value - math.hypot(pooled.value - low, reach)),
            min(ends[1], pooled.value + math.hypot(high - pooled.value, reach)),
        ),
        p_value=math.nan,
    )


def page_trend(values: ArrayLike) -> Estimate:
    """Whether a number rises over ordered conditions, within each of some replicates (Page 1963).

    values: shape (m, k), a row for each replicate and a column for each condition, in order. The
    value is the mean rank correlation of number and condition over replicates, in [-1, 1]; the
    p-value is exact and two-sided, from all orders of each replicate's numbers, equal ones with
    their mean rank. No interval: of few replicates, a rank correlation has none worth its name. NaN
    for fewer than two conditions, or where a number is missing.
    """
    rows = np.asarray(values, dtype=float)
    if rows.ndim != 2 or rows.shape[1] < 2 or not len(rows) or np.isnan(rows).any():
        return Estimate(math.nan)
    doubled = [_doubled_ranks(row) for row in rows]
    places = range(1, rows.shape[1] + 1)

    def product(ranks: Sequence[int]) -> int:
        return sum(place * rank for place, rank in zip(places, ranks, strict=True))

    seen = sum(map(product, doubled))
    # Sums of independent replicates: their distributions are convolved.
    sums: Counter[int] = Counter({0: 1})
    for ranks in doubled:
        own = Counter(map(product, itertools.permutations(ranks)))
        joined: Counter[int] = Counter()
        for (before, count), (added, more) in itertools.product(sums.items(), own.items()):
            joined[before + added] += count * more
        sums = joined
    total = sum(sums.values())
    middle = len(rows) * rows.shape[1] * (rows.shape[1] + 1) ** 2 / 2  # ranks are doubled
    extreme = sum(n for value, n in sums.items() if abs(value - middle) >= abs(seen - middle))
    correlations = [_correlation(np.array(ranks, dtype=float)) for ranks in doubled]
    return Estimate(float(np.mean(correlations)), n=rows.size, p_value=extreme / total)


def _doubled_ranks(row: NDArray[np.float64]) -> list[int]:
    """Twice the rank of each number from 1, the mean rank of equal ones."""
    below = (row[None] < row[:, None]).sum(axis=1)
    alike = (row[None] == row[:, None]).sum(axis=1)
    return [int(rank) for rank in 2 * below + alike + 1]


def _correlation(ranks: NDArray[np.float64]) -> float:
    """Of ranks with their places; 0 where all are equal."""
    if np.ptp(ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
