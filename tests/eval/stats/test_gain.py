"""The gain from shares of captions to shares of images."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmark_files import BENCHMARKS, opened
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.stats.clusters import cluster_interval, jackknife_interval
from counterprior.eval.stats.gain import LEAST, MOST, Doses, fitted_log_gain, with_gain

simulated = opened(BENCHMARKS / "replicates.py")


def of(seed: int = 0, gain: float = 2.0, images: int = 2) -> Doses:
    doses: Doses = simulated.doses(np.random.default_rng(seed), gain, 0.1, 0.0, images)
    return doses


@pytest.mark.parametrize("gain", [0.3, 1.0, 2.5, 15.0])
def test_a_planted_gain_is_fitted(gain: float) -> None:
    captions = [0.6, 0.75, 0.2]
    images = with_gain(gain, captions)
    assert fitted_log_gain(images, captions) == pytest.approx(math.log(gain), abs=1e-6)
    assert float(with_gain(gain, 0.5)) == 0.5


def test_a_gain_beyond_what_can_be_told_is_at_the_end() -> None:
    ends = np.exp(fitted_log_gain([[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]], [0.6, 0.9]))
    assert ends == pytest.approx([MOST, LEAST, LEAST])


@pytest.mark.slow
def test_intervals_hold_the_gain_and_one_more_training() -> None:
    held = simulated.doses_hold(np.random.default_rng(3), 1.5, 0.2, 0.3, 2, 24).mean(axis=0)
    assert min(held[:2]) >= 0.9 and 10 < held[2] < 90 and held[3] <= 0.1


def test_the_interval_of_one_more_training_is_wider() -> None:
    doses = of()
    low, high = (2 * with_gain(g, 0.872) - 1 for g in doses.gain().interval)
    predicted = doses.predicted(0.872)
    assert predicted.interval.low < low < predicted.value < high < predicted.interval.high
    assert predicted.n == 12 * 2 * 2 * 3 * 3 and doses.gain().clusters == 12


def test_a_share_is_predicted_without_its_own_condition() -> None:
    doses = of()
    opposite = replace(doses, signs=doses.signs * np.where(np.arange(6) // 2 == 1, -1, 1))
    assert doses.predicted(0.75) == opposite.predicted(0.75)
    assert doses.predicted(0.9) != opposite.predicted(0.9)
    error, wrong = doses.error(0.75), opposite.error(0.75)
    assert 0 in error.interval and wrong.interval.high < -0.5
    seen = np.nanmean(doses.signs, axis=0)[2:4].mean()
    assert error.value == pytest.approx(seen - doses.predicted(0.75).value)


def test_the_jackknife_of_a_mean_has_the_error_of_the_cluster_interval() -> None:
    doses = of()
    values = doses.signs[:, :1]
    (expected,) = cluster_interval(values, doses.members, (-1.0, 1.0))
    own = jackknife_interval(values, doses.members, (-1.0, 1.0), np.asarray)
    assert (own.value, own.n) == (pytest.approx(expected.value), expected.n)
    assert own.error == pytest.approx(expected.error, rel=0.02)
    assert math.isnan(jackknife_interval(values * np.nan, doses.members, (-1, 1), np.asarray).value)


def test_entities_without_partners_have_a_gain_too() -> None:
    pairs = of()
    alone = replace(pairs, members=pairs.members[:, :1])
    assert alone.gain().value == pairs.gain().value
    assert alone.gain().interval.low < 2 < alone.gain().interval.high


def test_shares_that_say_nothing_are_refused() -> None:
    doses = of()
    for share in (0.0, 0.5, 1.0, 1.2, math.nan):
        with raises("out-of-range", f"{100 * share:g}", error=UsageError):
            doses.predicted(share)
        with raises("out-of-range", f"{100 * share:g}", error=UsageError):
            replace(doses, captions=(0.6, share, 0.9))
    with raises("unknown-name", "60, 75, 90", error=UsageError):
        doses.error(0.8)
    alone = replace(doses, captions=(0.75,), signs=doses.signs[:, 2:4])
    with raises("nothing-to-do", "none", error=UsageError):
        alone.predicted(0.75)
