"""Correction of a rate for the judge's errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import Array, clustered
from .clusters import effective_items, student_wilson
from .estimate import Estimate
from .intervals import LEVEL, Interval, normal_quantile, student_quantile, wilson

NOT_CORRECTED = Estimate(math.nan)
"""Result for a rate that the labels can't correct."""
FEW = 5
"""Labels other than the most frequent value below which clustered errors of the judge are hardly
known, if these are at most `RARE` of all."""
RARE = 0.1
_FEW_LABELS = (
    f"fewer than {FEW} labels, and at most {RARE:.0%}, differ from the most frequent one: 95 % "
    f"intervals held the truth in 88 % at a rate of 2 %"
)


def rogan_gladen(
    positives: float,
    n: float,
    true_positives: int,
    positive_n: int,
    true_negatives: int,
    negative_n: int,
) -> Estimate:
    """True rate from a judge's rate and its errors on other, labeled items (Rogan, Gladen 1978).

    positives of n: the judge's positive labels, of effective items where items come in clusters;
    true_positives of positive_n and true_negatives of
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
    return Estimate(_share(plain), Interval(_share(low), _share(high)), n=round(n))


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


FEW_MEMBERS = 20
"""Members of pairs below which draws of a clustered share are too narrow."""
_FEW_MEMBERS = (
    f"fewer than {FEW_MEMBERS} things in pairs: 95 % intervals held the truth in 92 % with 10"
)
DRAWS = 4000
"""Draws of the interval of `by_error_rates`."""
ClusterName = TypeVar("ClusterName", bound=str | tuple[str, str])


def confusion_of(
    classes: Sequence[str], labeled: Iterable[tuple[str, str | None, ClusterName]]
) -> list[tuple[list[int], list[ClusterName]]]:
    """The `confusion` of `by_error_rates`, from the judge's label, the true one, and the cluster of
    each item, or both members of its pair; items with a label that is none of the classes don't
    count."""
    confusion: list[tuple[list[int], list[ClusterName]]] = [([], []) for _ in classes]
    for said, right, cluster in labeled:
        if said in classes and right in classes:
            labels, clusters = confusion[classes.index(right)]
            labels.append(classes.index(said))
            clusters.append(cluster)
    return confusion


def by_error_rates(
    labels: ArrayLike,
    clusters: ArrayLike,
    confusion: Sequence[tuple[ArrayLike, ArrayLike]],
    values: Sequence[float],
    seed: int = 0,
) -> Estimate:
    """Mean of the truth over valid items, from a judge's labels and its errors on other items.

    labels: shape (N,), class of each item by the judge, 0 to k - 1; clusters: shape (N,), or (N, 2)
    of both members of an item's pair, which come again in other pairs; so too in the confusion.
    confusion: for each of the k true classes, the judge's labels and the clusters of items that are
    truly of it; values: of each class, NaN for one that is not valid.

    The shares of labels are the shares of true classes times the error rates, and are solved for
    the former, within 0 and 1 (Rogan and Gladen 1978, for k classes). The interval is of draws of
    shares and of each class's rates from Dirichlet distributions, with half an item of each class
    added (Jeffreys), from as many independent items as would be as uncertain about the class that
    clusters differ in most. Errors on items are taken to be independent of those on the others.
    NOT_CORRECTED without items of a true class, where the judge's rates don't tell the classes
    apart, and where no draw has these labels within 0 and 1: it errs otherwise here.
    """
    rng, k = np.random.default_rng(seed), len(values)
    rows = [np.asarray(labeled, dtype=np.intp) for labeled, _ in confusion]
    observed = np.asarray(labels, dtype=np.intp)
    if not len(observed) or not all(map(len, rows)):
        return NOT_CORRECTED
    rates = np.stack([np.bincount(row, minlength=k) / len(row) for row in rows])
    if np.linalg.cond(rates) > _INDISTINCT:
        return NOT_CORRECTED
    worth = np.asarray(values, dtype=float)
    shares = np.bincount(observed, minlength=k) / len(observed)
    value = _solved(shares[None], rates[None], worth)[0]
    drawn_shares = rng.dirichlet(_counts(observed, clusters, k) + 0.5, DRAWS)
    drawn_rates = np.stack(
        [
            rng.dirichlet(_counts(row, row_clusters, k) + 0.5, DRAWS)
            for row, (_, row_clusters) in zip(rows, confusion, strict=True)
        ],
        axis=1,
    )
    draws = _solved(drawn_shares, drawn_rates, worth)
    if math.isnan(value) or np.isnan(draws).mean() > 0.05:
        return NOT_CORRECTED
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    if low == high:
        return NOT_CORRECTED
    interval = Interval(min(low, value), max(high, value))
    count, are_pairs = len(np.unique(np.asarray(clusters))), np.ndim(clusters) == 2
    warning = _FEW_MEMBERS if are_pairs and count < FEW_MEMBERS else ""
    return Estimate(value, interval, n=len(observed), clusters=count, warning=warning)


_INDISTINCT = 1e3
"""Condition number of error rates from which they tell classes no longer apart."""


def _counts(labels: NDArray[np.intp], clusters: ArrayLike, k: int) -> Array:
    """Shape (k,): how many of each label as many independent items would have."""
    shares = np.bincount(labels, minlength=k) / len(labels)
    _, members = clustered(labels, clusters)
    # Pairs that share no member are no more groups than pairs, however many members they have.
    groups = min(len(np.unique(members)), len(np.unique(np.sort(members, axis=1), axis=0)))
    # The least of all classes: a class that is alike in all clusters, as images that the judge
    # abstains on may be, must not hide that another one isn't.
    effective = (
        effective_items(labels == place, members) for place in range(k) if 0 < shares[place] < 1
    )
    items = min(effective, default=float(groups))
    few = normal_quantile(LEVEL) / student_quantile(max(groups - 1, 1))
    return np.asarray(shares * items * few**2)


def _solved(shares: Array, rates: Array, values: Array) -> Array:
    """Means over valid classes, shape (draws,). shares: (draws, k); rates: (draws, k, k)."""
    true = np.linalg.solve(np.swapaxes(rates, 1, 2), shares[..., None])[..., 0]
    true = np.clip(true, 0, None)
    valid = ~np.isnan(values)
    total = true[:, valid].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0, true[:, valid] @ values[valid] / total, np.nan))


def ppi(
    judged: ArrayLike,
    labeled_judged: ArrayLike,
    labels: ArrayLike,
    ends: tuple[float, float],
    clusters: ArrayLike | None = None,
) -> Estimate:
    """Mean of the truth over valid items, from a few labels and many judgments.

    judged: shape (N,), judge on the unlabeled items; labeled_judged and labels: shape (n,), judge
    and truth on items of the same run, drawn at random; NaN where the judge or the truth finds an
    item invalid. ends: the least and the largest value that a label can have; clusters: shape
    (n + N,), cluster of each item, the labeled ones first, or (n + N, 2) of both its members.

    A ratio: the sum of valid values over the number of valid items, each of the two corrected by
    prediction-powered inference (PPI++, Angelopoulos et al. 2023). So a judge that abstains where
    it is hard is corrected too: whatever the judge does, the estimate is consistent; the better the
    judge, the narrower the interval. It holds for few labels: half an item is added for each of the
    four pairs of ends that judge and truth can give (after Agresti and Min 2005), as errors too
    rare to be among the labels are possible. Items of a cluster may err together, so their errors
    are added up before they are squared; the variance is never below that of independent items, and
    if all labels are equal, other clusters may still differ (as in `cluster_interval`). Student's t
    has one degree of freedom less than there are labels, or clusters with labels. It has a warning
    where items come in clusters and hardly any label differs from the most frequent one.
    NOT_CORRECTED for fewer than two labels or without valid items.
    """
    f = np.asarray(judged, dtype=float)
    g, y = np.asarray(labeled_judged, dtype=float), np.asarray(labels, dtype=float)
    if g.shape != y.shape:
        raise ValueError(f"{len(g)} judgments for {len(y)} labels")
    if len(y) < 2:
        return NOT_CORRECTED
    low, span = ends[0], ends[1] - ends[0]
    f, g, y = (f - low) / span, (g - low) / span, (y - low) / span
    ratio = _ratio(f, g, y)
    if math.isnan(ratio.value):
        return NOT_CORRECTED
    groups, together, count, labeled_clusters = float(len(y)), 0.0, 0, len(y)
    if clusters is not None:
        member = clustered(np.concatenate([y, f]), clusters)[1]
        count = int(member.max()) + 1
        sizes = np.bincount(member[: len(y)].ravel())
        groups = (len(y) * member.shape[1]) ** 2 / float((sizes**2).sum())
        labeled_clusters = int((sizes > 0).sum())
        together = _clustered(ratio.rectifier, ratio.judged, member) + ratio.unseen
    valid = y[~np.isnan(y)]
    warning = ""
    if ratio.variance < together < math.inf:
        rarer = len(valid) - int(np.unique(valid, return_counts=True)[1].max(initial=0))
        warning = _FEW_LABELS if 0 < rarer < FEW and rarer <= RARE * len(valid) else ""
        reached = student_wilson(_share(ratio.center), together, groups)
    else:
        half = student_quantile(groups - 1) * math.sqrt(max(ratio.variance, together))
        reached = Interval(ratio.center - half, ratio.center + half)
    least, most = min(ratio.value, reached.low), max(ratio.value, reached.high)
    if len(valid) and (valid == valid[0]).all():
        unseen = wilson(0, labeled_clusters).high
        least = min(least, ratio.value * (1 - unseen))
        most = max(most, ratio.value * (1 - unseen) + unseen)
    interval = Interval(_share(least), _share(most)).scaled(span)
    estimate = Estimate(
        span * _share(ratio.value),
        interval,
        n=len(f) + len(y),
        clusters=count,
        warning=warning,
    )
    return estimate.shifted(low)


@dataclass(frozen=True)
class _Ratio:
    """A corrected ratio, and how it varies."""

    value: float
    center: float
    """With half an item for each pair of ends."""
    variance: float
    """Of the center, for independent items."""
    unseen: float
    """Part of it that comes from those half items."""
    rectifier: Array
    """Shape (n,): each labeled item's part in the ratio, truth less judge."""
    judged: Array
    """Shape (N,): each unlabeled item's part, by the judge."""


def _ratio(f: Array, g: Array, y: Array) -> _Ratio:
    """Sum of valid values over valid items; values in [0, 1], NaN for invalid."""
    (value_f, valid_f), (value_g, valid_g), (value_y, valid_y) = map(_parts, (f, g, y))
    many, weight = len(f), 1.0 if len(f) else 0.0
    value = shared = math.nan
    # The weight depends on the ratio, and the ratio on the weight: both settle in a few steps.
    for _ in range(4):
        shared = _rectified_mean(valid_f, valid_g, valid_y, weight)
        if not shared > 0:
            break
        value = _rectified_mean(value_f, value_g, value_y, weight) / shared
        parts = ((value_f, valid_f), (value_g, valid_g), (value_y, valid_y))
        e_f, e_g, e_y = (values - value * valid for values, valid in parts)
        weight = _weight(e_f, e_g, e_y, (-value, 1 - value))
    if not shared > 0:
        return _Ratio(math.nan, math.nan, math.nan, math.nan, g, f)
    n = len(y) + 2
    low, high = -value, 1 - value
    residuals = np.append(e_y, [low, low, high, high]) - weight * np.append(e_g, [low, high] * 2)
    label_weights = np.append(np.ones(len(y)), np.full(4, 0.5))
    mean = float(label_weights @ residuals / n)
    squares = label_weights * (residuals - mean) ** 2 / (n - 1) / n
    variance, unseen = float(squares.sum()), float(squares[-4:].sum())
    center = value + (mean + (weight * float(e_f.mean()) if many else 0.0)) / shared
    if many:
        variance += weight**2 * (float(e_f.var()) + 1 / (many + 2)) / many
    return _Ratio(
        value,
        center,
        variance / shared**2,
        unseen / shared**2,
        (e_y - weight * e_g) / shared,
        weight * e_f / shared,
    )


def _parts(values: Array) -> tuple[Array, Array]:
    """Valid values, 0 in place of NaN, and whether each is valid."""
    valid = ~np.isnan(values)
    return np.where(valid, values, 0.0), valid.astype(float)


def _rectified_mean(f: Array, g: Array, y: Array, weight: float) -> float:
    return float((y - weight * g).mean()) + (weight * float(f.mean()) if len(f) else 0.0)


def _weight(e_f: Array, e_g: Array, e_y: Array, ends: tuple[float, float]) -> float:
    """Weight of the judge, in [0, 1], with the least variance, ends as in `ppi`."""
    if not len(e_f):
        return 0.0
    low, high = ends
    n, many = len(e_y) + 2, len(e_f)
    labels, judged = np.append(e_y, [low, low, high, high]), np.append(e_g, [low, high] * 2)
    label_weights = np.append(np.ones(len(e_y)), np.full(4, 0.5))
    everything = np.concatenate([e_f, judged])
    all_weights = np.append(np.ones(many), label_weights)
    mean_y, mean_g = label_weights @ labels / n, label_weights @ judged / n
    spread = np.average(
        (everything - np.average(everything, weights=all_weights)) ** 2, weights=all_weights
    )
    covariance = label_weights @ ((labels - mean_y) * (judged - mean_g)) / n
    return min(1.0, max(0.0, float(covariance / ((1 + n / many) * spread))))


def _clustered(residuals: Array, judged: Array, member: NDArray[np.intp]) -> float:
    """Variance of mean(residuals) + mean(judged) where items of a cluster go together.

    member: shape (n, 1); or (n, 2) of pairs, whose variance is as in `cluster_interval`.
    """
    deviations = [
        (values - values.mean()) / len(values) for values in (residuals, judged) if len(values)
    ]
    deviation = np.concatenate(deviations)
    of_members = _sum_of_squares(np.repeat(deviation, member.shape[1]), member.ravel())
    if member.shape[1] == 1:
        return of_members
    pair = np.unique(np.sort(member, axis=1), axis=0, return_inverse=True)[1].ravel()
    of_pairs = _sum_of_squares(deviation, pair)
    return max(of_pairs, of_members - of_pairs)


def _sum_of_squares(deviations: Array, member: NDArray[np.intp]) -> float:
    """Sum of squared cluster sums, corrected for few clusters; infinite for a single one."""
    sums = np.bincount(member, weights=deviations)
    count = len(sums)
    return float((sums**2).sum()) * count / (count - 1) if count > 1 else math.inf
