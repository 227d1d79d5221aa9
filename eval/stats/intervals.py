"""Intervals for proportions and means, and what follows from an interval.

Quantiles come from `scipy.special`: importing `scipy.stats` takes most of a second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...errors import UsageError

LEVEL = 0.95
"""Confidence level wherever none is given."""


class Interval(NamedTuple):
    """Two ends; both NaN where nothing can be said."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    @property
    def width(self) -> float:
        """High less low."""
        return self.high - self.low

    def scaled(self, factor: float) -> Interval:
        """The interval of `factor` (positive) times the quantity."""
        return Interval(factor * self.low, factor * self.high)

    def shifted(self, by: float) -> Interval:
        """The interval of the quantity plus a constant."""
        return Interval(self.low + by, self.high + by)


NOTHING = Interval(math.nan, math.nan)


def normal_quantile(level: float) -> float:
    """Two-sided quantile of the standard normal, e.g. 1.96 for 0.95.

    Raises UsageError unless the level is in (0, 1).
    """
    from scipy.special import ndtri

    if not 0 < level < 1:
        raise UsageError(f"confidence level {level} is not between 0 and 1", code="out-of-range")
    return float(ndtri((1 + level) / 2))


def student_quantile(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t, at least one degree of freedom; 2.78 for 4."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, freedom), (1 + LEVEL) / 2))


def wilson(successes: float, n: float, quantile: float | None = None) -> Interval:
    """Wilson's 95 % score interval for a proportion, in [0, 1] (Wilson 1927).

    quantile: in place of the normal one, e.g. Student's. Has a width at 0 of n and n of n too.
    NOTHING for n = 0; ValueError unless 0 <= successes <= n.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return NOTHING
    z = normal_quantile(LEVEL) if quantile is None else quantile
    share = successes / n
    center = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At an end of the range, where rounding would leave the share itself out.
    low = max(0.0, (center - half) / scale) if successes else 0.0
    return Interval(low, min(1.0, (center + half) / scale) if successes < n else 1.0)


def folded(interval: Interval) -> Interval:
    """The interval of |x| from the one of x: starts at 0 where x may be 0."""
    low, high = sorted((abs(interval.low), abs(interval.high)))
    return Interval(0.0 if interval.low <= 0 <= interval.high else low, high)
