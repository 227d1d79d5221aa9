"""Settings whose risk is promised: at most `alpha`, with probability 1 - `delta`.

Learn then test (Angelopoulos et al. 2021): each setting of a grid is a hypothesis, that its risk is
above alpha, and labels of independent items reject it. All rejected settings together hold a true
one with probability delta at most, so any of them may be chosen afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def exceeds_p_value(wrong: int, n: int, alpha: float) -> float:
    """Probability of so few wrong ones of n independent items if the risk is alpha: exact.

    >>> round(exceeds_p_value(0, 22, 0.1), 3), exceeds_p_value(0, 0, 0.1)
    (0.098, 1.0)
    """
    from scipy.special import bdtr

    return float(bdtr(wrong, n, alpha))


def least_items(alpha: float, delta: float) -> int:
    """Items that reject a setting if none of them is wrong.

    >>> least_items(0.1, 0.1)
    22
    """
    return math.ceil(math.log(delta) / math.log(1 - alpha))


def in_sequence(p_values: Sequence[float], delta: float) -> list[int]:
    """Places of the settings that are safe, tested in a fixed order until one is not.

    The order must not depend on the items that the p-values are of.

    >>> in_sequence([0.02, 0.09, 0.3, 0.01], 0.1)
    [0, 1]
    """
    safe = []
    for place, p_value in enumerate(p_values):
        if p_value > delta:
            break
        safe.append(place)
    return safe


def all_at_once(p_values: Sequence[float], delta: float) -> list[int]:
    """Places of the settings that are safe, each at its share of delta (Holm 1979).

    >>> all_at_once([0.02, 0.09, 0.3, 0.06], 0.1)
    [0]
    """
    ordered = sorted(range(len(p_values)), key=lambda place: p_values[place])
    safe = []
    for tested, place in enumerate(ordered):
        if p_values[place] > delta / (len(p_values) - tested):
            break
        safe.append(place)
    return sorted(safe)
