"""How many items a comparison needs."""

from __future__ import annotations

import math

from ...errors import UsageError
from .comparison import ALPHA
from .intervals import normal_quantile


def paired_items(
    difference: float, discordance: float, alpha: float = ALPHA, power: float = 0.8
) -> int:
    """Items on which to compare two systems, each right or wrong (Connor 1987).

    difference: of their accuracies, in (0, discordance]; discordance: share of items on which just
    one is right. E.g. 0.05 at 20 % discordance: 621 items. Raises UsageError outside these ranges.
    """
    from scipy.stats import norm

    if not 0 < abs(difference) <= discordance <= 1:
        raise UsageError(
            f"difference {difference:g} must be within the discordance {discordance:g}"
        )
    if not 0 < power < 1:
        raise UsageError(f"power {power} is not between 0 and 1")
    z = normal_quantile(1 - alpha) + float(norm.ppf(power))
    return math.ceil(z * z * (discordance - difference**2) / difference**2)
