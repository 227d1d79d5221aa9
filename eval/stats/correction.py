"""Taking a judge's own errors out of a rate."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .intervals import LEVEL, NOTHING, Interval, normal_quantile


class Corrected(NamedTuple):
    """A corrected rate."""

    value: float
    """Of the truth, in the units of the labels."""
    interval: Interval
    """Normal, at the level asked for."""
    weight: float
    """How much the judge's labels were trusted, in [0, 1]; 1 where that is not estimated."""


NOT_CORRECTED = Corrected(math.nan, NOTHING, math.nan)


def rogan_gladen(
    positives: int, n: int, true_positives: int, positive_n: int, true_negatives: int,
    negative_n: int, level: float = LEVEL,
) -> Corrected:  # fmt: skip
    """True rate from a judge's rate and its errors on other, labelled items (Rogan, Gladen 1978).

    positives of n: what the judge says; true_positives of positive_n and true_negatives of
    negative_n: its sensitivity and specificity, in a card. The interval adds the uncertainty of all
    three (Lang, Reiczigel 2014, with their pseudo counts). NOT_CORRECTED where the judge is no
    better than chance. Only for labels from elsewhere, and a judge with Youden index >= 0.85:
    below that, labelling the run (`ppi`) is tighter.
    """
    if not (positive_n and negative_n and n):
        return NOT_CORRECTED
    z2 = normal_quantile(level) ** 2
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
    shift = (
        2
        * z2
        * (
            value * sensitivity * (1 - sensitivity) / (positive_n + 2)
            - (1 - value) * specificity * (1 - specificity) / (negative_n + 2)
        )
    )
    half = math.sqrt(z2 * variance)
    low, high = value + shift - half, value + shift + half
    return Corrected(_share(plain), Interval(_share(low), _share(high)), 1.0)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def ppi(
    judged: ArrayLike,
    labelled_judged: ArrayLike,
    labels: ArrayLike,
    ends: tuple[float, float],
    level: float = LEVEL,
    clusters: ArrayLike | None = None,
) -> Corrected:
    """Mean of the truth from a few labels and many judgements (PPI++, Angelopoulos et al. 2023).

    judged: shape (N,), judge on the unlabelled items; labelled_judged and labels: shape (n,), judge
    and truth on items of the same run, drawn at random; ends: the least and the largest value that
    a label can have; clusters: shape (n + N,), what an item belongs to, the labelled ones first.
    Items of a cluster may err together, so their errors are added up before they are squared; the
    variance is never below that of independent items. Unbiased whatever the judge does; the better
    the judge, the narrower. Where all labels agree the variance is that of one odd item among two
    more, so that a perfect record never has a width of 0. NOT_CORRECTED for fewer than two labels.
    """
    f = np.asarray(judged, dtype=float)
    g, y = np.asarray(labelled_judged, dtype=float), np.asarray(labels, dtype=float)
    if g.shape != y.shape:
        raise ValueError(f"{len(g)} judgements for {len(y)} labels")
    n, many = len(y), len(f)
    if n < 2:
        return NOT_CORRECTED
    everything = np.concatenate([f, g])
    spread = float(everything.var(ddof=1)) if len(everything) > 1 else 0.0
    weight = 0.0
    if many and spread > 0:
        weight = float(np.cov(y, g)[0, 1]) / ((1 + n / many) * spread)
        weight = min(1.0, max(0.0, weight))
    value = float((y - weight * g).mean()) + (weight * float(f.mean()) if many else 0.0)
    low, high = ends
    variance = max(float((y - weight * g).var(ddof=1)), _odd_one_out(n, high - low)) / n
    if many > 1:
        judged_variance = max(float(f.var(ddof=1)), _odd_one_out(many, high - low))
        variance += weight**2 * judged_variance / many
    if clusters is not None:
        residuals = y - weight * g
        parts = [(residuals - residuals.mean()) / n]
        if many:
            parts.append(weight * (f - f.mean()) / many)
        variance = max(variance, _clustered(np.concatenate(parts), np.asarray(clusters)))
    half = normal_quantile(level) * math.sqrt(variance)
    return Corrected(value, Interval(max(low, value - half), min(high, value + half)), weight)


def _clustered(parts: NDArray[np.float64], clusters: NDArray[Any]) -> float:
    """Variance of a sum whose parts, each of mean 0, go together within a cluster."""
    _, member = np.unique(clusters, return_inverse=True)
    sums = np.bincount(member, weights=parts)
    count = len(sums)
    return float((sums**2).sum()) * count / (count - 1) if count > 1 else math.inf


def _odd_one_out(n: int, span: float) -> float:
    """Variance of two-valued items, `span` apart, of which one in n + 2 differs."""
    share = 1 / (n + 2)
    return span**2 * share * (1 - share)
