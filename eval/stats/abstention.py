"""Risk and coverage of a judge that may abstain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class RiskCoverage(NamedTuple):
    """Error among the accepted items, as fewer and fewer are accepted."""

    threshold: NDArray[np.float64]
    """Shape (k,), falling: items with at least this confidence are accepted."""
    coverage: NDArray[np.float64]
    """Shape (k,): share of accepted items, in (0, 1]."""
    risk: NDArray[np.float64]
    """Shape (k,): share of errors among them, in [0, 1]."""

    @property
    def area(self) -> float:
        """Mean risk over coverage (AURC; lower is better); NaN without items."""
        if not len(self.risk):
            return float("nan")
        steps = np.diff(self.coverage, prepend=0.0)
        return float(steps @ self.risk)


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> RiskCoverage:
    """The curve of a selective judge (El-Yaniv, Wiener 2010); both of shape (n,).

    Items of equal confidence are accepted or rejected together. Items without a confidence (NaN)
    count in the coverage's denominator and are never accepted.
    """
    scores = np.asarray(confidence, dtype=float)
    right = np.asarray(correct, dtype=bool)
    finite = ~np.isnan(scores)
    order = np.argsort(-scores[finite], kind="stable")
    ranked, wrong = scores[finite][order], ~right[finite][order]
    if not len(ranked):
        empty = np.empty(0)
        return RiskCoverage(empty, empty, empty)
    accepted = np.arange(1, len(ranked) + 1)
    last = np.append(ranked[1:] != ranked[:-1], True)
    risk = np.cumsum(wrong)[last] / accepted[last]
    return RiskCoverage(ranked[last], accepted[last] / len(scores), risk)
