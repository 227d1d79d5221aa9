"""Intervals of a quantity that data only bound, because part of them is missing."""

from __future__ import annotations

import math

from .estimate import Estimate
from .intervals import LEVEL, NOTHING, Interval, normal_quantile

FEW = 20
"""Clusters below which intervals keep their length: they are skewed, so that one side alone is
missed more often than half as often as both."""


def bounded_interval(worst: Estimate, best: Estimate) -> Interval:
    """95 % interval of a quantity between two estimates (Imbens and Manski 2004).

    worst: the quantity if all that is missing were against it, best: if all were for it, each with
    its 95 % interval, from the same items, so that worst <= best always (then the interval is valid
    however close they are: Stoye 2009). It holds the value in 95 %, wherever that lies between
    both. Where they are far apart only one side can be missed, so that both intervals are shortened
    to those of up to 90 %; not below `FEW` clusters. NOTHING where one is undefined.
    """
    if any(math.isnan(end) for end in (*worst.interval, *best.interval)):
        return NOTHING
    below, above = worst.value - worst.interval.low, best.interval.high - best.value
    error = max(below, above) / normal_quantile(LEVEL)
    shrink = 1.0
    if error > 0 and min(worst.clusters, best.clusters) >= FEW:
        shrink = _quantile((best.value - worst.value) / error) / normal_quantile(LEVEL)
    return Interval(worst.value - shrink * below, best.value + shrink * above)


def _quantile(apart: float) -> float:
    """Standard errors by which both ends are moved out, for bounds some standard errors apart:
    1.96 for bounds that coincide, 1.64 for bounds that are far apart."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    return float(brentq(lambda c: ndtr(c + apart) - ndtr(-c) - LEVEL, 0.0, 10.0))
