"""Comparisons of systems: p-values, groups of ties, and the items needed for a given power."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import UsageError
from .bootstrap import numbered
from .estimate import Estimate
from .intervals import normal_quantile

_ALL_PATTERNS = 13
"""Clusters up to which every pattern of signs is looked at: 8,192."""
ALPHA = 0.05
"""Default significance level."""


@dataclass(frozen=True, kw_only=True)
class Comparison(Estimate):
    """A difference of two systems on the items that both have a value for, with its p-value."""

    first: str
    second: str
    """Subtracted from the first."""
    adjusted: float = math.nan
    """The p-value after Holm, over all comparisons that were made together."""

    def to_json(self) -> dict[str, Any]:
        """Names, difference and p-values, as pages and files of results have them."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.value,
            "interval": self.interval,
            "p_value": self.p_value,
            "adjusted": self.adjusted,
            "n": self.n,
        }


Compared = TypeVar("Compared", bound=Comparison)


def adjust(comparisons: Sequence[Compared]) -> list[Compared]:
    """Comparisons that were made together, with their p-values after Holm."""
    p_values = holm_of_defined([comparison.p_value for comparison in comparisons])
    return [
        replace(comparison, adjusted=p) for comparison, p in zip(comparisons, p_values, strict=True)
    ]


def pairwise_p_values(comparisons: Sequence[Comparison]) -> dict[tuple[str, str], float]:
    """(First, second) -> adjusted p-value; 1 for two systems without shared items, which
    can't be told apart."""
    return {
        (comparison.first, comparison.second): 1.0
        if math.isnan(comparison.adjusted)
        else comparison.adjusted
        for comparison in comparisons
    }


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value for paired yes/no results (McNemar 1947).

    The counts are of items on which only the first, or only the second, is right. Items on which
    both agree don't count; 1 without any others.
    """
    from scipy.special import bdtr

    if min(only_first, only_second) < 0:
        raise ValueError(f"counts {only_first}, {only_second} are negative")
    n = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), n, 0.5)))


class SignFlip(NamedTuple):
    """A mean under the hypothesis that each cluster could as well have the opposite sign."""

    p_value: float
    """Share of sign patterns whose mean is at least as far from 0, in (0, 1]; NaN without any."""
    null: float
    """Expected absolute mean over sign patterns, at least 0."""


def sign_flip(
    values: ArrayLike, clusters: ArrayLike, draws: int = 10_000, seed: int = 0
) -> SignFlip:
    """Tests a mean of clustered values, shape (n,), by flipping the signs of whole clusters.

    All patterns of at most 13 clusters, else `draws` random ones and the observed pattern. NaN
    values are left out. The images of a pair may be as alike as they like; only the hypothesis must
    make both signs of a pair equally likely.
    """
    x = np.asarray(values, dtype=float)
    present = ~np.isnan(x)
    member = numbered(np.asarray(clusters)[present])
    sums = np.bincount(member, weights=x[present])
    sums = np.abs(sums[sums != 0]) if len(sums) else sums
    if not present.any():
        return SignFlip(math.nan, math.nan)
    observed = abs(float(np.nansum(x)))
    if len(sums) <= _ALL_PATTERNS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(sums))))
        totals = np.abs(signs.reshape(len(signs), -1) @ sums)
    else:
        # einsum and not @: BLAS threads would take the cores of runs scored at the same time.
        parts = [np.einsum("dg,g->d", flips, sums) for flips in _flips(draws, len(sums), seed)]
        flipped = 2 * np.concatenate(parts) - sums.sum()
        totals = np.append(np.abs(flipped), observed)
    beyond = float(np.mean(totals >= observed - 1e-9 * max(1.0, observed)))
    return SignFlip(beyond, float(totals.mean()) / int(present.sum()))


_KEPT = 32_000_000
"""Bytes of draws up to which they are kept; more are made piece by piece."""
_kept_flips: dict[int, NDArray[np.int8]] = {}


def _flips(draws: int, clusters: int, seed: int) -> Iterator[NDArray[np.int8]]:
    """Which clusters have the opposite sign, 0 or 1: pieces of shape (some draws, clusters).

    Draws for fewer clusters are the first of those for more: they are kept, as a run's groups, and
    runs after it, need them again and again.
    """
    number = draws * clusters
    if number > _KEPT:
        rng = np.random.default_rng(seed)
        # numpy makes four such numbers at a time: pieces of whole fours are as one piece.
        size = max(4, _KEPT // clusters // 4 * 4)
        for start in range(0, draws, size):
            shape = min(size, draws - start), clusters
            yield rng.integers(0, 2, size=shape, dtype=np.int8)
        return
    flips = _kept_flips.pop(seed, None)
    if flips is None or len(flips) < number:
        flips = None  # not two at a time
        flips = np.random.default_rng(seed).integers(0, 2, size=number, dtype=np.int8)
        flips.flags.writeable = False
    _kept_flips[seed] = flips
    yield flips[:number].reshape(draws, clusters)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for multiple testing (Holm 1979), in the order of the input."""
    order = np.argsort(p_values, kind="stable")
    remaining = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, remaining * np.array(p_values)[order]))
    return [float(p) for p in adjusted]


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Q-values of p-values that were looked at together (Benjamini and Hochberg 1995); NaN stays
    NaN and counts as no test.

    Of all with q below a level, on average at most that share is false, if the tests are
    independent or depend on each other positively, as effects against one reference do.

    >>> false_discovery([0.01, math.nan, 0.5, 0.04])
    [0.03, nan, 0.5, 0.06]
    >>> false_discovery([0.01, math.nan, 0.04, 0.03])
    [0.03, nan, 0.04, 0.04]
    """
    p = np.array(p_values, dtype=float)
    order = np.argsort(p, kind="stable")[: int((~np.isnan(p)).sum())]
    q = np.full(len(p), math.nan)
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1)
    return [float(value) for value in q]


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
        for candidate in ranked[start + 1 :]:
            if any(differ(member, candidate) for member in group):
                break
            group.append(candidate)
        if not groups or not set(group) <= set(groups[-1]):
            groups.append(group)
    return groups


def holm_of_defined(p_values: Sequence[float]) -> list[float]:
    """`holm` over those p-values that are defined; NaN stays NaN and counts as no test.

    >>> holm_of_defined([0.01, math.nan, 0.5])
    [0.02, nan, 0.5]
    """
    adjusted = iter(holm([p for p in p_values if not math.isnan(p)]))
    return [p if math.isnan(p) else next(adjusted) for p in p_values]


def tied_letters(groups: Sequence[Sequence[str]], name: str) -> str:
    """Letters of the tied groups that a system is in, A of the first; after Z comes A1.

    >>> tied_letters([["a", "b"], ["b", "c"]], "b"), tied_letters([["a"]], "z")
    ('A B', '')
    """
    letters = (
        chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")
        for number, group in enumerate(groups)
        if name in group
    )
    return " ".join(letters)


def paired_items(
    difference: float, discordance: float, alpha: float = ALPHA, power: float = 0.8
) -> int:
    """Items on which to compare two systems, each right or wrong (Connor 1987).

    difference: of their accuracies, in (0, discordance]; discordance: share of items on which just
    one is right. E.g. 0.05 at 20 % discordance: 621 items. Raises UsageError outside these ranges.
    """
    from scipy.special import ndtri

    if not 0 < abs(difference) <= discordance <= 1:
        raise UsageError(
            f"difference {difference:g} must be within the discordance {discordance:g}",
            code="out-of-range",
        )
    if not 0 < power < 1:
        raise UsageError(f"power {power} is not between 0 and 1", code="out-of-range")
    z = normal_quantile(1 - alpha) + float(ndtri(power))
    return math.ceil(z * z * (discordance - difference**2) / difference**2)
