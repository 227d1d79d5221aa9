"""Claims about losses: wrong in at most 5 % of experiments, and made with enough items."""

from __future__ import annotations

import math

import numpy as np
import pytest

from counterprior.eval.stats.equivalence import claims
from counterprior.eval.stats.estimate import Estimate
from counterprior.eval.stats.intervals import NOTHING, Interval, student_quantile
from counterprior.eval.stats.means import cluster_mean

MARGIN = 0.3


def verdicts(gain: float, groups: int, count: int) -> list[str]:
    """Verdicts about means of 4 items in each of some clusters whose true value is known."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), 4)
    found = []
    for _ in range(count):
        values = gain + 0.5 * rng.normal(size=groups)[labels] + rng.normal(size=4 * groups)
        found += [claims([cluster_mean(values, labels)], MARGIN)[0].verdict]
    return found


def share(found: list[str], *wanted: str) -> float:
    return sum(verdict in wanted for verdict in found) / len(found)


def test_a_loss_as_large_as_the_margin_is_rarely_called_none() -> None:
    at_margin = verdicts(-MARGIN, groups=30, count=400)
    assert share(at_margin, "equivalent", "not worse") < 0.085
    assert share(at_margin, "lost") < 0.085
    assert share(verdicts(MARGIN, groups=30, count=400), "equivalent") < 0.085


def test_no_change_is_shown_with_many_items_and_undecided_with_few() -> None:
    assert share(verdicts(0, groups=120, count=50), "equivalent") > 0.9
    assert share(verdicts(0, groups=8, count=50), "undecided") > 0.5
    assert share(verdicts(-1, groups=60, count=50), "lost") == 1
    assert share(verdicts(1, groups=60, count=50), "not worse") == 1


def test_p_is_that_of_the_printed_interval() -> None:
    reach = 0.1 * student_quantile(19)
    gain = Estimate(0.0, Interval(-reach, 2 * reach), clusters=20)
    (at_end,) = claims([gain], reach)
    assert (at_end.verdict, at_end.p_value) == ("not worse", pytest.approx(0.025))
    (wide,) = claims([gain], 2 * reach)
    assert (wide.verdict, wide.p_value) == ("equivalent", pytest.approx(0.025))
    (unsigned,) = claims([gain], reach, [True])
    assert unsigned.p_value == pytest.approx(0.05)
    first, second = claims([gain, gain], reach)
    assert first.p_value == second.p_value == pytest.approx(0.05)
    (undefined,) = claims([Estimate(math.nan, NOTHING)], reach)
    assert undefined.verdict == "undecided" and math.isnan(undefined.p_value)
    (constant,) = claims([Estimate(0.0, Interval(0.0, 0.0), clusters=9)], reach)
    assert (constant.verdict, constant.p_value) == ("equivalent", 0)
