"""Distances between two sets of features: how unlike two sets of images are, as sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array
from .estimate import Estimate
from .intervals import Interval, student_quantile

CMMD_SIGMA = 10.0
CMMD_SCALE = 1000.0
"""Bandwidth and factor of CMMD (Jayasumana et al. 2024)."""
NEIGHBORS = 3
"""Neighbors that span a manifold of features (Kynkaanniemi et al. 2019)."""
_ROWS = 1000
"""Rows of a matrix of distances that are in memory at once."""
FEW = 20
"""Clusters below which the interval of KID is too narrow."""
CLOSE = 4
"""Standard errors from 0 below which it is too, as the estimate is skewed there."""
_CLOSE_OR_FEW = (
    f"KID within {CLOSE} standard errors of 0, or over fewer than {FEW} clusters: 95 % intervals "
    f"held the truth in 88 %"
)


def frechet_distance(first: ArrayLike, second: ArrayLike) -> float:
    """Frechet's distance of normal distributions fitted to features (n, d) and (m, d).

    ``|mu1 - mu2|^2 + Tr(C1 + C2 - 2 (C1 C2)^(1/2))``, the FID of Inception features (Heusel et al.
    2017). The trace of the root is the sum of the singular values of the two sets' inner products,
    which needs no root of a singular matrix. Biased upward, the more the fewer features there are.
    Raises ValueError for fewer than two features, or for features of different length.
    """
    x, y = _features(first), _features(second)
    if x.shape[1] != y.shape[1] or min(len(x), len(y)) < 2:
        raise ValueError(f"features {x.shape} and {y.shape} do not fit")
    gap = x.mean(axis=0) - y.mean(axis=0)
    a, b = ((z - z.mean(axis=0)) / math.sqrt(len(z) - 1) for z in (x, y))
    root = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    return max(0.0, float(gap @ gap + (a * a).sum() + (b * b).sum() - 2 * root))


def kernel_distance(first: ArrayLike, second: ArrayLike, clusters: ArrayLike) -> Estimate:
    """Unbiased squared MMD of paired features (n, d) with KID's kernel, and its 95 % interval.

    The kernel is ``(x y / d + 1)^3`` (Binkowski et al. 2018); all features are one subset, so no
    subset is drawn. The two features of a pair, e.g. of one prompt and seed, are never compared
    with each other, as they go together (the U-statistic of Gretton et al. 2012). clusters: shape
    (n,), of each pair; the interval is the delete-one-cluster jackknife's with Student's t, NOTHING
    for fewer than three clusters. It may start below 0, as an unbiased estimate may. It has a
    warning near 0 and with few clusters. Raises ValueError where the shapes don't fit.
    """
    x, y = _features(first), _features(second)
    if x.shape != y.shape or len(x) < 2 or len(np.asarray(clusters)) != len(x):
        raise ValueError(f"features {x.shape} and {y.shape} and clusters do not fit")
    n, d = x.shape
    xx, yy, xy = ((p @ q.T / d + 1) ** 3 for p, q in ((x, x), (y, y), (x, y)))
    for kernel in (xx, yy, xy):
        np.fill_diagonal(kernel, 0.0)
    member = np.unique(np.asarray(clusters), return_inverse=True)[1]
    value = float(_unbiased([kernel.sum() for kernel in (xx, yy, xy)], n))
    sizes = np.bincount(member)
    if len(sizes) < 3 or (n - sizes).min() < 2:
        return Estimate(value, n=n, clusters=len(sizes))
    without = _unbiased([_sums_without(k, member, sizes) for k in (xx, yy, xy)], n - sizes)
    count = len(sizes)
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = student_quantile(count - 1) * error
    ends = Interval(value - half, value + half)
    narrow = count < FEW or value < CLOSE * error
    warning = _CLOSE_OR_FEW if narrow else ""
    return Estimate(value, ends, n=n, clusters=count, error=error, warning=warning)


def _sums_without(kernel: Array, member: NDArray[np.intp], sizes: NDArray[np.intp]) -> Array:
    """Shape (g,): the sum of a kernel matrix without the rows and columns of each cluster."""
    rows, columns = (np.bincount(member, kernel.sum(axis=axis)) for axis in (1, 0))
    places = np.split(np.argsort(member, kind="stable"), np.cumsum(sizes)[:-1])
    inside = np.array([kernel[np.ix_(own, own)].sum() for own in places])
    return np.asarray(rows.sum() - rows - columns + inside)


def _unbiased(sums: Sequence[ArrayLike], n: ArrayLike) -> Array:
    """The squared MMD of n pairs, from sums of kernel matrices with empty diagonals."""
    xx, yy, xy = map(np.asarray, sums)
    pairs = np.asarray(n)
    return np.asarray((xx + yy - 2 * xy) / (pairs * (pairs - 1)))


def cmmd(first: ArrayLike, second: ArrayLike) -> float:
    """CMMD of CLIP's image embeddings (n, d) and (m, d): 1000 times a squared MMD.

    Embeddings are brought to length 1, the kernel is a Gaussian of `CMMD_SIGMA`, and the estimate
    is the biased one, all as published.
    """
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in map(_features, (first, second)))

    def mean(p: Array, q: Array) -> float:
        # Of vectors of length 1 the squared distance is 2 - 2 cos.
        return float(np.exp((p @ q.T - 1) / CMMD_SIGMA**2).mean())

    return CMMD_SCALE * (mean(x, x) + mean(y, y) - 2 * mean(x, y))


def precision_and_recall(
    reference: ArrayLike, features: ArrayLike, k: int = NEIGHBORS
) -> tuple[float, float]:
    """Share of features (m, d) in the manifold of a reference (n, d), and the other way round.

    A manifold is the union of balls around its points, each as wide as the distance to the point's
    k-th nearest neighbor (Kynkaanniemi et al. 2019). Both are NaN where a set has no k neighbors.
    Raises ValueError for features of different length.
    """
    x, y = _features(reference), _features(features)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"features {x.shape} and {y.shape} do not fit")
    if min(len(x), len(y)) <= k:
        return math.nan, math.nan
    return _share_within(y, x, k), _share_within(x, y, k)


def _share_within(points: Array, manifold: Array, k: int) -> float:
    """Share of points in the union of balls around a manifold's points."""
    radii = np.concatenate(
        # The nearest point of all is the point itself.
        [np.partition(rows, k, axis=1)[:, k] for rows in _squared_distances(manifold, manifold)]
    )
    # Equal distances may differ in the last digits.
    inside = [
        (rows <= radii * (1 + 1e-9)).any(axis=1) for rows in _squared_distances(points, manifold)
    ]
    return float(np.concatenate(inside).mean())


def _squared_distances(x: Array, y: Array) -> Iterator[Array]:
    """Yields squared Euclidean distances of x (n, d) to y (m, d), some rows of (n, m) at a time."""
    y_norms = (y * y).sum(axis=1)
    for start in range(0, len(x), _ROWS):
        rows = x[start : start + _ROWS]
        norms = (rows * rows).sum(axis=1)[:, None] + y_norms
        squared = norms - 2 * rows @ y.T
        squared[squared < 1e-12 * norms] = 0.0  # rounding, where two features are one
        yield squared


def renyi_kernel_entropy(features: ArrayLike, bandwidth: float) -> float:
    """Exponential of the order-2 Renyi entropy of a kernel matrix: a soft number of modes.

    ``n^2 / sum_ij k(x_i, x_j)^2`` with ``k = exp(-|x - y|^2 / (2 bandwidth^2))`` (RKE-MC of Jalali
    et al. 2023): 1 where all features are alike, at most n. features: shape (n, d); NaN for fewer
    than two.
    """
    x = _features(features)
    if len(x) < 2:
        return math.nan
    total = sum(float(np.exp(-rows / bandwidth**2).sum()) for rows in _squared_distances(x, x))
    return len(x) ** 2 / total


def _features(values: ArrayLike) -> Array:
    features = np.asarray(values, dtype=float)
    if features.ndim != 2:
        raise ValueError(f"features are of shape (n, d), not {features.shape}")
    return features
