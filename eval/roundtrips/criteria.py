"""The criteria of ACON as functions of means, so that one bootstrap gives all of their intervals.

Means are over the questions of many rows, shapes (...): shares of answers that are right (a), that
are yes (yes_rate), and of questions whose key is yes (true).
"""

from __future__ import annotations

import numpy as np

from ..stats.bootstrap import Array


def f1_of(hit: Array, false_alarm: Array, miss: Array) -> Array:
    """F1 of the answer yes, from the shares that are rightly yes, wrongly yes and wrongly no.

    NaN if no answer is yes and none should be.
    """
    return share_of(2 * hit, 2 * hit + false_alarm + miss)


def share_of(count: Array, total: Array) -> Array:
    """Share of a total; NaN if the total is 0."""
    return np.asarray(np.where(total > 0, count / np.where(total > 0, total, 1.0), np.nan))


def shuffled_accuracy(yes_rate: Array, true: Array) -> Array:
    """Accuracy of answers scored by the keys of other questions: the score of a judge's bias."""
    yes_rate, true = np.clip(yes_rate, 0, 1), np.clip(true, 0, 1)
    return np.asarray(yes_rate * true + (1 - yes_rate) * (1 - true))


def pearson_of(a: Array, b: Array, joint: Array) -> Array:
    """Pearson's r of two 0/1 outcomes, from both means and the share of ones in both.

    NaN if one of them never changes (ACON, forward equivariance).
    """
    spread = a * (1 - a) * b * (1 - b)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (joint - a * b) / np.sqrt(np.where(spread > 0, spread, np.nan))
    return np.asarray(np.clip(r, -1, 1))


def shuffled_pearson(yes: tuple[Array, Array], no: tuple[Array, Array], true: Array) -> Array:
    """r where each outcome meets that of another row on a question with the same right answer.

    yes, no: both means over the questions that are truly yes, and truly no. It is not 0: a judge
    that always says yes is right, on both sides, on the same questions. r = 1 then shows nothing.
    """
    (a1, b1), (a0, b0) = yes, no
    a, b = true * a1 + (1 - true) * a0, true * b1 + (1 - true) * b0
    between = true * (1 - true) * (a1 - a0) * (b1 - b0)
    return pearson_of(a, b, a * b + between)


def corrected_pearson(r: Array, first: Array, second: Array) -> Array:
    """r without the judge's noise (Spearman 1904): divided by the root of both reliabilities.

    first, second: r of two askings about the same images or texts. NaN unless both are above 0.
    """
    reliability = np.where((first > 0) & (second > 0), first * second, np.nan)
    return np.asarray(r / np.sqrt(reliability))
