"""Log odds of a condition within strata, whatever else makes each stratum's odds.

The images of a pair of things share its preference: its logit is added under one order of mention
and taken off under the other. Two images of a pair, one of each order, that follow the order both
or neither have odds of exp(2 b) for both, b being the effect of the order, whatever the pair
prefers. (Conditional logistic regression; with one image of each order McNemar's odds ratio, with
several that of Mantel and Haenszel if each pair has equally many.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .bootstrap import first_places, numbered
from .clusters import cluster_interval
from .estimate import Estimate
from .intervals import NOTHING, Interval

MOST = 10.0
"""Largest log odds that are told, about 22,000 to 1: images in the thousands can't show more."""


def conditional_log_odds(
    follows: ArrayLike, orders: ArrayLike, strata: ArrayLike, clusters: ArrayLike
) -> Estimate:
    """Log odds of following the order of mention, conditional on the stratum, in [-`MOST`, `MOST`].

    follows: shape (n,), 1 where an image follows its order, 0 where it doesn't, NaN for neither;
    orders: shape (n,), 0 or 1; strata: shape (n,), e.g. the pair; clusters: shape (n,) or (n, 2),
    the same for all images of a stratum.

    `n` counts strata with both kinds of image pairs or one. `excluded`: `same_side_in_both_orders`
    for strata in which no image pair follows both or neither, because each order has the same thing
    on the same side; `not_valid_in_both_orders` for strata without a value in one order. The
    interval is that of the share of image pairs that follow both, over clusters. NaN without any.
    """
    x, order = np.asarray(follows, dtype=float), np.asarray(orders)
    member = numbered(np.asarray(strata))
    first = first_places(member)
    labels = np.asarray(clusters)[first]
    valid = ~np.isnan(x)

    def count(chosen: ArrayLike) -> np.ndarray:
        return np.bincount(member[np.asarray(chosen)], minlength=len(first))

    yes = [count(valid & (order == side) & (x == 1)) for side in (0, 1)]
    no = [count(valid & (order == side) & (x == 0)) for side in (0, 1)]
    both, neither = yes[0] * yes[1], no[0] * no[1]
    judged = (yes[0] + no[0] > 0) & (yes[1] + no[1] > 0)
    informative = both + neither > 0
    excluded = {
        "same_side_in_both_orders": int((judged & ~informative).sum()),
        "not_valid_in_both_orders": int((~judged).sum()),
    }
    n = int(informative.sum())
    if not n:
        return Estimate(math.nan, n=0, excluded=excluded)
    shares = np.repeat(np.tile([1.0, 0.0], len(first)), np.stack([both, neither], 1).ravel())
    (share,) = cluster_interval(shares, np.repeat(labels, both + neither, axis=0), (0.0, 1.0))
    # Half an independent pair of images of each kind (Haldane 1956): finite where all agree, and
    # with less bias. An image is in as many pairs as the other order has images.
    fewest = np.minimum(yes[0] + no[0], yes[1] + no[1])
    half = float(fewest[informative].mean()) / 2
    value = math.log((both.sum() + half) / (neither.sum() + half)) / 2
    low, high = (_half_logit(end) for end in share.interval)
    interval = Interval(min(low, value), max(high, value)) if not math.isnan(low) else NOTHING
    return Estimate(value, interval, n=n, clusters=share.clusters, excluded=excluded)


def _half_logit(share: float) -> float:
    """Half the logit of a share, within `MOST`."""
    if share <= 0 or share >= 1:
        return -MOST if share <= 0 else MOST
    return max(-MOST, min(MOST, math.log(share / (1 - share)) / 2))
