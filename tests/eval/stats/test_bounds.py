"""Intervals of quantities that are only bounded."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from counterprior.eval.stats.bounds import bounded_interval
from counterprior.eval.stats.clusters import cluster_interval
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.intervals import NOTHING, Interval


def normal(value: float, error: float, clusters: int = 100) -> Estimate:
    half = 1.959964 * error
    return Estimate(value, Interval(value - half, value + half), clusters=clusters)


def test_without_anything_missing_it_is_the_plain_interval() -> None:
    assert bounded_interval(normal(0.6, 0.02), normal(0.6, 0.02)) == pytest.approx(
        normal(0.6, 0.02).interval, abs=1e-5
    )


def test_far_apart_bounds_are_moved_out_by_a_one_sided_error() -> None:
    low, high = bounded_interval(normal(0.4, 0.02), normal(0.6, 0.01))
    few = bounded_interval(normal(0.4, 0.02, 19), normal(0.6, 0.01, 19))
    assert few == pytest.approx((0.4 - 1.959964 * 0.02, 0.6 + 1.959964 * 0.01), abs=1e-5)
    assert (low, high) == pytest.approx((0.4 - 1.644854 * 0.02, 0.6 + 1.644854 * 0.01), abs=1e-5)


def test_close_bounds_lie_between_both() -> None:
    low, _ = bounded_interval(normal(0.50, 0.02), normal(0.51, 0.02))
    errors = (0.50 - low) / 0.02
    assert 1.70 < errors < 1.90
    # Imbens and Manski's equation, for bounds half an error apart.
    below = (NormalDist().cdf(at) for at in (errors + 0.5, -errors))
    assert next(below) - next(below) == pytest.approx(0.95, abs=1e-6)


def test_nothing_follows_from_an_undefined_estimate() -> None:
    assert bounded_interval(Estimate(math.nan), normal(0.5, 0.1)) is NOTHING
    certain = Estimate(1.0, Interval(0.9, 1.0), clusters=100)
    assert bounded_interval(normal(0.5, 0.0), certain) == (0.5, 1.0)


@pytest.mark.parametrize("right", [0, 1])
def test_holds_a_share_whose_missing_values_are_all_at_one_end(right: int) -> None:
    """A fifth of the values is missing; the bounds without sampling error hold it half the time."""
    rng = np.random.default_rng(8)
    held = plain = 0
    for _ in range(200):
        values = (rng.random(200) < 0.5).astype(float)
        lost = rng.random(200) < 0.2
        worst, best = (
            cluster_interval(np.where(lost, end, values), np.arange(200), (0, 1), resamples=50)[0]
            for end in (0.0, 1.0)
        )
        truth = 0.4 + 0.2 * right
        held += truth in bounded_interval(worst, best)
        plain += worst.value <= truth <= best.value
    assert 0.91 <= held / 200 <= 0.98 and 0.4 <= plain / 200 <= 0.6
