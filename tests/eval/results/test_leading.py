"""What `score` and `eval` print: the headline score and its checks; all of them on request."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scored import LABELS, cases, image_run, judged_as

from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.results.tables import leading, remarks
from counterprior.eval.suites import SUITES

Cli = Callable[..., subprocess.CompletedProcess[str]]
RENDERED = ("--generator", "render:?order_bias=1", "--judge", "pixels", "--probes", "mirror,swap")


def printed(text: str) -> list[str]:
    """Names of the scores in a table."""
    return re.findall(r"^│ (\w+) +│", text, re.MULTILINE)


def test_the_headline_and_its_checks_lead_and_only_they_warn(tmp_path: Path) -> None:
    asked = cases(6)
    root = image_run(tmp_path / "run", asked, {case.id: 40 for case in asked})
    judged_as(root, {case.id: LABELS[n % 2] for n, case in enumerate(asked)})
    result = score_run(root, ScoreSettings())[0].result
    headline = SUITES["t2i_correctness"].headline
    names = [score.name for score in leading(result)]
    assert {headline.score, *headline.checks, *headline.broken_down} == {*names}
    assert len(names) < len(result.scores)
    result = replace(result, scores=[replace(s, warning=f"see {s.name}") for s in result.scores])
    assert [line for line in remarks(result, leading(result)) if ": see" in line] == [
        f"{name}: see {name}" for name in names
    ], "the warning of a score that is not printed isn't either"


@pytest.mark.slow
def test_a_run_prints_few_scores_and_explains_all_on_request(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    suite = ("--suite", "t2i_homogenization", "--data", text_release, "--limit", 4)
    run = tmp_path / "run"
    done = cli("eval", *suite, *RENDERED, "--out", run)
    assert done.returncode == 0, done.stderr
    names = ["order_bias", "hom", "signed_index", "valid", "order_effect", "entity_effect"]
    assert printed(done.stdout) == names
    (judged,) = json.loads((run / "scores.json").read_text())
    every = [score["name"] for score in judged["scores"] if score["group"] == "all"]
    hidden = set(every) - set(names)
    assert {"signed_index_mirror_averaged", "order_log_odds"} <= hidden
    assert f"--explain prints {len(hidden)} more scores" in done.stdout
    meaning = SUITES["t2i_homogenization"].meanings["hom"]
    assert meaning[:30] not in done.stdout
    full = cli("score", run, "--explain").stdout
    assert set(printed(full)) == set(every) and meaning[:30] in full and "--explain" not in full
    of_groups = cli("score", run, "--groups").stdout
    assert hidden.isdisjoint(re.findall(r"\w+", of_groups)) and "folded" in of_groups


@pytest.mark.parametrize("name", [name for name, s in SUITES.items() if s.headline.checks])
def test_the_checks_of_a_headline_are_scores_of_the_suite(name: str) -> None:
    suite = SUITES[name]
    shared = set().union(*(other.meanings for other in SUITES.values()))
    assert set(suite.headline.checks) <= shared  # of a headline that several suites have
    assert suite.headline.leads(suite.headline.score)
    assert set(suite.headline.checks) & set(suite.meanings)
