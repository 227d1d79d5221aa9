"""Correlation of a metric with human labels, with intervals."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .intervals import LEVEL, NOTHING, Interval

Kind = Literal["pearson", "spearman", "kendall"]


class Correlation(NamedTuple):
    """A correlation coefficient."""

    value: float
    """In [-1, 1]; NaN where one side is constant."""
    interval: Interval
    """Percentile bootstrap over items."""
    n: int
    """Items that have both values."""


def correlation(
    x: ArrayLike,
    y: ArrayLike,
    kind: Kind,
    level: float = LEVEL,
    resamples: int = 1_000,
    seed: int = 0,
) -> Correlation:
    """Pearson's r, Spearman's rho or Kendall's tau-b of two arrays of shape (n,).

    Items with NaN on either side are left out of both. Raises ValueError for unequal lengths.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"shapes {a.shape} and {b.shape} do not fit")
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    value = _coefficient(a, b, kind)
    if math.isnan(value):
        return Correlation(value, NOTHING, len(a))
    rng = np.random.default_rng(seed)
    draws = np.array(
        [_coefficient(a[i], b[i], kind) for i in rng.integers(0, len(a), (resamples, len(a)))]
    )
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Correlation(value, Interval(float(low), float(high)), len(a))


def _coefficient(a: NDArray[np.float64], b: NDArray[np.float64], kind: Kind) -> float:
    from scipy import stats

    if len(a) < 2 or (a == a[0]).all() or (b == b[0]).all():
        return math.nan
    functions = {
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
    }
    return float(functions[kind](a, b).statistic)
