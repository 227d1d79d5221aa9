"""Resampling of clusters, for statistics that are functions of means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .intervals import LEVEL, NOTHING, Interval

Array = NDArray[np.float64]

RESAMPLES = 10_000
"""Draws wherever no number is given."""
_DENSE = 8
"""Numbers that may occur, for each one that there is, up to which they are counted."""
_CELLS = 4_000_000
"""Weights held at once: 32 MB."""


@dataclass(frozen=True)
class Bootstrap:
    """An estimate with its resampling distribution."""

    estimate: Array
    """Shape (m,): the statistics of the data."""
    draws: Array
    """Shape (resamples, m): the statistics of the resampled data; NaN where undefined."""

    def interval(self, number: int = 0) -> Interval:
        """95 % percentile interval of a statistic; NOTHING where most draws are undefined."""
        return self._intervals[number]

    @cached_property
    def _intervals(self) -> list[Interval]:
        """Of each statistic; kept, because quantiles of many draws take long."""
        return [self._percentiles(number) for number in range(len(self.estimate))]

    def _percentiles(self, number: int) -> Interval:
        drawn = self.draws[:, number]
        drawn = drawn[~np.isnan(drawn)]
        if len(drawn) < len(self.draws) / 2 or np.isnan(self.estimate[number]):
            return NOTHING
        drawn.sort()  # many times faster than the partition that numpy makes of unsorted ones
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Interval(float(low), float(high))

    def p_value(self, number: int = 0) -> float:
        """Two-sided, against 0: twice the share of draws beyond it, in [1 / resamples, 1]."""
        drawn = self.draws[:, number]
        drawn = drawn[~np.isnan(drawn)]
        if not len(drawn):
            return float("nan")
        if self.estimate[number] == 0:
            return 1.0
        beyond = min(float(np.mean(drawn <= 0)), float(np.mean(drawn >= 0)))
        return min(1.0, max(2 * beyond, 1 / len(drawn)))


def cluster_bootstrap(
    values: ArrayLike,
    clusters: ArrayLike,
    statistic: Callable[[Array], Array] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Bootstrap:
    """Resamples whole clusters with replacement and recomputes means over items.

    values: shape (n,) or (n, k), one row an item; NaN where an item has no value for a column.
    clusters: shape (n,), what an item belongs to.
    statistic: from means of shape (..., k) to statistics of shape (..., m), e.g. a difference of
        two columns; the means themselves where None.

    Items that share a cluster (an entity pair, its seeds and mention orders) move together, so the
    interval is right where items are alike. Raises ValueError where the shapes don't fit.
    """
    columns, labels = clustered(values, clusters)
    present = ~np.isnan(columns)
    filled = np.hstack([np.where(present, columns, 0.0), present])
    rng = np.random.default_rng(seed)
    apply = statistic or (lambda means: means)
    k = columns.shape[1]

    def means(sums: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums[..., :k] / sums[..., k:]

    estimate = apply(means(filled.sum(axis=0)))
    draws = [apply(means(sums)) for sums in _resampled(filled, labels[:, 0], resamples, rng)]
    undefined = np.full((1, *np.shape(estimate)), np.nan)
    return Bootstrap(np.atleast_1d(estimate), np.concatenate(draws) if draws else undefined)


def clustered(values: ArrayLike, clusters: ArrayLike) -> tuple[Array, NDArray[np.intp]]:
    """Values of shape (n, k), and the clusters of each, numbered from 0; shape (n, 1) or (n, 2).

    Raises ValueError where the shapes don't fit.
    """
    columns = np.asarray(values, dtype=float)
    columns = columns[:, None] if columns.ndim == 1 else columns
    labels = np.asarray(clusters)
    labels = labels[:, None] if labels.ndim == 1 else labels
    if columns.ndim != 2 or labels.ndim != 2 or len(columns) != len(labels):
        raise ValueError(f"values {columns.shape} and clusters {labels.shape} do not fit")
    if labels.shape[1] not in (1, 2):
        raise ValueError(f"an item belongs to one or two clusters, not {labels.shape[1]}")
    return columns, numbered(labels)


def numbered(names: NDArray[Any]) -> NDArray[np.intp]:
    """The place of each name among all that occur, sorted; of the shape of `names`."""
    if names.dtype.kind == "i" and names.size:
        low, high = int(names.min()), int(names.max())
        if high - low < _DENSE * names.size:  # counted, which takes a tenth of sorting them
            offsets = names.astype(np.intp) - low
            occurs = np.zeros(high - low + 1, dtype=bool)
            occurs[offsets] = True
            return (np.cumsum(occurs) - 1)[offsets]
    return np.unique(names, return_inverse=True)[1].reshape(names.shape)


def first_places(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Shape (g,): where each of the numbers 0 to g - 1, all of which occur, is for the first time;
    numbers: shape (n,)."""
    first = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.intp)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # the last one written stays
    return first


def _weights(count: int, draws: int, rng: np.random.Generator) -> Array:
    """How often each of `count` clusters is drawn, shape (draws, count)."""
    # One bincount over all draws: 3x faster than Generator.multinomial at 2,000 clusters.
    drawn = rng.integers(0, count, size=(draws, count))
    drawn += np.arange(draws)[:, None] * count
    return np.bincount(drawn.ravel(), minlength=draws * count).reshape(draws, count).astype(float)


def _resampled(
    filled: Array, group: NDArray[np.intp], resamples: int, rng: np.random.Generator
) -> Iterator[Array]:
    """Sums of resampled rows, shape (draws, columns) each, as many rows as `resamples` in all."""
    if not len(filled):
        return
    # Items of the same cluster always weigh the same: their sums are enough.
    sums = np.zeros((int(group.max()) + 1, filled.shape[1]))
    np.add.at(sums, group, filled)
    columns = np.ascontiguousarray(sums.T)
    size = max(1, _CELLS // len(sums))
    for start in range(0, resamples, size):
        weights = _weights(len(sums), min(size, resamples - start), rng)
        # As fast as @ with few columns, and without BLAS, whose threads take the cores of other
        # runs that are scored at the same time.
        yield np.einsum("dc,kc->dk", weights, columns)
