"""Looking at a mean as often as one likes: evidence and intervals that hold at all times.

Testing by betting (Waudby-Smith, Ramdas 2024): who stakes a share of his wealth on every item
against "the mean is at most m" cannot grow rich if that is true; by Ville's inequality wealth ever
reaches 1/alpha with probability at most alpha. Stakes are a fixed mixture, so that neither gap nor
variance need be known, and the wealth does not depend on the order of the values. Values must be
independent: those of items that belong together count as a single value, their sum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .bootstrap import Array
from .intervals import LEVEL, NOTHING, Interval

STAKES: Array = np.geomspace(0.005, 0.95, 24)
"""Shares of the wealth, from those that find gaps of 0.01 to those that find a landslide."""
_STEPS = 40


class Wealth:
    """Evidence that means of values in [-1, 1] are above 0, for many sequences at once."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        """One sequence for every cell of `shape`."""
        self._log = np.zeros((*shape, len(STAKES)))

    def add(self, values: ArrayLike) -> None:
        """The next value of every sequence, of its shape; NaN adds nothing."""
        new = np.nan_to_num(np.asarray(values, dtype=float), nan=0.0)
        self._log += np.log1p(STAKES * new[..., None])

    @property
    def evidence(self) -> Array:
        """Log wealth now, of the shape; at least log(1/alpha) has probability at most alpha."""
        return log_mean_exp(self._log)


def log_mean_exp(values: Array) -> Array:
    """log(mean(exp(values))) over the last axis."""
    most = values.max(axis=-1, keepdims=True)
    return np.asarray((most + np.log(np.exp(values - most).mean(axis=-1, keepdims=True)))[..., 0])


def confidence_sequence(
    values: ArrayLike, level: float = LEVEL, weights: ArrayLike | None = None
) -> Interval:
    """Interval of the mean of values in [-1, 1], shape (n,): holds at all n at once.

    weights: shape (n,), in [0, 1], of the mean: e.g. the items of each cluster, of which a value is
    the mean, as a share of those of the largest cluster; all 1 where None. NOTHING without values;
    NaN values are left out. Raises ValueError for values outside [-1, 1] and weights outside
    [0, 1].
    """
    data = np.asarray(values, dtype=float)
    weighted = np.ones_like(data) if weights is None else np.asarray(weights, dtype=float)
    present = ~np.isnan(data) & (weighted > 0)
    data, weighted = data[present], weighted[present]
    if not 0 < level < 1:
        raise ValueError(f"confidence level {level} is not between 0 and 1")
    if not len(data):
        return NOTHING
    if abs(data).max() > 1:
        raise ValueError(f"value {data[abs(data).argmax()]} is outside [-1, 1]")
    if weighted.max() > 1:
        raise ValueError(f"weight {weighted.max()} is outside [0, 1]")
    distinct, counts = np.unique(np.stack([data, weighted], axis=1), axis=0, return_counts=True)
    limit = math.log(2 / (1 - level))
    low = _lower(distinct[:, 0], distinct[:, 1], counts.astype(float), limit)
    high = -_lower(-distinct[:, 0], distinct[:, 1], counts.astype(float), limit)
    return Interval(low, high)


def _lower(values: Array, weights: Array, counts: Array, limit: float) -> float:
    """The largest m such that wealth against every smaller mean is beyond the limit."""
    low, high = -1.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        # Wealth against "at most m" falls in m, as the stakes are shares of what can be lost.
        gains: Array = (
            np.log1p(np.outer(STAKES / (1 + middle), weights * (values - middle))) @ counts
        )
        if float(log_mean_exp(gains)) >= limit:
            low = middle
        else:
            high = middle
    return low
