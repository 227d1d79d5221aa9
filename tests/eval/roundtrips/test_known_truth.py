"""A teller that forgets and a hand that errs, by a set share: the criteria recover both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trip_doubles as doubles

from counterprior.eval.core import Score
from counterprior.eval.engine.data import Rows
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.table import study_table

HERE = "python:trip_doubles:"
ROWS = 9


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    doubles.reset()
    monkeypatch.setattr(studies, "read_rows", lambda *_: Rows.of(doubles.rows(ROWS)))
    yield
    doubles.reset()


def study() -> dict[str, Any]:
    return {
        "data": "the world",
        "suites": {"consistency": {}},
        "captioners": {"forgetful": f"{HERE}teller?forgets=0.3&alike=0.6&name=absent"},
        "generators": {"clumsy": f"{HERE}hand?errs=0.2"},
        "editors": {"image": f"{HERE}hand", "text": f"{HERE}teller"},
        "judges": {"reader": f"{HERE}reader"},
        "table": {
            "title": "Two runs at a time",
            "lines": {
                "alone": {"generator": "image~forgetful"},
                "both": {"generator": "image~forgetful~clumsy"},
            },
            "columns": [
                {"label": "r", "suite": "consistency", "score": "forward:nobody|forgetful"},
                {"label": "own", "suite": "consistency", "score": "own_errors:cyclic"},
            ],
        },
    }


def scores(root: Path, run: str) -> dict[str, Score]:
    (judged,) = score_run(root / "runs" / "consistency" / run, ScoreSettings(groups=False))
    return judged.whole


def stop_after(calls: int) -> None:
    """Ends the process, as it were, after so many calls of models."""

    def stop() -> None:
        if doubles.DID.total() == calls:
            raise KeyboardInterrupt

    doubles.BEFORE[:] = [stop]


@pytest.mark.slow
def test_criteria_recover_rates_of_forgetful_captioner_and_clumsy_generator(tmp_path: Path) -> None:
    for calls in (40, 300):  # telling and drawing; judging
        stop_after(calls)
        with pytest.raises(KeyboardInterrupt):
            run_study(study(), tmp_path)
    doubles.BEFORE.clear()
    done = run_study(study(), tmp_path)
    assert not done.failures
    # Nothing was asked for twice, though the same captions serve several runs.
    assert set(doubles.DID.values()) == {1}
    told = [what for what in doubles.DID if what.startswith("tell absent")]
    assert ROWS * 4 < len(told) <= ROWS * (1 + 3 + 1 + 3)  # equal images are one
    p, q = 0.3, 0.2
    kept, drawn = 1 - p, 1 - q
    # Forgotten cells are grey: half of the ten questions, those answered no, are right anyway.
    there_and_back = kept * drawn + p / 2
    truth = {
        ("image", "given"): 1.0,
        ("text", "given"): 1.0,
        ("image~forgetful~clumsy", "cyclic"): there_and_back,
        ("text~clumsy~forgetful", "cyclic"): there_and_back,
        # Green or not: wrong cells are red or blue, so that an error shows in the first question,
        # and in half of the second ones.
        ("image~forgetful", "edit_first"): kept + p / 2,
        ("image~forgetful", "edit_last"): kept + p / 2,
        ("text~clumsy", "edit_last"): 1.0,
    }
    for (run, name), share in truth.items():
        found = scores(tmp_path, run)[name]
        assert found.interval.low <= 100 * share <= found.interval.high, (run, name, found)
    a = (kept + 1) / 2
    both = (kept**2 + 0.6 * p * kept + 1) / 2
    r = (both - a * a) / (a * (1 - a))
    forward = scores(tmp_path, "image~forgetful")
    assert forward["forward"].interval.low <= r <= forward["forward"].interval.high
    # Recovered by the shares alone: what is left of each model's own facts.
    clumsy = scores(tmp_path, "text~clumsy")
    drawn_first = clumsy["edit_first"]
    assert drawn_first.value < clumsy["edit_last"].value == 100
    assert drawn_first.interval.low <= 100 * (1 - q * 3 / 4) <= drawn_first.interval.high
    # Scores of a table that take two runs: here the other model is the same one, and the judge
    # makes no mistake about the start.
    alone, together = study_table(done.study).lines
    assert alone.cells[0].score is not None and alone.cells[1].score is None
    assert alone.cells[0].score.value == forward["forward"].value
    assert together.cells[0].score is None and together.cells[1].score is not None
    assert together.cells[1].score.value == 0 and together.cells[1].score.n > 10
