"""Is one system better than another, and which of many are alike?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

ALPHA = 0.05
"""Significance level wherever none is given."""


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value for paired yes/no results (McNemar 1947).

    The counts are of items on which only the first, or only the second, is right. Items on which
    both agree don't count; 1 without any others.
    """
    from scipy.stats import binomtest

    if min(only_first, only_second) < 0:
        raise ValueError(f"counts {only_first}, {only_second} are negative")
    n = only_first + only_second
    return 1.0 if n == 0 else float(binomtest(only_first, n).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979), in the order given."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    worst = 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return [float(p) for p in adjusted]


def tied_groups(
    scores: Mapping[str, float], p_values: Mapping[tuple[str, str], float], alpha: float = ALPHA
) -> list[list[str]]:
    """Maximal runs, best first, within which no two systems differ at `alpha`.

    A system may be in two groups: it is tied with both of its neighbors though they differ.
    `p_values` are adjusted ones, one for every unordered pair, keyed in either order.
    """
    ranked = sorted(scores, key=lambda name: (-scores[name], name))

    def differ(a: str, b: str) -> bool:
        return (p_values[a, b] if (a, b) in p_values else p_values[b, a]) < alpha

    groups: list[list[str]] = []
    for start, name in enumerate(ranked):
        group = [name]
        for other in ranked[start + 1 :]:
            if any(differ(member, other) for member in group):
                break
            group.append(other)
        if not groups or not set(group) <= set(groups[-1]):
            groups.append(group)
    return groups
