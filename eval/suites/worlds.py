"""Counterfactual worlds: weighted score, gate, and the two ratios (CF-World, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

GATE = 0.5
"""S of L1 from which the group counts: a generator that can't draw the scene says nothing."""


def weighted_score(weights: Sequence[float], answers: Sequence[float]) -> float:
    """S = sum w s / sum w over the three questions, each s in [0, 1]; NaN if one has no answer."""
    total = float(sum(weights))
    if total <= 0 or len(weights) != len(answers):
        raise ValueError(f"{len(weights)} weights for {len(answers)} answers")
    return float(sum(w * s for w, s in zip(weights, answers, strict=True)) / total)


def gated(scores: ArrayLike, gate: float = GATE) -> NDArray[np.float64]:
    """S of L1, L2, L3, shape (n, 3), with L2 and L3 of a group 0 where S of L1 is below the gate.

    A group without a score for L1 can't be gated: its L2 and L3 become NaN.
    """
    result = np.array(scores, dtype=float)
    failed = result[:, 0] < gate
    result[failed, 1:] = np.where(np.isnan(result[failed, 1:]), np.nan, 0.0)
    result[np.isnan(result[:, 0]), 1:] = np.nan
    return result


def premise_ratio(l1: ArrayLike, l2: ArrayLike) -> NDArray[np.float64]:
    """PRR = E[S_L2] / sqrt(E[S_L1]) of mean gated scores, any shape; can exceed 1."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: NDArray[np.float64] = np.asarray(l2, dtype=float) / np.sqrt(
            np.asarray(l1, dtype=float)
        )
        return ratio


def reasoning_ratio(l2: ArrayLike, l3: ArrayLike) -> NDArray[np.float64]:
    """RRR = E[S_L3] / sqrt(E[S_L2]), like `premise_ratio` one level up."""
    return premise_ratio(l2, l3)
