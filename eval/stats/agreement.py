"""Agreement of two raters, or of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import RESAMPLES
from .clusters import cluster_interval
from .estimate import Estimate
from .intervals import LEVEL, Interval, normal_quantile

ENOUGH = 20
"""Items for each label that kappa's interval needs."""
_FEW_ITEMS = (
    f"fewer than {ENOUGH} items for each label: 95 % intervals of kappa held the truth in 90 %"
)


def confusion(
    first: Sequence[str], second: Sequence[str], labels: Sequence[str]
) -> NDArray[np.int64]:
    """Counts of shape (L, L): rows are the first rater's labels, columns the second's.

    Raises ValueError for a label that is not among `labels`, or for lists of different length.
    """
    place = {label: i for i, label in enumerate(labels)}
    unknown = (set(first) | set(second)) - set(place)
    if unknown:
        raise ValueError(f"labels {sorted(unknown)} are not in {list(labels)}")
    matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for a, b in zip(first, second, strict=True):
        matrix[place[a], place[b]] += 1
    return matrix


def cohen_kappa(matrix: ArrayLike) -> Estimate:
    """Cohen's kappa of a confusion matrix of shape (L, L), unweighted (Cohen 1960).

    1 is perfect, 0 is chance; NaN where both raters use one label only, or without items.

    The interval uses the large-sample variance of Fleiss, Cohen and Everitt (1969), with two more
    items spread evenly over the matrix: without these it claims far too much where raters hardly
    ever disagree (for 2 % of 30 items it covers 0.45; with them 0.90 or more). Below `ENOUGH` items
    for each label, a warning says so.
    """
    counts = _square(matrix)
    n = int(counts.sum())
    kappa, _ = _kappa_and_error(counts) if n else (math.nan, math.nan)
    if math.isnan(kappa):
        return Estimate(kappa, n=n)
    center, error = _kappa_and_error(counts + 2 / counts.size)
    half = normal_quantile(LEVEL) * error
    ends = Interval(max(-1.0, min(kappa, center - half)), min(1.0, max(kappa, center + half)))
    warning = _FEW_ITEMS if n < ENOUGH * len(counts) else ""
    return Estimate(kappa, ends, n=n, warning=warning)


def clustered_kappa(
    first: Sequence[str],
    second: Sequence[str],
    clusters: ArrayLike,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Cohen's kappa of two raters' labels of the same items, which come in clusters.

    clusters: shape (n,), or (n, 2) of both members of an item's pair. The interval is that of a
    function of means: of how often both agree, and how often each gives each label. It is wider
    than that of `cohen_kappa` where raters differ about some clusters more than about others, and
    conservative where they don't. p is against kappa 0. NaN where both raters use one label only,
    or without items.
    """
    labels = sorted({*first, *second})
    if len(labels) < 2:
        return Estimate(math.nan, n=len(first))
    given = np.array([first, second])
    by_rater = [given[rater] == label for rater in (0, 1) for label in labels[:-1]]
    columns = np.stack([given[0] == given[1], *by_rater], axis=1).astype(float)
    return cluster_interval(columns, clusters, (0, 1), _kappa_of_means, resamples)[0]


def _kappa_of_means(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (..., 1), from agreement and both raters' shares of all labels but the last."""
    first, second = np.split(means[..., 1:], 2, axis=-1)
    last = (1 - first.sum(axis=-1)) * (1 - second.sum(axis=-1))
    expected = (first * second).sum(axis=-1) + last
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = (means[..., 0] - expected) / (1 - expected)
    return np.asarray(np.clip(kappa, -1, 1)[..., None])


def observed_agreement(matrix: ArrayLike) -> float:
    """Share of items with equal labels in a confusion matrix, in [0, 1]; NaN without items."""
    counts = _square(matrix)
    n = counts.sum()
    return float(np.trace(counts) / n) if n else math.nan


def _square(matrix: ArrayLike) -> NDArray[np.float64]:
    """A confusion matrix of shape (L, L). Raises ValueError for anything else."""
    counts = np.asarray(matrix, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or (counts < 0).any():
        raise ValueError(f"a confusion matrix is square and not negative: shape {counts.shape}")
    return counts


def _kappa_and_error(counts: NDArray[np.float64]) -> tuple[float, float]:
    """Kappa and its standard error; NaN where all items have one label."""
    n = counts.sum()
    p = counts / n
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    observed, expected = float(np.trace(p)), float(rows @ columns)
    if expected == 1:
        return math.nan, math.nan
    kappa = (observed - expected) / (1 - expected)
    weight = columns[:, None] + rows[None, :]
    diagonal = np.diag(p) @ (1 - (rows + columns) * (1 - kappa)) ** 2
    off = (1 - kappa) ** 2 * float((p * weight**2).sum() - np.diag(p) @ (rows + columns) ** 2)
    spread = (kappa - expected * (1 - kappa)) ** 2
    variance = max(0.0, float(diagonal) + off - spread) / (n * (1 - expected) ** 2)
    return kappa, math.sqrt(variance)


LabelScale = Literal["nominal", "ordinal"]
"""Labels without an order, or with one: a disagreement of ranks that are far apart weighs more."""


def krippendorff_alpha(
    ratings: Sequence[Sequence[str | None]],
    scale: LabelScale = "nominal",
    order: Sequence[str] = (),
) -> float:
    """Alpha of any number of raters with gaps (Krippendorff 2004).

    One sequence per rater, all of the same length, None for a missing label. order: every label of
    an ordinal scale, lowest first. NaN where no item has two labels, or only one label occurs.
    Raises ValueError for an ordinal label that is not in the order.
    """
    occurring = {label for rater in ratings for label in rater if label is not None}
    labels = list(order) if scale == "ordinal" else sorted(occurring)
    if unknown := sorted(occurring - set(labels)):
        raise ValueError(f"labels {unknown} are not in {labels}")
    if len({len(rater) for rater in ratings}) > 1:
        raise ValueError("raters of different lengths")
    place = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(ratings[0]) if ratings else 0, len(labels)))
    for rater in ratings:
        labeled = [item for item, label in enumerate(rater) if label is not None]
        counts[labeled, [place[label] for label in rater if label is not None]] += 1
    counts = counts[counts.sum(axis=1) > 1]
    others = counts.sum(axis=1) - 1
    coincidences = np.zeros((len(labels), len(labels)))
    for (first, second), _ in np.ndenumerate(coincidences):
        pairs = counts[:, first] * (counts[:, second] - (first == second))
        coincidences[first, second] = np.add.accumulate(pairs / others)[-1] if len(pairs) else 0
    totals = coincidences.sum(axis=0)
    n = totals.sum()
    distance = _distances(totals, scale)
    expected = float((np.outer(totals, totals) * distance).sum())
    if n < 2 or expected == 0:
        return math.nan
    return float(1 - (n - 1) * float((coincidences * distance).sum()) / expected)


def _distances(totals: NDArray[np.float64], scale: LabelScale) -> NDArray[np.float64]:
    """Shape (L, L): squared difference of every two labels, given how often each occurs."""
    if scale == "nominal":
        return np.asarray(1.0 - np.eye(len(totals)))
    below = np.cumsum(totals) - totals / 2  # the middle rank of a label
    return np.asarray((below[:, None] - below[None, :]) ** 2)


class Reliability(NamedTuple):
    """A yes/no decision against the truth, each in [0, 1]; NaN where its denominator is 0."""

    precision: float
    recall: float
    specificity: float
    npv: float
    accuracy: float
    f1: float
    n: int


def reliability(tp: int, fp: int, fn: int, tn: int) -> Reliability:
    """Precision TP/(TP+FP), recall TP/(TP+FN), specificity TN/(TN+FP), NPV TN/(TN+FN)."""

    def share(count: int, total: int) -> float:
        return count / total if total else math.nan

    n = tp + fp + fn + tn
    return Reliability(
        precision=share(tp, tp + fp),
        recall=share(tp, tp + fn),
        specificity=share(tn, tn + fp),
        npv=share(tn, tn + fn),
        accuracy=share(tp + tn, n),
        f1=share(2 * tp, 2 * tp + fp + fn),
        n=n,
    )
