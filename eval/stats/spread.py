"""How much the means of groups differ beyond what sampling within them gives."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .clusters import cluster_interval
from .estimate import Estimate
from .intervals import Interval

FEW = 12
"""Clusters below which the interval is too narrow."""
_FEW_CLUSTERS = f"fewer than {FEW} clusters: 95 % intervals of a spread held the truth in 87 %"
_MANY, _KURTOSIS = 200, 3.0
_LONG_TAIL = "few groups differ from most: 95 % intervals of a spread held the truth in 90 %"


def spread(products: ArrayLike, means: ArrayLike, clusters: ArrayLike) -> Estimate:
    """Standard deviation of the true means of groups, in [0, 1], from estimates of them.

    means: shape (g,), an unbiased estimate of each group's mean, in [-1, 1]; products: shape (g,),
    one of its square, e.g. the mean product of two different items; clusters: shape (g,) or (g, 2).
    The variance is the mean square less the square of the mean; its interval's ends are taken to
    the root, and an estimate below 0 is 0. It has a warning below `FEW` clusters, and where a few
    groups differ from most of fewer than 200. NaN for fewer than two groups.
    """
    squares, values = np.asarray(products, dtype=float), np.asarray(means, dtype=float)
    n = len(values)
    if n < 2:
        return Estimate(math.nan, n=n)

    def variance(columns: np.ndarray) -> np.ndarray:
        mean, square, seen = (columns[..., place] for place in range(3))
        # The square of a mean is too large by the variance of that mean.
        return np.asarray((square - mean**2 + (seen - mean**2) / (n - 1))[..., None])

    data = np.column_stack([values, squares, values**2])
    (estimate,) = cluster_interval(data, clusters, (-1.0, 1.0), variance)
    low, high = (math.sqrt(max(0.0, end)) for end in estimate.interval)
    off = values - values.mean()
    long = float(np.mean(off**4)) > _KURTOSIS * float(np.mean(off**2)) ** 2
    warning = _LONG_TAIL if long and n < _MANY else ""
    return Estimate(
        math.sqrt(min(1.0, max(0.0, estimate.value))),
        Interval(low, min(1.0, high)),
        n=n,
        clusters=estimate.clusters,
        warning=_FEW_CLUSTERS if estimate.clusters < FEW else warning,
    )


def mean_product(total: ArrayLike, squares: ArrayLike, count: ArrayLike) -> np.ndarray:
    """Mean product of two different items of each group; NaN for groups of fewer than two.

    total, squares: shape (g,), sums of the items and of their squares; count: shape (g,).
    """
    n = np.asarray(count, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        product = (np.asarray(total) ** 2 - np.asarray(squares)) / (n * (n - 1))
    return np.where(n > 1, product, np.nan)
