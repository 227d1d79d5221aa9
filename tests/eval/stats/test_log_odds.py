"""Effects within pairs, and differences between them, on known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from counterprior.eval.stats.log_odds import MOST, conditional_log_odds
from counterprior.eval.stats.spread import mean_product, spread


def drawn(
    rng: np.random.Generator, bias: float, preference_sd: float, pairs: int, seeds: int
) -> tuple[np.ndarray, ...]:
    """Follows, orders, strata and clusters of images of pairs of 60 entities, a tenth invalid."""
    first = rng.integers(0, 60, pairs)
    second = (first + rng.integers(1, 60, pairs)) % 60
    preference = preference_sd * rng.normal(size=pairs)
    logits = np.stack([bias + preference, bias - preference])[:, None, :]
    follows = (rng.random((2, seeds, pairs)) < 1 / (1 + np.exp(-logits))).astype(float)
    follows[rng.random(follows.shape) < 0.1] = math.nan
    orders = np.broadcast_to(np.arange(2)[:, None, None], follows.shape)
    strata = np.broadcast_to(np.arange(pairs), follows.shape)
    members = np.stack([first, second], axis=1)[strata.ravel()]
    return follows.ravel(), orders.ravel(), strata.ravel(), members


def test_preferences_of_pairs_change_the_share_that_follows_and_not_the_log_odds() -> None:
    rng = np.random.default_rng(0)
    estimates, shares = {}, {}
    for bias in (1.0, 2.0):
        for preference_sd in (0.0, 3.0):
            data = drawn(rng, bias, preference_sd, pairs=3000, seeds=4)
            estimates[bias, preference_sd] = conditional_log_odds(*data)
            shares[bias, preference_sd] = 2 * np.nanmean(data[0]) - 1
    for (bias, _), estimate in estimates.items():
        assert estimate.value == pytest.approx(bias, abs=0.08) and bias in estimate.interval
    assert shares[1, 0] == pytest.approx(0.46, abs=0.03)
    assert shares[1, 3] == pytest.approx(0.23, abs=0.03)


def test_intervals_of_log_odds_hold_the_truth() -> None:
    rng = np.random.default_rng(1)
    for bias, preference_sd, seeds in ((0.0, 1.0, 1), (1.0, 2.0, 4), (2.0, 0.0, 1)):
        estimates = [
            conditional_log_odds(*drawn(rng, bias, preference_sd, 100, seeds)) for _ in range(60)
        ]
        assert sum(bias in e.interval for e in estimates) >= 54, (bias, preference_sd)


def test_only_pairs_with_both_kinds_of_images_inform() -> None:
    follows = [1, 1, 1, 0, 0, 1, math.nan, 1]
    orders, strata = [0, 1] * 4, [0, 0, 1, 1, 2, 2, 3, 3]
    estimate = conditional_log_odds(follows, orders, strata, strata)
    assert estimate.n == 1
    assert estimate.excluded == {"same_side_in_both_orders": 2, "not_valid_in_both_orders": 1}
    # One pair follows both: log(1.5 / 0.5) / 2, and nothing bounds it from above.
    assert estimate.value == pytest.approx(math.log(3) / 2)
    assert estimate.interval.low < 0 and estimate.interval.high == MOST
    nothing = conditional_log_odds(follows[2:], orders[2:], strata[2:], strata[2:])
    assert math.isnan(nothing.value) and nothing.n == 0


@pytest.mark.parametrize(("logit_sd", "seeds"), [(0.0, 2), (1.0, 2), (3.0, 4)])
def test_spread_is_that_of_true_means_and_not_of_few_seeds(logit_sd: float, seeds: int) -> None:
    rng = np.random.default_rng(2)
    held, naive = 0, 0
    for _ in range(40):
        means = np.tanh((0.5 + logit_sd * rng.normal(size=300)) / 2)
        signs = np.where(rng.random((seeds, 300)) < (1 + means) / 2, 1.0, -1.0)
        total, count = signs.sum(axis=0), np.full(300, seeds)
        products = mean_product(total, count, count)
        estimate = spread(products, total / seeds, np.arange(300))
        held += float(means.std()) * (logit_sd > 0) in estimate.interval
        naive += float(np.std(total / seeds)) in estimate.interval
    assert held >= 36 and naive < 20
    assert math.isnan(spread([1.0], [1.0], [0]).value)


def test_a_spread_over_few_clusters_has_a_warning() -> None:
    values = np.linspace(-0.5, 0.5, 24)
    assert spread(values**2, values, np.arange(24) % 11).warning.startswith("fewer than 12")
    assert not spread(values**2, values, np.arange(24) % 12).warning
