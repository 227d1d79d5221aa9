"""How many items does it take?"""

from __future__ import annotations

import math

from .comparison import ALPHA
from .intervals import normal_quantile


def paired_items(
    difference: float, discordance: float, alpha: float = ALPHA, power: float = 0.8
) -> int:
    """Items on which to compare two systems, each right or wrong (Connor 1987).

    difference: of their accuracies, in (0, discordance]; discordance: share of items on which just
    one is right. E.g. 0.05 at 20 % discordance: 621 items. Raises ValueError outside these ranges.
    """
    if not 0 < abs(difference) <= discordance <= 1:
        raise ValueError(
            f"difference {difference:g} must be within the discordance {discordance:g}"
        )
    if not 0 < power < 1:
        raise ValueError(f"power {power} is not between 0 and 1")
    z = normal_quantile(1 - alpha) + normal_quantile(abs(2 * power - 1)) * (
        1 if power > 0.5 else -1
    )
    return math.ceil(z * z * (discordance - difference**2) / difference**2)


def detectable_difference(
    n: int, discordance: float, alpha: float = ALPHA, power: float = 0.8
) -> float:
    """The smallest difference that `n` paired items find with this power; NaN where none."""
    low, high = 0.0, discordance
    if paired_items(high, discordance, alpha, power) > n:
        return math.nan
    for _ in range(60):
        middle = (low + high) / 2
        if middle > 0 and paired_items(middle, discordance, alpha, power) <= n:
            high = middle
        else:
            low = middle
    return high
