"""Is a change small enough, or only not shown to be large?

A large p-value against "no change" says little: few items give it, too. Equivalence and
non-inferiority test the opposite hypothesis, that the change is at least as large as a margin that
was stated before (two one-sided tests, Schuirmann 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .comparison import ALPHA, holm_of_defined
from .estimate import Estimate
from .intervals import student_quantile

EQUIVALENT = "equivalent"
NOT_WORSE = "not worse"
LOST = "lost"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class LossClaim:
    """What a gain, negative for a loss, is shown to be against a margin, at 5 %."""

    verdict: str
    """`equivalent`: between -margin and margin; `not worse`: above -margin; `lost`: below -margin;
    `undecided`: none of them is shown."""
    p_value: float
    """Of the verdict's test, after Holm; of non-inferiority if undecided. NaN without an
    interval."""


def claims(
    gains: Sequence[Estimate], margin: float, unsigned: Sequence[bool] | None = None
) -> list[LossClaim]:
    """Claims about gains that are tested together; each test is adjusted by Holm over the gains.

    unsigned: whether a gain is a difference of two magnitudes of which one may be 0. The data
    choose the sign of that one, so that either sign could have made the claim: p is doubled.
    """
    tests = [1 + is_unsigned for is_unsigned in unsigned or [False] * len(gains)]

    def beyond(bound: float, side: int) -> list[float]:
        return [
            min(1.0, n * p) if (p := _beyond(gain, bound, side)) == p else p
            for n, gain in zip(tests, gains, strict=True)
        ]

    worse, better = beyond(-margin, 1), beyond(margin, -1)
    not_worse = holm_of_defined(worse)
    equivalent = holm_of_defined([max(pair) for pair in zip(worse, better, strict=True)])
    lost = holm_of_defined(beyond(-margin, -1))
    return [_claim(*p_values) for p_values in zip(equivalent, not_worse, lost, strict=True)]


def _claim(equivalent: float, not_worse: float, lost: float) -> LossClaim:
    for verdict, p_value in ((EQUIVALENT, equivalent), (NOT_WORSE, not_worse), (LOST, lost)):
        if p_value <= ALPHA:
            return LossClaim(verdict, p_value)
    return LossClaim(UNDECIDED, not_worse)


def _beyond(gain: Estimate, bound: float, side: int) -> float:
    """One-sided p-value of a quantity that is above the bound (side 1), or below it (-1), against
    the hypothesis that it is not.

    Student's t, with the standard error from the end of the 95 % interval on the bound's side, so
    that p is 0.025 where the interval ends at the bound. NaN without an interval.
    """
    from scipy.special import stdtr

    end = gain.interval.low if side > 0 else gain.interval.high
    if math.isnan(gain.value) or math.isnan(end):
        return math.nan
    freedom = max(1.0, gain.clusters - 1) if gain.clusters else 1e9
    distance, reach = side * (gain.value - bound), side * (gain.value - end)
    if reach <= 0:
        return float(distance <= 0)
    return float(stdtr(freedom, -distance / reach * student_quantile(freedom)))
