"""Correlation of a metric with human labels, with intervals."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array
from .estimate import Estimate
from .intervals import Interval, student_quantile, wilson

Kind = Literal["pearson", "spearman", "kendall"]
_GROUPS = 200
"""Clusters above which several are left out together: each costs one coefficient of the rest."""
_RARE = 8
"""Clusters with another value than the most frequent one that each side needs."""
_BOTH_RARE = 5
"""Clusters that should differ on both sides, if these were independent."""
_TOO_RARE = (
    "few images or clusters differ from the most frequent score or label: the 95 % interval may be "
    "too narrow"
)
_DECIDED = 0.9
"""Share of the largest possible coefficient with a two-valued side from which that side is nearly
decided by the other."""
_FEW = 100
"""Clusters below which the interval of a correlation that is nearly decided is too narrow."""
_NEARLY_DECIDED = (
    f"the scores all but decide between two labels, in fewer than {_FEW} clusters: 95 % intervals "
    f"of a rank correlation held the truth in 85 %"
)


def correlation(
    x: ArrayLike, y: ArrayLike, kind: Kind, clusters: ArrayLike | None = None
) -> Estimate:
    """Pearson's r, Spearman's rho or Kendall's tau-b of two arrays of shape (n,), in [-1, 1].

    clusters: shape (n,), e.g. the prompt of each image; every item is its own if None. NaN where
    one side is constant. Items with NaN on either side are left out of both. The interval is that
    of Fisher's z with Student's t, whose error is the jackknife's over clusters (in at most 200
    groups); where all items agree, Wilson's for 0 exceptions. It has a warning where few clusters
    differ from the most frequent value of a side, and where a rank correlation with a two-valued
    side is nearly as large as it can be. Raises ValueError for unequal lengths.
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    groups = np.arange(a.size) if clusters is None else np.asarray(clusters)
    if a.shape != b.shape or a.ndim != 1 or groups.shape != a.shape:
        raise ValueError(f"shapes {a.shape}, {b.shape} and {groups.shape} do not fit")
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    member = np.unique(groups[both], return_inverse=True)[1]
    value = _coefficient(a, b, kind)
    if math.isnan(value):
        return Estimate(value, n=len(a))
    sizes = np.bincount(member)
    interval = _interval(a, b, kind, value, member, len(a) ** 2 / float(sizes @ sizes))
    others = [len(set(member[side != _most_frequent(side)])) for side in (a, b)]
    warning = ""
    if min(others) < _RARE or others[0] * others[1] < _BOTH_RARE * len(sizes):
        warning = _TOO_RARE
    elif kind != "pearson" and len(sizes) < _FEW and _nearly_decided(a, b, kind, value):
        warning = _NEARLY_DECIDED
    return Estimate(
        value,
        interval,
        n=len(a),
        clusters=len(sizes),
        warning=warning,
    )


def _interval(
    a: Array, b: Array, kind: Kind, value: float, member: NDArray[np.intp], effective: float
) -> Interval:
    """effective: clusters of equal size that would carry the same weight."""
    if effective < 2:
        return Interval(-1.0, 1.0)
    if abs(value) > 1 - 1e-9:
        # One that had the opposite order in a share of clusters would be lower by twice that share.
        end = 1 - 2 * wilson(0, effective).high
        return Interval(end, 1.0) if value > 0 else Interval(-1.0, -end)
    group = member
    if member.max() >= _GROUPS:
        group = np.random.default_rng(0).permutation(member.max() + 1)[member] % _GROUPS
    count = int(group.max()) + 1
    without = np.array([_coefficient(a[group != g], b[group != g], kind) for g in range(count)])
    changes = np.where(np.isnan(without), 0.0, without - value)
    error = math.sqrt((count - 1) / count * float(((changes - changes.mean()) ** 2).sum()))
    reach = student_quantile(min(effective, count) - 1) * error / (1 - value**2)
    z = math.atanh(value)
    return Interval(math.tanh(z - reach), math.tanh(z + reach))


def _nearly_decided(a: Array, b: Array, kind: Kind, value: float) -> bool:
    """Whether one side has two values, and the other is nearly all lower for one of them."""
    if min(len(np.unique(side)) for side in (a, b)) > 2:
        return False
    most = _coefficient(np.sort(a), np.sort(b if value > 0 else -b), kind)
    return abs(value) >= _DECIDED * most


def _most_frequent(values: Array) -> float:
    distinct, counts = np.unique(values, return_counts=True)
    return float(distinct[counts.argmax()])


def _coefficient(a: Array, b: Array, kind: Kind) -> float:
    from scipy.stats import kendalltau, rankdata

    if len(a) < 2 or (a == a[0]).all() or (b == b[0]).all():
        return math.nan
    if kind == "kendall":
        return float(kendalltau(a, b).statistic)
    if kind == "spearman":
        a, b = rankdata(a), rankdata(b)
    a, b = a - a.mean(), b - b.mean()
    return min(1.0, max(-1.0, float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))))
