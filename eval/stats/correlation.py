"""Correlation of a metric with human labels, with intervals."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .estimate import Estimate
from .intervals import LEVEL, Interval

Kind = Literal["pearson", "spearman", "kendall"]


def correlation(
    x: ArrayLike, y: ArrayLike, kind: Kind, resamples: int = 1_000, seed: int = 0
) -> Estimate:
    """Pearson's r, Spearman's rho or Kendall's tau-b of two arrays of shape (n,), in [-1, 1].

    NaN where one side is constant. The interval is the percentile bootstrap's over items. Items
    with NaN on either side are left out of both. For normal values the interval covers 0.93
    or more for rho and tau from 10 items on, but 0.86 to 0.91 for r below 20 and 0.88 to 0.94 at
    20. Raises ValueError for unequal lengths.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"shapes {a.shape} and {b.shape} do not fit")
    paired = ~(np.isnan(a) | np.isnan(b))
    a, b = a[paired], b[paired]
    value = _coefficient(a, b, kind)
    if math.isnan(value):
        return Estimate(value, n=len(a))
    rng = np.random.default_rng(seed)
    draws = np.array(
        [_coefficient(a[i], b[i], kind) for i in rng.integers(0, len(a), (resamples, len(a)))]
    )
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, Interval(float(low), float(high)), n=len(a))


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
