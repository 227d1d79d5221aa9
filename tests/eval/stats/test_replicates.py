"""Intervals over trainings, and Page's test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.intervals import Interval
from counterprior.eval.stats.replicates import ONE_TRAINING, over_replicates, page_trend

POOLED = Estimate(0.5, Interval(0.3, 0.6), n=96, clusters=12)


def test_both_distances_add_in_squares() -> None:
    values = [0.4, 0.5, 0.6]
    reach = 4.302653 * 0.1 / math.sqrt(3)
    low, high = over_replicates(POOLED, values, (-1.0, 1.0)).interval
    assert low == pytest.approx(0.5 - math.hypot(0.2, reach))
    assert high == pytest.approx(0.5 + math.hypot(0.1, reach))
    assert over_replicates(POOLED, values, (0.45, 0.55)).interval == (0.45, 0.55)
    further = over_replicates(POOLED, values, (-1.0, 1.0), one_more=True).interval
    assert further.low == pytest.approx(0.5 - math.hypot(0.2, 2 * reach))  # 1 / 3 + 1 is 4 / 3
    alike = over_replicates(POOLED, [0.5, 0.5], (-1.0, 1.0))
    assert alike.interval == pytest.approx(POOLED.interval) and not alike.warning


def test_one_training_says_what_it_lacks() -> None:
    for values in ([0.5], [0.5, math.nan]):
        alone = over_replicates(POOLED, values, (-1.0, 1.0))
        assert alone.interval == POOLED.interval and alone.warning == ONE_TRAINING
    assert math.isnan(over_replicates(Estimate(math.nan), [0.1, 0.2], (-1, 1)).value)


def test_a_trend_s_p_value_is_the_share_of_orders_as_extreme() -> None:
    rising = page_trend([[1, 2, 3, 4], [0, 5, 6, 9]])
    assert (rising.value, rising.n) == (pytest.approx(1), 8)
    assert rising.p_value == pytest.approx(2 / math.factorial(4) ** 2)
    falling = page_trend([[4, 3, 2, 1], [9, 6, 5, 0]])
    assert falling.value == pytest.approx(-1) and falling.p_value == rising.p_value
    mixed = page_trend([[1, 3, 2], [2, 1, 3]])
    orders = [*itertools.permutations((1, 2, 3))]
    sums = [np.dot(a, (1, 2, 3)) + np.dot(b, (1, 2, 3)) for a in orders for b in orders]
    seen = np.dot((1, 3, 2), (1, 2, 3)) + np.dot((2, 1, 3), (1, 2, 3))
    assert mixed.p_value == pytest.approx(np.mean([abs(s - 24) >= abs(seen - 24) for s in sums]))
    assert page_trend([[1, 1, 1]]).p_value == 1 and page_trend([[1, 1, 1]]).value == 0
    for nothing in ([[1.0]], [[1.0, math.nan]]):
        assert math.isnan(page_trend(nothing).value)


def test_no_trend_is_seldom_called_one() -> None:
    rng = np.random.default_rng(5)
    p_values = [page_trend(rng.normal(size=(3, 5))).p_value for _ in range(120)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.1
    slopes = rng.normal(size=(40, 3, 5)) + 1.0 * np.arange(5)
    assert np.mean([page_trend(rows).p_value <= 0.05 for rows in slopes]) > 0.9
