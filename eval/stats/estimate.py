"""A number with its uncertainty, and how both are written for a reader."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from .intervals import NOTHING, Interval, wilson

LOG_ODDS = "log odds"
"""Unit of natural logarithms of odds."""
PIXELS = "pixels"
"""Unit of distances in an image."""
UNDEFINED = "undefined"
"""Stands in place of a number that is NaN."""
_ENOUGH = 20
_FEW_ITEMS = f"fewer than {_ENOUGH} items: 95 % intervals of a share held the truth in 90 %"


@dataclass(frozen=True)
class Estimate:
    """A number with everything that qualifies it."""

    value: float
    """NaN where it is undefined, never 0 instead."""
    interval: Interval = NOTHING
    """95 %; NOTHING where the value is undefined or no interval is known."""
    n: int = 0
    """Items that count."""
    clusters: int = 0
    """Clusters that the items belong to; 0 where items count as independent."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Items that don't count, by label."""
    error: float = math.nan
    """Standard error, where it is known."""
    p_value: float = math.nan
    """Two-sided, against 0 unless a test is named."""
    warning: str = ""
    """Limits of the interval, e.g. its measured coverage with so few clusters."""

    def scaled(self, factor: float) -> Self:
        """`factor` (positive) times the quantity, e.g. 100 for percent."""
        return replace(
            self,
            value=factor * self.value,
            interval=self.interval.scaled(factor),
            error=factor * self.error,
        )

    def shifted(self, by: float) -> Self:
        """The quantity plus a constant."""
        return replace(self, value=self.value + by, interval=self.interval.shifted(by))

    @classmethod
    def of(cls, estimate: Estimate, **facts: Any) -> Self:
        """An estimate of this kind from any other. facts: fields in addition, or in its place."""
        shared = {field.name: getattr(estimate, field.name) for field in fields(Estimate)}
        return cls(**{**shared, **facts})

    def text(self, unit: str) -> str:
        """Value and interval in a unit.

        >>> Estimate(0.787, Interval(0.474, 0.992)).scaled(100).text("%")
        '78.7 (47.4 to 99.2)'
        """
        return f"{value_text(self.value, unit)} ({interval_text(self.interval, unit)})"

    def to_json(self) -> dict[str, Any]:
        """Value and interval as JSON has them: None where one is undefined."""
        defined = not math.isnan(self.value) and not math.isnan(self.interval.low)
        return {
            "value": None if math.isnan(self.value) else self.value,
            "interval": list(self.interval) if defined else None,
        }


def share_of(count: int, n: int) -> Estimate:
    """A share of independent items with Wilson's interval; undefined without items.

    It covers 0.93 or more from 20 items on. Below, where `warning` says so, 0.90 near 0 and 1.
    """
    if not n:
        return Estimate(math.nan)
    warning = _FEW_ITEMS if n < _ENOUGH else ""
    return Estimate(count / n, wilson(count, n), n=n, warning=warning)


def value_text(value: float, unit: str, undefined: str = UNDEFINED) -> str:
    """One decimal for percent and pixels, two for log odds, three for shares, none for counts of
    e.g. images.

    >>> value_text(51.304, "%"), value_text(0.5, "1"), value_text(1700.0, "images")
    ('51.3', '0.500', '1,700')
    >>> value_text(0.9951, LOG_ODDS), value_text(float("nan"), "%")
    ('1.00', 'undefined')
    >>> value_text(0.00004, "p")
    '< 0.001'
    """
    if math.isnan(value):
        return undefined
    if unit == "p":
        return p_text(value)
    digits = {"%": 1, PIXELS: 1, LOG_ODDS: 2, "1": 3}
    return f"{value:.{digits[unit]}f}" if unit in digits else f"{value:,.0f}"


def p_text(p_value: float) -> str:
    """Three decimals; never 0, as no test can show that.

    >>> p_text(0.0412), p_text(0.00001), p_text(float("nan"))
    ('0.041', '< 0.001', '-')
    """
    if math.isnan(p_value):
        return "-"
    return f"{p_value:.3f}" if p_value >= 0.0005 else "< 0.001"


def interval_text(interval: Interval, unit: str) -> str:
    """Both ends, or a dash.

    >>> interval_text(Interval(47.38, 99.2), "%"), interval_text(NOTHING, "%")
    ('47.4 to 99.2', '-')
    """
    if math.isnan(interval.low):
        return "-"
    return f"{value_text(interval.low, unit)} to {value_text(interval.high, unit)}"
