"""The interval of every score: functions of means over items that come in clusters.

- Each mean gets Wilson's interval with Student's t, for as many items as would have the variance
  seen between clusters (Korn and Graubard 1998). A function of several means takes its percentiles
  from draws of these means, or the ends of the jackknife's t interval where these are farther out.
  Resampling whole clusters claims too much, also with a hundred of them, where rates are near 0 or
  1 or few clusters hold most items.
- Items that have two members (the entities of a pair), which come again in other pairs, vary with
  both: the variance sums over members and takes off what a pair gives to both of its members
  (Fafchamps and Gubert 2007); that of a mean is never below that of its pairs.
- Where nothing varies, nothing is certain either. After G clusters without an exception, Wilson's
  interval for 0 of G lets exceptions be z^2 / (z^2 + G) of all clusters (0.43 at 5, 0.16 at 20):
  each mean may move by that share of the way to either end.

`benchmarks/coverage.py` prints the measured coverage.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bootstrap import RESAMPLES, Array, Bootstrap, clustered, numbered
from .estimate import Estimate
from .intervals import NOTHING, Interval, student_quantile, wilson

_SKEW = 0.45
"""Additional reach of an interval toward the middle, per skewness / sqrt(clusters). Johnson (1978)
derives 1/3; 0.45 is what logit-normal cluster rates need for a coverage of 0.93."""
FEW = 5
"""Clusters below which an interval is too narrow where their sizes have to do with their values."""
_FEW_CLUSTERS = (
    f"fewer than {FEW} clusters: 95 % intervals held the truth in 92 % where large clusters differ "
    "from small ones"
)
_NO_WIDTH = 1e-9
"""Relative to the span of values; anything narrower is a width of 0, rounded."""

Statistic = Callable[[Array], Array]
"""From means of shape (..., k) to statistics of shape (..., m)."""


@dataclass(frozen=True)
class _Means:
    """k means, on a scale from 0 for the least possible value to 1 for the largest."""

    share: Array
    """Shape (k,): the means; NaN without values."""
    clusters: Array
    """Shape (k,): clusters with a value."""
    effective: Array
    """Shape (k,): clusters of equal size that would carry the same weight, 1 / sum(weight^2)."""
    alike: NDArray[np.bool_]
    """Shape (k,): whether all values are equal."""
    changes: Array
    """Shape (g, k): what leaving out each cluster takes from the means, scaled so that the squares
    of a column add up to the variance of its mean (jackknife)."""
    independent: Array
    """Shape (k,): items of equal weight that carry as much as weighted two-valued ones, if these
    are independent; infinite without weights."""
    twice: Array
    """Shape (p, k): the same for each pair of members, which `changes` has for both; (0, k) where
    items have no members."""

    @functools.cached_property
    def covariance(self) -> Array:
        """Shape (k, k): covariance of the means."""
        if not len(self.twice):
            return np.asarray(self.changes.T @ self.changes)
        pairs = self.twice.T @ self.twice
        values, vectors = np.linalg.eigh(self.changes.T @ self.changes - pairs)
        members = (vectors * np.maximum(values, 0.0)) @ vectors.T
        least, variance = np.diag(pairs), np.diag(members)
        if (variance < _NO_WIDTH * least).any():
            return np.asarray(pairs)
        wider = np.sqrt(np.maximum(1.0, least / np.where(variance > 0, variance, 1.0)))
        return np.asarray(members * np.outer(wider, wider))

    @functools.cached_property
    def varied(self) -> NDArray[np.bool_]:
        """Shape (k,): whether the mean changes as clusters are left out."""
        return np.sqrt(np.diag(self.covariance)) > _NO_WIDTH

    @functools.cached_property
    def items(self) -> Array:
        """Shape (k,): independent two-valued items that would make the mean as uncertain."""
        variance = np.where(self.varied, np.diag(self.covariance), 1.0)
        return np.where(self.varied, self.share * (1 - self.share) / variance, self.clusters)

    @property
    def warning(self) -> str:
        """Limits of intervals of these means, or of functions of them."""
        few = (self.clusters > 0) & (self.clusters < FEW)
        return _FEW_CLUSTERS if (few & self.varied).any() else ""

    @property
    def freedom(self) -> Array:
        """Shape (k,): degrees of freedom of Student's t."""
        return np.maximum(1.0, self.effective - 1)


def cluster_interval(
    values: ArrayLike,
    clusters: ArrayLike,
    ends: tuple[float, float],
    statistic: Statistic | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    tested: bool = False,
    weights: ArrayLike | None = None,
) -> list[Estimate]:
    """Every statistic of the means of clustered values, with its 95 % interval.

    values: shape (n,) or (n, k), one row for each item; NaN for a missing value.
    clusters: shape (n,); or (n, 2) with both members of an item's pair, in any order: then the
        interval is that of pairs of other members too.
    ends: the least and the largest value that is possible.
    statistic: the means themselves where None.
    tested: whether means have a p-value, which takes draws; a statistic always has.
    weights: shape (n,), of each two-valued item in the means, at least 0; all alike where None.

    Intervals never have a width of 0. `n` counts items with a value, for a statistic in any column;
    `clusters` is that of the mean that has the fewest; `error` is the standard deviation of the
    draws behind the interval, or the jackknife's error of a mean without draws. Raises ValueError
    where the shapes don't fit or a value is outside the ends.
    """
    columns, labels = clustered(values, clusters)
    low, high = ends
    if ((columns < low) | (columns > high)).any():
        raise ValueError(f"values from {np.nanmin(columns)} to {np.nanmax(columns)} exceed {ends}")
    means = _means(columns, labels, ends, weights)
    if statistic is None and not tested:
        return _plain(means, columns, ends)
    bootstrap = _drawn(_together(means, resamples, seed), means, ends, statistic)
    rigid = _rigid(bootstrap, high - low)
    if rigid.any():
        draws = _together if statistic is None else _apart
        spare = _drawn(draws(means, resamples, seed), means, ends, statistic)
        bootstrap = Bootstrap(bootstrap.estimate, np.where(rigid, spare.draws, bootstrap.draws))
    present = ~np.isnan(columns)
    number = len(bootstrap.estimate)
    counts = present.sum(axis=0) if statistic is None else [present.any(axis=1).sum()] * number
    linear = None if statistic is None else _linear(means, ends, statistic)
    estimates = []
    for i, value in enumerate(bootstrap.estimate.tolist()):
        if math.isnan(value):
            interval, p_value, error = NOTHING, math.nan, math.nan
        else:
            interval, p_value = bootstrap.interval(i), bootstrap.p_value(i)
            error = float(np.nanstd(bootstrap.draws[:, i]))
            if linear is None:
                interval = _mean_interval(means, i, ends)
            else:
                low, high, linear_p = linear[i].tolist()
                interval = Interval(min(low, interval.low), max(high, interval.high))
                p_value = max(p_value, linear_p)
        estimates.append(
            Estimate(
                value,
                interval,
                n=int(counts[i]),
                clusters=int(min(means.clusters[means.clusters > 0], default=0)),
                error=error,
                p_value=p_value,
                warning="" if math.isnan(value) else means.warning,
            )
        )
    return estimates


def cluster_values(
    values: ArrayLike,
    clusters: ArrayLike,
    ends: tuple[float, float],
    statistic: Statistic | None = None,
) -> list[float]:
    """The values of `cluster_interval`, of the same arguments, without their intervals."""
    columns, _ = clustered(values, clusters)
    low, span = ends[0], ends[1] - ends[0]
    present = ~np.isnan(columns)
    scaled = low + span * _share(_mean(columns, present, present.astype(float)), ends)
    estimates: list[float] = np.atleast_1d(statistic(scaled) if statistic else scaled).tolist()
    return estimates


def jackknife_interval(
    values: ArrayLike, clusters: ArrayLike, ends: tuple[float, float], statistic: Statistic
) -> Estimate:
    """One statistic of the means of clustered values, with Student's t interval by the jackknife.

    values, clusters, ends: as in `cluster_interval`; statistic: to shape (..., 1), finite for all
    means within the ends.

    Unlike `cluster_interval` it allows for no exception that was never seen: for a number that all
    means decide together, e.g. a slope over them, of which some are at an end of their range as the
    slope lets expect. NaN where a column has no value.
    """
    columns, labels = clustered(values, clusters)
    means = _means(columns, labels, ends)
    if np.isnan(means.share).any():
        return Estimate(math.nan)
    low, span = ends[0], ends[1] - ends[0]
    value = float(statistic(low + span * means.share)[0])

    def moved(changes: Array) -> float:
        without = statistic(low + span * np.clip(means.share - changes, 0, 1))[..., 0]
        return float(((value - without) ** 2).sum())

    pairs = moved(means.twice) if len(means.twice) else 0.0
    error = math.sqrt(max(moved(means.changes) - pairs, pairs))
    reach = student_quantile(float(min(means.freedom))) * error
    return Estimate(
        value,
        Interval(value - reach, value + reach),
        n=int((~np.isnan(columns)).any(axis=1).sum()),
        clusters=int(min(means.clusters)),
        error=error,
        warning=means.warning,
    )


def _plain(means: _Means, columns: Array, ends: tuple[float, float]) -> list[Estimate]:
    """The means of columns (n, k) with their intervals, without draws."""
    fewest = int(min(means.clusters[means.clusters > 0], default=0))
    values = ends[0] + (ends[1] - ends[0]) * means.share
    errors = (ends[1] - ends[0]) * np.sqrt(np.diag(means.covariance))
    counts = (~np.isnan(columns)).sum(axis=0)
    return [
        Estimate(
            float(value),
            _mean_interval(means, i, ends),
            n=int(counts[i]),
            clusters=fewest,
            error=float(errors[i]),
            warning="" if math.isnan(value) else means.warning,
        )
        for i, value in enumerate(values)
    ]


def effective_items(values: ArrayLike, clusters: ArrayLike) -> float:
    """Independent two-valued items that would make the mean of clustered ones as uncertain.

    values: shape (n,), each 0 or 1; clusters: shape (n,), or (n, 2) of both members. At most n.
    """
    columns, labels = clustered(values, clusters)
    means = _means(columns, labels, (0.0, 1.0))
    return min(float(means.items[0]), float(len(columns)))


def _means(
    columns: Array,
    labels: NDArray[np.intp],
    ends: tuple[float, float],
    weights: ArrayLike | None = None,
) -> _Means:
    present = ~np.isnan(columns)
    counted: Array = present.astype(float)
    if weights is not None:
        counted *= np.asarray(weights, dtype=float)[:, None]
        present &= counted > 0
    count = counted.sum(axis=0)
    mean = _mean(columns, present, counted)
    residuals = np.where(present, columns - mean, 0.0) * counted / (ends[1] - ends[0])
    most, least = (np.where(present, columns, end) for end in (-np.inf, np.inf))
    weight, changes = _without_each(labels, counted, residuals, count)
    twice = np.empty((0, columns.shape[1]))
    if labels.shape[1] == 2:
        low_label, high_label = np.sort(labels, axis=1).T
        numbers = low_label * (labels.max(initial=0) + 1) + high_label
        pairs = numbered(numbers)[:, None]
        twice = _without_each(pairs, counted, residuals, count)[1]
    # Members share an item's weight.
    squares = (weight**2).sum(axis=0) / labels.shape[1] ** 2
    return _Means(
        share=_share(mean, ends),
        clusters=(weight > 0).sum(axis=0).astype(float),
        effective=1 / np.where(squares > 0, squares, 1.0),
        alike=most.max(axis=0, initial=-np.inf) == least.min(axis=0, initial=np.inf),
        changes=changes,
        independent=np.full(len(mean), np.inf)
        if weights is None
        else count**2 / np.maximum((counted**2).sum(axis=0), 1e-300),
        twice=twice,
    )


def _mean(columns: Array, present: NDArray[np.bool_], weights: Array) -> Array:
    """Shape (k,): mean of each column (n, k) over what is present; NaN where nothing is."""
    with np.errstate(invalid="ignore"):
        total = (np.where(present, columns, 0.0) * weights).sum(axis=0)
        return np.asarray(total / weights.sum(axis=0))


def _share(means: Array, ends: tuple[float, float]) -> Array:
    """Means within `ends` on a scale from 0 to 1."""
    return np.clip((means - ends[0]) / (ends[1] - ends[0]), 0, 1)


def _without_each(
    labels: NDArray[np.intp], counted: Array, residuals: Array, count: Array
) -> tuple[Array, Array]:
    """Each cluster's weight, and by how much a mean moves without it; both of shape (g, k).

    counted: shape (n, k), weights of the items; labels: shape (n, 1) or (n, 2), clusters of each
    item; the same twice counts as once.
    """
    members, number = labels[:, 0], int(labels.max(initial=-1)) + 1
    if labels.shape[1] == 2:
        other = labels[:, 1] != labels[:, 0]
        members = np.concatenate([members, labels[other, 1]])
        counted = np.concatenate([counted, counted[other]])
        residuals = np.concatenate([residuals, residuals[other]])
    weight, change = (np.empty((number, columns.shape[1])) for columns in (counted, residuals))
    for sums, columns in ((weight, counted), (change, residuals)):
        for column in range(columns.shape[1]):
            sums[:, column] = np.bincount(members, columns[:, column], number)
    divisor = np.where(count > 0, count, 1.0)
    weight, change = weight / divisor, change / divisor
    clusters = (weight > 0).sum(axis=0)
    change = np.where(weight < 1, change / np.where(weight < 1, 1 - weight, 1.0), 0.0)
    return weight, change * np.sqrt(np.maximum(clusters - 1, 0) / np.maximum(clusters, 1))


@functools.lru_cache(maxsize=16)
def _normal(k: int, resamples: int, seed: int) -> Array:
    """Standard normal draws of shape (resamples, k), symmetric about 0; read only.

    Cached, because all scores of k means draw the same.
    """
    half = np.random.default_rng(seed).standard_normal(((resamples + 1) // 2, k))
    draws = np.concatenate([half, -half])[:resamples]
    draws.flags.writeable = False
    return draws


def _together(means: _Means, resamples: int, seed: int) -> Array:
    """Draws of the means, shape (resamples, k), correlated as the means of the clusters are."""
    # Column after column, or numpy goes through k numbers at a time; the same to the last digit.
    t = np.asfortranarray(_normal(len(means.share), resamples, seed) @ _root(means))
    for column in np.flatnonzero(means.varied):
        t[:, column] *= _wider(float(means.freedom[column]), resamples, len(means.share), seed)
    skew = np.where(means.varied, _skew(means.share, means.items, means.effective), 0.0)
    if skew.any():
        t *= 1 + np.maximum(0, skew * t)
    if not means.alike.any():
        draws = _wilson_at(means, t)
    elif means.alike.all():
        draws = _exceptions(means, t)
    else:
        draws = np.where(means.alike, _exceptions(means, t), _wilson_at(means, t))
    return np.ascontiguousarray(draws)


@functools.lru_cache(maxsize=256)
def _wider(freedom: float, resamples: int, k: int, seed: int) -> Array:
    """By how much draws of Student's t are wider than normal ones, shape (resamples,); the same for
    a normal draw of k means and its opposite.

    Cached, because quantiles take long and the groups of a run share a few numbers of clusters.
    """
    from scipy.special import gammaincinv

    rng = np.random.default_rng(seed)
    half = (resamples + 1) // 2
    rng.standard_normal((half, k))  # what `_normal` draws
    chi_squared = np.tile(2 * gammaincinv(freedom / 2, rng.random(half)), 2)[:resamples]
    return np.asarray(np.sqrt(freedom / np.maximum(chi_squared, 1e-300)))


def _apart(means: _Means, resamples: int, seed: int) -> Array:
    """Draws of the means, shape (resamples, k), each moved on its own by unseen exceptions."""
    return _exceptions(means, _normal(len(means.share), resamples, seed))


def _root(means: _Means) -> Array:
    """The symmetric square root of the correlation of the means, shape (k, k)."""
    error = np.sqrt(np.diag(means.covariance))
    error = np.where(means.varied, error, np.inf)
    correlation = means.covariance / np.outer(error, error)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.where(values > 1e-12, values, 0.0))) @ vectors.T)


def _wilson_at(means: _Means, t: Array) -> Array:
    """The mean from which the one seen is t standard errors off (above it where t > 0)."""
    share, items = means.share, np.maximum(means.items, 1e-9)
    squared = t * t
    half = squared / (4 * items**2)
    half += share * (1 - share) / items
    np.sqrt(half, out=half)
    half *= t
    mean = squared / (2 * items)
    mean += share
    mean -= half
    squared /= items
    squared += 1
    mean /= squared
    return np.asarray(np.clip(mean, 0, 1, out=mean))


def _exceptions(means: _Means, t: Array) -> Array:
    """The mean if t^2 / (t^2 + G) of the clusters were at the least (t > 0) or largest value."""
    squared = t**2
    missed = squared / (squared + np.maximum(means.clusters, 1e-9))
    return means.share * (1 - missed) + np.where(t > 0, 0.0, missed)


def _drawn(
    draws: Array, means: _Means, ends: tuple[float, float], statistic: Statistic | None
) -> Bootstrap:
    """The statistic of the means, and of draws of shape (resamples, k)."""
    low, span = ends[0], ends[1] - ends[0]
    apply = statistic or (lambda values: values)
    return Bootstrap(np.atleast_1d(apply(low + span * means.share)), apply(low + span * draws))


def _rigid(bootstrap: Bootstrap, span: float) -> NDArray[np.bool_]:
    """Shape (m,): statistics that are the same in all draws that the interval covers."""
    ends = np.array([bootstrap.interval(i) for i in range(len(bootstrap.estimate))])
    return np.asarray(ends[:, 1] - ends[:, 0] <= _NO_WIDTH * span)


def _linear(means: _Means, ends: tuple[float, float], statistic: Statistic) -> Array:
    """Shape (m, 3): ends of a t interval of each statistic, and its p-value, by the jackknife.

    Draws alone are too narrow where all means reach an end of their range together, and shift where
    the statistic is a magnitude.
    """
    from scipy.special import stdtr

    low, span = ends[0], ends[1] - ends[0]
    k = len(means.share)
    value = np.atleast_1d(statistic(low + span * means.share))
    # Errors too rare to be seen: two items in all, spread over all corners (Agresti and Min 2005).
    items = float(min(means.items[means.clusters > 0], default=1.0))
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=k)))
    kept = items / (items + 2)
    center = means.share * kept + (1 - kept) / 2
    middle = np.atleast_1d(statistic(low + span * center))
    step = 1 / (items + 2)
    toward = statistic(low + span * (center + step * (corners - center)))
    unseen = (2 / len(corners)) * np.nansum((toward - middle) ** 2, axis=0)

    def moved(changes: Array) -> Array:
        without = statistic(low + span * np.clip(center - kept * changes, 0, 1))
        return np.asarray(np.nansum((middle - without) ** 2, axis=0))

    pairs = moved(means.twice)
    error = np.sqrt(np.maximum(moved(means.changes) - pairs, pairs) + unseen)
    freedom = float(min(means.freedom[means.clusters > 0], default=1))
    places = (low, low + span / 2, low + span)
    with np.errstate(all="ignore"):
        possible = statistic(np.array(list(itertools.product(places, repeat=k))))
    least, most = np.nanmin(possible, axis=0), np.nanmax(possible, axis=0)
    reach = student_quantile(freedom) * error
    lower, upper = np.maximum(middle - reach, least), np.minimum(middle + reach, most)
    off = np.divide(np.abs(middle), error, out=np.zeros_like(value), where=error > _NO_WIDTH)
    p_value = np.where(error > _NO_WIDTH, 2 * stdtr(freedom, -off), 0.0)
    return np.stack([lower, upper, p_value], axis=1)


def _mean_interval(means: _Means, number: int, ends: tuple[float, float]) -> Interval:
    """The interval of one mean, without draws."""
    share, clusters = float(means.share[number]), float(means.clusters[number])
    if math.isnan(share):
        return NOTHING
    # Exceptions of little weight vary little, and say little about those of more.
    independent = float(means.independent[number])
    clusters = min(clusters, independent)
    if means.varied[number]:
        variance = float(means.covariance[number, number])
        variance = max(variance, share * (1 - share) / independent)
        low, high = student_wilson(share, variance, float(means.effective[number]))
    elif means.alike[number]:
        low = share * wilson(clusters, clusters).low
        high = share + (1 - share) * wilson(0, clusters).high
    else:
        low, high = wilson(share * clusters, clusters)
    plain = Interval(low, high).scaled(ends[1] - ends[0])
    return Interval(plain.low + ends[0], plain.high + ends[0])


def student_wilson(share: float, variance: float, clusters: float) -> Interval:
    """Wilson's interval of a mean in [0, 1] with a variance, in [0, 1] too, from few clusters.

    Student's t has one degree of freedom less than there are clusters of equal size. The end toward
    the middle is farther away where cluster rates are skewed, as they are near 0 and 1.
    """
    q = student_quantile(clusters - 1)
    items = share * (1 - share) / variance
    skew = float(_skew(np.array(share), np.array(items), np.array(clusters)))
    low = wilson(share * items, items, quantile=q * (1 + max(0.0, skew) * q)).low
    high = wilson(share * items, items, quantile=q * (1 + max(0.0, -skew) * q)).high
    return Interval(low, high)


def _skew(share: Array, items: Array, clusters: Array) -> Array:
    """Additional reach of an interval beyond Wilson's, per standard error; < 0 for upward.

    From the skewness of cluster rates with a beta distribution, less that of two-valued items,
    which Wilson's interval allows for.
    """
    within = np.clip(clusters / np.maximum(items, 1e-9), 0, 1)
    slope = (2 * share - 1) / np.sqrt(np.maximum(share * (1 - share), 1e-9))
    beyond = slope * np.sqrt(within) * (1 - within) / (1 + within)
    return np.asarray(_SKEW * beyond / np.sqrt(np.maximum(clusters, 1)))
