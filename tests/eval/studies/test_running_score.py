"""The score of a cell that is filling: its interval holds at all moments at once."""

import json
import math
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_doubles as doubles
import yaml
from scipy.stats import binom

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.data import random_rank
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.running import score_so_far
from counterprior.eval.studies.status import study_status
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.base import Headline

Cli = Callable[..., subprocess.CompletedProcess[str]]
LOOKS = (2, 4, 8, 15, 30, 60)


def outcomes_of_laws(seed: int, suite: str, truth: float) -> list[list[Outcome]]:
    """60 clusters of 1 to 8 images; those of a cluster are nearly alike, and some are invalid where
    they would have been wrong."""
    rng = np.random.default_rng(seed)
    labels, question = {
        "t2i_correctness": (("correct", "wrong"), "arrangement"),
        "t2i_homogenization": (("first_left", "first_right"), "order"),
    }[suite]
    clusters = []
    for number in range(60):
        rate = float(rng.beta(truth, 1 - truth))
        outcomes = []
        for image in range(int(rng.integers(1, 9))):
            right = rng.random() < rate
            lost = not right and rng.random() < 0.2
            label = "invalid" if lost else labels[0 if right else 1]
            case = Case(f"r{number}-{image}", "reverse", 0, 0, "", (f"c{number}",))
            outcomes.append(Outcome(case, {(question, "original"): Verdict(label)}))
        clusters.append(outcomes)
    return clusters


def looks(headline: Headline, clusters: Sequence[Sequence[Outcome]]) -> list[Any]:
    return [score_so_far(headline, clusters[:n], 8, "%") for n in LOOKS]


@pytest.mark.parametrize(
    ("suite", "truth", "score"),
    [("t2i_correctness", 0.7, 70.0), ("t2i_correctness", 0.05, 5.0)],
)
def test_the_truth_is_inside_at_all_moments_at_once(suite: str, truth: float, score: float) -> None:
    """Valid and right, of all that are asked: what is excluded may be anything."""
    headline = open_suite(suite).headline
    missed = [
        any(not s.interval.low <= score <= s.interval.high for s in looks(headline, clusters))
        for clusters in (outcomes_of_laws(seed, suite, truth) for seed in range(25))
    ]
    assert sum(missed) <= binom.ppf(0.999, 25, 0.05)


def test_the_interval_narrows_and_holds_both_ends_of_what_is_excluded() -> None:
    headline = open_suite("t2i_correctness").headline
    scores = looks(headline, outcomes_of_laws(0, "t2i_correctness", 0.7))
    widths = [score.interval.high - score.interval.low for score in scores]
    assert widths[-1] < 60 < widths[0] and scores[-1].clusters == 60
    last = scores[-1]
    lost = last.excluded["missing"]
    assert last.interval.low < 100 * 0.01 * last.value * last.n / (last.n + lost)
    assert last.interval.high > (last.value * last.n + 100 * lost) / (last.n + lost)
    assert math.isnan(score_so_far(headline, [], 1, "%").value)


def study_file(data: Path, limit: int = 12) -> dict[str, Any]:
    plain = doubles.study_file(data, {"t2i_homogenization": {"limit": limit}}, painters=["red"])
    return plain | {"unchecked": True}


def test_the_status_has_a_score_of_the_clusters_that_are_done(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    asked = 0

    def stop() -> None:
        nonlocal asked
        asked += 1
        if asked > 24 + 15:  # after all images and 15 answers
            raise KeyboardInterrupt

    doubles.BEFORE.append(stop)
    with pytest.raises(KeyboardInterrupt):
        run_study(study_file(text_release), tmp_path / "s")
    doubles.reset()
    (cell,) = study_status(Study.open(tmp_path / "s"), scores=True)
    assert cell.state == "verdicts" and cell.running is not None
    part = cell.running
    assert part.name == "hom" and 2 <= part.clusters < 12 and part.unit == "%"
    assert 0 <= part.interval.low <= part.value <= part.interval.high <= 100
    # In random order, whatever that of the release.
    study = Study.open(tmp_path / "s")
    run = study.run_of(study.cells[0])
    assert run is not None
    order = list(dict.fromkeys(case.clusters[0] for case in run.cases()))
    assert order == sorted(order, key=random_rank) != sorted(order)
    run_study(study_file(text_release), tmp_path / "s")
    status = json.loads(cli("study", "status", tmp_path / "s", "--json").stdout)
    assert status[0]["running"]["clusters"] == len(order) and status[0]["state"] == "done"
    shown = cli("study", "status", tmp_path / "s").stdout
    assert "score so far" in shown and f"{len(order)} clusters" in " ".join(shown.split())
    # Cases of an older run, in the order of the release: nothing can be promised.
    path = run.root / "cases.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in sorted(lines)))
    (cell,) = study_status(Study.open(tmp_path / "s"), scores=True)
    assert cell.state == "done" and cell.running is None
    assert "score so far" not in cli("study", "status", tmp_path / "s").stdout


def test_a_study_that_is_waiting_has_no_score(text_release: Path, tmp_path: Path) -> None:
    path = tmp_path / "s" / "study.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(study_file(text_release)))
    (cell,) = study_status(Study.open(tmp_path / "s"), scores=True)
    assert cell.state == "waiting" and cell.running is None
