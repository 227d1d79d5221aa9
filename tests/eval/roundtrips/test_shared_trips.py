"""Round trips in workers and in shards: the texts, images and verdicts of one process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trip_doubles as doubles

from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.run import Run
from counterprior.eval.studies import runner as studies
from counterprior.eval.studies.runner import run_study
from counterprior.eval.workers.farm import IN_PROCESS, Scale
from counterprior.storage import read_records

HERE = "python:trip_doubles:"
TOLD = "image~teller"


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    doubles.reset()
    monkeypatch.setattr(studies, "read_rows", lambda *_: Rows.of(doubles.rows(2)))
    yield
    doubles.reset()


def study(**changes: Any) -> dict[str, Any]:
    """Runs of texts and of images that share most of their steps."""
    return {
        "data": "the world",
        "suites": {"consistency": {}},
        "captioners": {"teller": f"{HERE}teller?forgets=0.3"},
        "generators": {"hand": f"{HERE}hand?errs=0.2"},
        "editors": {"image": f"{HERE}hand?name=editor", "text": f"{HERE}teller?name=editor"},
        "judges": {"reader": f"{HERE}reader?errs=0.1"},
        "only": [{"generator": name} for name in (TOLD, f"{TOLD}~hand")],
        **changes,
    }


def contents(root: Path) -> dict[str, Any]:
    """What was made and said, whoever wrote it down and when."""
    found: dict[str, Any] = {}
    for path in sorted(root.glob("runs/*/*")):
        found[path.name] = {image.case: image.sha256 for image in Run.open(path).images().values()}
        found[f"verdicts of {path.name}"] = sorted(
            json.dumps({**record, "session": 0}, sort_keys=True)
            for log in path.glob("verdicts/*/verdicts*.jsonl")
            for record in read_records(log)
        )
    found["steps"] = sorted(
        json.dumps(record, sort_keys=True)
        for log in root.glob("steps/steps*.jsonl")
        for record in read_records(log)
    )
    return found


def test_shards_take_every_step_once_and_end_in_the_same(tmp_path: Path) -> None:
    assert not run_study(study(), tmp_path / "one").failures
    alone = Counter(doubles.DID)
    doubles.reset()
    for part in (2, 1):
        assert not run_study(study(), tmp_path / "parts", scale=Scale(shard=(part, 2))).failures
    assert alone == doubles.DID
    assert contents(tmp_path / "parts") == contents(tmp_path / "one")
    assert len(contents(tmp_path / "one")["steps"]) > 10


@pytest.mark.lane
def test_workers_take_the_steps_of_models_that_run_here(tmp_path: Path) -> None:
    assert not run_study(study(), tmp_path / "one", scale=IN_PROCESS).failures
    doubles.reset()
    two = Scale(workers=2)
    assert not run_study(study(), tmp_path / "two", scale=two).failures
    assert not doubles.DID, "nothing is done in the first process"
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


@pytest.mark.lane
def test_a_step_on_which_workers_die_fails_and_the_others_are_taken(tmp_path: Path) -> None:
    cell, _ = doubles.painted(doubles.rows(1)[0].edits[0])
    deadly = study(captioners={"teller": f"{HERE}deadly?tag=1&cell={cell}"})
    assert not run_study(deadly, tmp_path / "one", scale=Scale(workers=2)).failures
    root = tmp_path / "one" / "runs" / "consistency" / TOLD
    wrong = {i.case: i.message for i in Run.open(root).images().values() if i.status != "made"}
    assert set(wrong.values()) == {"3 workers died taking it"}
    assert [case.partition("image_")[2].rpartition("-")[0] for case in wrong] == ["edit_first_1"]
    # Where all of them die, the first process does not try it, too.
    done = run_study(
        study(captioners={"teller": f"{HERE}deadly"}), tmp_path / "all", scale=Scale(2)
    )
    assert {failure.cause[:19] for failure in done.failures} == {"workers died 7 time"}
