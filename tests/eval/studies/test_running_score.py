"""The score of a cell that is filling: its interval holds at all moments at once."""

import json
import math
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_doubles as doubles
import yaml
from scipy.stats import binom

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.data import random_rank
from counterprior.eval.stats.intervals import Interval
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.running import always_valid_interval
from counterprior.eval.studies.status import study_status
from counterprior.eval.suites import open_suite
from counterprior.eval.suites.base import Headline, case_items
from counterprior.eval.suites.correctness import RIGHT

Cli = Callable[..., subprocess.CompletedProcess[str]]
LOOKS = (2, 4, 8, 15, 30, 60)


def outcomes_of_laws(seed: int, suite: str, truth: float) -> list[list[Outcome]]:
    """60 clusters of 4 to 16 images; those of a cluster are nearly alike, and some wrong ones
    are invalid."""
    rng = np.random.default_rng(seed)
    labels, question = {
        "t2i_correctness": (("correct", "wrong"), "arrangement"),
        "t2i_homogenization": (("first_left", "first_right"), "order"),
    }[suite]
    clusters = []
    for number in range(60):
        rate = float(rng.beta(0.2 * truth, 0.2 * (1 - truth)))
        outcomes = []
        for image in range(int(rng.integers(4, 17))):
            right = rng.random() < rate
            lost = not right and rng.random() < 0.05
            label = "invalid" if lost else labels[0 if right else 1]
            case = Case(f"r{number}-{image}", "reverse", 0, 0, "", (f"c{number}",))
            outcomes.append(Outcome(case, {(question, "original"): Verdict(label)}))
        clusters.append(outcomes)
    return clusters


def correctness() -> Headline:
    """What is valid, so that what is not is excluded."""
    items = case_items("arrangement", RIGHT)
    return replace(open_suite("t2i_correctness").headline, items=items)


def looks(headline: Headline, clusters: Sequence[Sequence[Outcome]]) -> list[Interval]:
    return [always_valid_interval(headline, clusters[:n], 16) for n in LOOKS]


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.7, 0.05])
def test_the_truth_is_inside_at_all_moments_at_once(truth: float) -> None:
    """Clusters as they are; as if each item were one, it is outside far too often."""
    headline = correctness()
    missed = {True: 0, False: 0}
    for seed in range(25):
        clusters = outcomes_of_laws(seed, "t2i_correctness", truth)
        intervals = looks(headline, clusters)
        missed[True] += any(truth not in interval for interval in intervals)
        single = [[outcome] for cluster in clusters for outcome in cluster]
        intervals = [always_valid_interval(headline, single[:n], 1) for n in (40, 120, 300, 600)]
        missed[False] += any(truth not in interval for interval in intervals)
    assert missed[True] <= binom.ppf(0.999, 25, 0.05)
    assert missed[False] > missed[True]


@pytest.mark.slow
def test_a_magnitude_of_two_means_is_inside_at_all_moments() -> None:
    """The order bias of a generator without any: its size is 0, and its means are not."""
    headline = open_suite("t2i_homogenization").headline
    missed = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        pairs = []
        for number in range(60):
            favorite = rng.random() < 0.9  # the entity that stands left, whatever the order
            labels = ("first_left", "first_right") if favorite else ("first_right", "first_left")
            pairs.append(
                [
                    Outcome(
                        Case(f"r{number}", variant, 0, 0, "", (f"c{number}",)),
                        {("order", "original"): Verdict(label)},
                    )
                    for variant, label in zip(("plain", "swapped"), labels, strict=True)
                ]
            )
        intervals = [always_valid_interval(headline, pairs[:n], 1) for n in LOOKS]
        missed += any(interval.low > 0 for interval in intervals)
        assert intervals[-1].high < 0.5 < intervals[0].high <= 1
    assert missed <= 2


def test_the_interval_narrows_and_holds_both_ends_of_what_is_excluded() -> None:
    headline = correctness()
    clusters = outcomes_of_laws(0, "t2i_correctness", 0.7)
    widths = [interval.high - interval.low for interval in looks(headline, clusters)]
    assert widths[-1] < 0.6 < widths[0]
    values = np.array([RIGHT.of(o.verdict("arrangement")) for c in clusters for o in c])
    assert np.isnan(values).sum() > 5
    low, high = looks(headline, clusters)[-1]
    assert (
        low < np.nan_to_num(values, nan=0.0).mean() < np.nan_to_num(values, nan=1.0).mean() < high
    )
    assert math.isnan(always_valid_interval(headline, [], 1).low)


def study_file(data: Path, limit: int = 12) -> dict[str, Any]:
    plain = doubles.study_file(data, {"t2i_homogenization": {"limit": limit}}, painters=["red"])
    return plain | {"unchecked": True}


@pytest.mark.slow
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
    assert part.name == "order_bias" and 2 <= part.clusters < 12 and part.unit == "%"
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
    header = json.loads((run.root / "run.json").read_text())
    del header["cases_sha256"]
    (run.root / "run.json").write_text(json.dumps(header))
    (cell,) = study_status(Study.open(tmp_path / "s"), scores=True)
    assert cell.state == "done" and cell.running is None
    assert "score so far" not in cli("study", "status", tmp_path / "s").stdout


def test_a_study_that_is_waiting_has_no_score(text_release: Path, tmp_path: Path) -> None:
    path = tmp_path / "s" / "study.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(study_file(text_release)))
    (cell,) = study_status(Study.open(tmp_path / "s"), scores=True)
    assert cell.state == "waiting" and cell.running is None


def test_a_cluster_of_which_everything_is_excluded_counts_for_nothing() -> None:
    clusters = outcomes_of_laws(1, "t2i_correctness", 0.7)[:20]
    interval = always_valid_interval(correctness(), clusters, 16)
    assert always_valid_interval(correctness(), [[], *clusters, []], 16) == interval
