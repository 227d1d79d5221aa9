"""Correction of a rate for the judge's errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array
from .clusters import MANY_CLUSTERS, student_wilson
from .estimate import Estimate
from .intervals import LEVEL, Interval, normal_quantile, student_quantile

NOT_CORRECTED = Estimate(math.nan)
"""Result for a rate that the labels can't correct."""


def rogan_gladen(
    positives: int,
    n: int,
    true_positives: int,
    positive_n: int,
    true_negatives: int,
    negative_n: int,
) -> Estimate:
    """True rate from a judge's rate and its errors on other, labeled items (Rogan, Gladen 1978).

    positives of n: the judge's positive labels; true_positives of positive_n and true_negatives of
    negative_n: its sensitivity and specificity, in a card. The interval adds the uncertainty of all
    three (Lang, Reiczigel 2014, with their pseudo counts): it covers 0.94 or more from 20 labels of
    each kind on, if items are independent. NOT_CORRECTED where the judge is no better than chance.
    Only for labels from elsewhere, and a judge with Youden index >= 0.85: below that, labels of the
    run itself (`ppi`) give a narrower interval.
    """
    if not (positive_n and negative_n and n):
        return NOT_CORRECTED
    z2 = normal_quantile(LEVEL) ** 2
    sensitivity = (true_positives + 1) / (positive_n + 2)
    specificity = (true_negatives + 1) / (negative_n + 2)
    rate = (positives + z2 / 2) / (n + z2)
    youden = sensitivity + specificity - 1
    if youden <= 0.05:
        return NOT_CORRECTED
    plain = (positives / n + true_negatives / negative_n - 1) / (
        true_positives / positive_n + true_negatives / negative_n - 1
    )
    value = (rate + specificity - 1) / youden
    variance = (
        rate * (1 - rate) / (n + z2)
        + value**2 * sensitivity * (1 - sensitivity) / (positive_n + 2)
        + (1 - value) ** 2 * specificity * (1 - specificity) / (negative_n + 2)
    ) / youden**2
    # Lang and Reiczigel's shift, for the pseudo counts of the two error rates.
    missed = value * sensitivity * (1 - sensitivity) / (positive_n + 2)
    invented = (1 - value) * specificity * (1 - specificity) / (negative_n + 2)
    shift = 2 * z2 * (missed - invented)
    half = math.sqrt(z2 * variance)
    low, high = value + shift - half, value + shift + half
    return Estimate(_share(plain), Interval(_share(low), _share(high)), n=n)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def ppi(
    judged: ArrayLike,
    labeled_judged: ArrayLike,
    labels: ArrayLike,
    ends: tuple[float, float],
    clusters: ArrayLike | None = None,
) -> Estimate:
    """Mean of the truth from a few labels and many judgments (PPI++, Angelopoulos et al. 2023).

    judged: shape (N,), judge on the unlabeled items; labeled_judged and labels: shape (n,), judge
    and truth on items of the same run, drawn at random; ends: the least and the largest value that
    a label can have; clusters: shape (n + N,), cluster of each item, the labeled ones first.

    Consistent whatever the judge does; the better the judge, the narrower the interval. It holds
    for few labels: half an item is added for each of the four pairs of ends that judge and truth
    can give (after Agresti and Min 2005), as errors too rare to be among the labels are possible.
    Items of a cluster may err together, so their errors are added up before they are squared; the
    variance is never below that of independent items. Student's t has one degree of freedom less
    than there are labels, or clusters with labels. Covers 0.92 to 1 from 10 labels on, 0.96 on
    average; with labels in fewer than 20 clusters 0.88 to 1, which `warning` then says.
    NOT_CORRECTED for fewer than two labels.
    """
    f = np.asarray(judged, dtype=float)
    g, y = np.asarray(labeled_judged, dtype=float), np.asarray(labels, dtype=float)
    if g.shape != y.shape:
        raise ValueError(f"{len(g)} judgments for {len(y)} labels")
    if len(y) < 2:
        return NOT_CORRECTED
    low, span = ends[0], ends[1] - ends[0]
    f, g, y = (f - low) / span, (g - low) / span, (y - low) / span
    weight, center, variance = _rectified(f, g, y)
    value = float((y - weight * g).mean()) + (weight * float(f.mean()) if len(f) else 0.0)
    groups, together, count = float(len(y)), 0.0, 0
    if clusters is not None:
        cluster_ids, member = np.unique(np.asarray(clusters), return_inverse=True)
        count = len(cluster_ids)
        groups = len(y) ** 2 / float((np.bincount(member[: len(y)]) ** 2).sum())
        together = _clustered(y - weight * g, weight * f, member)
    if variance < together < math.inf:
        unclipped = student_wilson(_share(center), together, groups)
    else:
        half = student_quantile(groups - 1) * math.sqrt(max(variance, together))
        unclipped = Interval(center - half, center + half)
    interval = Interval(
        _share(min(value, unclipped.low)), _share(max(value, unclipped.high))
    ).scaled(span)
    warning = ""
    if clusters is not None and groups < MANY_CLUSTERS:
        warning = (
            f"labels in {groups:.0f} clusters: with fewer than {MANY_CLUSTERS}, 95 % intervals "
            f"held the truth in 88 to 100 % of simulations"
        )
    estimate = Estimate(span * value, interval, len(f) + len(y), clusters=count, warning=warning)
    return estimate.shifted(low)


def _rectified(f: Array, g: Array, y: Array) -> tuple[float, float, float]:
    """Weight of the judge, mean of the truth, and its variance for independent items.

    With half an item for each pair of ends.
    """
    n, many = len(y) + 2, len(f)
    labels, judged = np.append(y, [0, 0, 1, 1]), np.append(g, [0, 1, 0, 1])
    label_weights = np.append(np.ones(len(y)), np.full(4, 0.5))
    mean_y, mean_g = label_weights @ labels / n, label_weights @ judged / n
    everything = np.concatenate([f, judged])
    all_weights = np.append(np.ones(many), label_weights)
    spread = np.average(
        (everything - np.average(everything, weights=all_weights)) ** 2, weights=all_weights
    )
    weight = 0.0
    if many:
        covariance = label_weights @ ((labels - mean_y) * (judged - mean_g)) / n
        weight = min(1.0, max(0.0, float(covariance / ((1 + n / many) * spread))))
    residuals = labels - weight * judged
    center = float(mean_y - weight * mean_g)
    variance = float(label_weights @ (residuals - center) ** 2) / (n - 1) / n
    if many:
        yes = (float(f.sum()) + 1) / (many + 2)
        center += weight * float(f.mean())
        variance += weight**2 * min(yes * (1 - yes), float(f.var()) + 1 / (many + 2)) / many
    return weight, center, variance


def _clustered(residuals: Array, judged: Array, member: NDArray[np.intp]) -> float:
    """Variance of mean(residuals) + mean(judged) where items of a cluster go together."""
    deviations = [
        (values - values.mean()) / len(values) for values in (residuals, judged) if len(values)
    ]
    sums = np.bincount(member, weights=np.concatenate(deviations))
    count = len(sums)
    return float((sums**2).sum()) * count / (count - 1) if count > 1 else math.inf
