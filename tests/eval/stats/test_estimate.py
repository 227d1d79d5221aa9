"""Numbers with their uncertainty: units, text and JSON."""

import math

import pytest

from counterprior.eval.core import Score, without_nan
from counterprior.eval.stats.estimate import Estimate, interval_text, value_text
from counterprior.eval.stats.intervals import NOTHING, Interval

RATE = Estimate(0.787, Interval(0.474, 0.992), n=30, clusters=6, error=0.1, p_value=0.02)


def test_scaling_keeps_what_has_no_unit() -> None:
    percent = RATE.scaled(100)
    assert (percent.value, percent.interval) == (100 * 0.787, (100 * 0.474, 100 * 0.992))
    assert percent.error == pytest.approx(10)
    assert (percent.n, percent.clusters, percent.p_value) == (30, 6, 0.02)


def test_shifting_moves_value_and_interval_alone() -> None:
    moved = RATE.shifted(-1)
    assert (moved.value, moved.interval) == (0.787 - 1, (0.474 - 1, 0.992 - 1))
    assert moved.error == RATE.error


@pytest.mark.parametrize(
    "estimate, unit, text",
    [
        (RATE.scaled(100), "%", "78.7 (47.4 to 99.2)"),
        (RATE, "1", "0.787 (0.474 to 0.992)"),
        (Estimate(0.5), "1", "0.500 (-)"),
        (Estimate(math.nan), "%", "undefined (-)"),
    ],
)
def test_text_of_value_and_interval(estimate: Estimate, unit: str, text: str) -> None:
    assert estimate.text(unit) == text


def test_counts_have_no_decimals() -> None:
    assert value_text(1234.0, "images") == "1,234"
    assert value_text(math.nan, "images", "-") == "-"
    assert interval_text(NOTHING, "%") == "-"


def test_json_has_none_for_what_is_undefined() -> None:
    assert RATE.to_json() == {"value": 0.787, "interval": [0.474, 0.992]}
    assert Estimate(0.5).to_json() == {"value": 0.5, "interval": None}
    assert Estimate(math.nan).to_json() == {"value": None, "interval": None}


def test_score_takes_the_estimate_but_not_its_p_value() -> None:
    score = Score.of(RATE, name="valid", unit="1", n=20)
    assert (score.value, score.interval, score.clusters, score.n) == (0.787, RATE.interval, 6, 20)
    assert math.isnan(score.p_value)
    assert Score.of(RATE, name="flips", unit="1", p_value=0.5).p_value == 0.5


def test_score_writes_the_fields_of_scores_json_in_their_order() -> None:
    score = Score.of(RATE, name="valid", unit="1", excluded={"invalid": 2})
    written = without_nan({"scores": [score]})["scores"][0]
    assert written == score.to_json()
    assert list(written) == (
        "name value interval n unit excluded group wide these_items effective null bounds p_value "
        "q_value warning marks".split()
    )
    assert written["bounds"] == [None, None] and written["excluded"] == {"invalid": 2}
    again = Score.from_json(written)
    assert again.to_json() == written and again.interval == RATE.interval
