"""Differences of two runs whose missing answers could be anything."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from counterprior.eval.results.leaderboard import paired
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.base import Headline, Item, Items

ACCURACY = open_suite("t2i_correctness").headline
HOM = open_suite("t2i_homogenization").headline


def items(n: int, value: Callable[[int], float]) -> Items:
    return {str(k): Item((value(k),), f"pair{k // 2}") for k in range(n)}


def share_called_different(first: Callable[..., Items], second: Callable[..., Items]) -> float:
    different = 0
    for seed in range(60):
        rng = random.Random(seed)
        different += paired(first(rng), second(rng), ACCURACY).p_value < 0.05
    return different / 60


def honest(rng: random.Random, rate: float = 0.6) -> Items:
    return items(160, lambda _: float(rng.random() < rate))


def abstaining(rng: random.Random) -> Items:
    """As often right; nine of ten wrong images can't be judged."""

    def value(_: int) -> float:
        right = rng.random() < 0.6
        return 1.0 if right else math.nan if rng.random() < 0.9 else 0.0

    return items(160, value)


def test_images_that_cannot_be_judged_win_no_letter() -> None:
    """Paired on what both have, the abstaining generator is surely better in all simulations."""
    assert share_called_different(abstaining, honest) <= 0.05
    assert share_called_different(honest, honest) <= 0.1
    assert share_called_different(lambda rng: honest(rng, 0.85), honest) > 0.9


def test_the_interval_reaches_from_the_worst_case_to_the_best() -> None:
    both = items(40, lambda k: float(k % 4 > 0))
    gaps = items(40, lambda k: math.nan if k % 4 == 0 else 1.0)
    estimate = paired(gaps, both, ACCURACY)
    assert estimate.n == 30 and estimate.value == 0
    assert estimate.interval.low < 0 and estimate.interval.high > 0.25 and estimate.p_value == 1
    mirrored = paired(both, gaps, ACCURACY)
    assert mirrored.interval == pytest.approx(
        (-estimate.interval.high, -estimate.interval.low), abs=0.01
    )


def test_a_magnitude_may_be_least_between_the_ends() -> None:
    """Hom of 10 answered left and 90 open images is anything from 0 to 100."""
    open_images = items(100, lambda k: 1.0 if k < 10 else math.nan)
    unbiased = items(100, lambda k: 1.0 if k % 2 else -1.0)
    low, high = paired(open_images, unbiased, HOM).interval
    assert low <= 0 and high > 0.85


def test_complete_runs_are_compared_as_before() -> None:
    headline = Headline("s", "higher", "", lambda outcomes: {}, (0.0, 1.0))
    a, b = items(80, lambda k: float(k % 2)), items(80, lambda k: float(k % 4 == 1))
    estimate = paired(a, b, headline)
    assert estimate.value == 0.25 and estimate.p_value < 0.05
    assert np.isclose(paired(b, a, headline).interval.low, -estimate.interval.high, atol=0.01)
