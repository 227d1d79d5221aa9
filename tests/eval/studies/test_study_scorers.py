"""Scorers in a study: every image once, beside bias in the table and the report."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles

from counterprior.eval.engine.image_scores import ScoredPair
from counterprior.eval.report.site import write_report
from counterprior.eval.results.scoring import ScoreSettings
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.formats import FORMS, format_table
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.status import judged_runs, study_status
from counterprior.eval.studies.table import study_table
from counterprior.storage import write_json

HOM, UC = "t2i_homogenization", "spatial_uc"


def study_of(data: Path, **changes: Any) -> dict[str, Any]:
    return doubles.study_file(data, {UC: {"limit": 6}}, graders=["eva"]) | changes


def work_of(name: str) -> Counter[str]:
    return Counter({n: c for n, c in doubles.DID.items() if n.startswith(f"{name} ")})


def scores_of(study: Study) -> dict[str, ScoredPair]:
    cell = next(cell for cell in study.cells if cell.scorer)
    run = study.run_of(cell)
    log = study.scores_of(cell, run) if run else None
    return log.of_cases(run, run.cases()) if run and log else {}


def test_killed_while_it_scores_it_scores_nothing_twice(text_release: Path, tmp_path: Path) -> None:
    plain, file = study_of(text_release), tmp_path / "s.yaml"
    write_json(file, plain)  # JSON is YAML
    (part,) = plan_study(file).scores
    assert (part.name, part.what, part.count) == ("eva", f"scores of {UC}", 6)
    whole = scores_of(run_study(file, tmp_path / "whole").study)
    once = work_of("eva")
    assert once.total() == len(once) == 6 and doubles.DID["loaded eva"] == 1
    assert doubles.MOST == [1], "two models were in memory at the same time"
    doubles.reset()
    left = [6 + 6 + 3]  # images, answers, and two scores

    def before() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    doubles.BEFORE[:] = [before]
    out = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        run_study(file, out)
    doubles.BEFORE.clear()
    judged, scored = study_status(Study.open(out))
    assert judged.gap == "" and scored.gap == "scored in part: 2 of 6 images"
    table = study_table(Study.open(out))
    cell = table.lines[0].cells[-1]
    assert cell.score is not None and cell.score.n == 2 and cell.gap and not table.complete
    assert cell.score.excluded == {"not_scored": 4}
    assert [part.count for part in plan_study(file, out).scores] == [4]
    done = run_study(file, out)
    assert not done.failures and work_of("eva") == once
    assert scores_of(done.study) == whole and len(whole) == 6
    doubles.reset()
    run_study(file, out)
    assert not doubles.DID
    # A scorer that is added costs its own part, and another one under a known name is refused.
    more = run_study(plain | {"scorers": plain["scorers"] | {"torn": TORN}}, out)
    assert [(f.cell.judge, f.cause) for f in more.failures] == [
        ("torn", "torn can't be loaded: no such tensor")
    ]
    assert not work_of("red") and not work_of("ann") and not work_of("eva")


TORN = "python:study_doubles:grader?name=torn&loads=no"


@pytest.mark.lane
def test_what_methods_change_is_told_against_their_own_generator(
    text_release: Path, tmp_path: Path
) -> None:
    plain = study_of(
        text_release,
        suites={HOM: {"limit": 3}},
        generators={"one": "render:?order_bias=3&decides=4", "two": "render:?decides=4"},
        methods={"late": "switch:b2a?at=3"},
        judges={"px": "pixels"},
        margins={"order_bias": 150, "eva": 0.5},
    )
    done = run_study(plain, tmp_path / "study")
    assert not done.failures
    table = study_table(done.study)
    assert [(r.base, list(r.runs)) for r in table.changes] == [
        ("one", ["one", "one+late"]),
        ("two", ["two", "two+late"]),
    ]
    for report in table.changes:
        bias, quality = report.changes
        assert (bias.kind, bias.scorer, bias.n) == ("bias", "pixels", 3)
        assert (quality.kind, quality.scorer, quality.n) == ("quality", "eva", 6)
        assert (bias.margin, quality.margin) == (150, 0.5)
        assert bias.claim is not None and quality.claim is not None
        assert quality.value == pytest.approx(quality.after - quality.before)
        column = [line.cells[1].score for line in table.lines if line.name == quality.first]
        assert column[0] is not None and column[0].value == quality.after
    texts = {form: format_table(table, form) for form in FORMS}
    for form in ("md", "tex", "json"):
        assert "equivalent" in texts[form] or "undecided" in texts[form]
        assert len(re.findall(r"(one|two)\+late.{1,40}eva", texts[form], re.DOTALL)) >= 2, form
    site = tmp_path / "site"
    write_report(judged_runs(done.study), site, ScoreSettings(), bases=done.study.base_runs())
    page = (site / f"{HOM}.html").read_text()
    told = re.findall(r'data-kind="quality" data-run="([^"]+)"', page)
    assert told == ["one+late", "two+late"]
    assert re.findall(r"<h3>Against (\S+)", page) == ["one", "two"]


@pytest.mark.lane
def test_the_frames_of_clips_are_scored_and_named(text_release: Path, tmp_path: Path) -> None:
    plain = study_of(
        text_release,
        suites={HOM: {"limit": 2}},
        generators={"film": "render:?order_bias=1&video=4"},
        judges={"px": "pixels"},
        frames="count=2",
    )
    file = tmp_path / "s.yaml"
    write_json(file, plain)
    probed = plan_study(file, probe=True)
    (part,) = probed.scores
    assert part.count == 4 and part.seconds is not None and not probed.problems
    doubles.reset()
    done = run_study(file, tmp_path / "study")
    assert not done.failures and work_of("eva").total() == 4 * 2
    table = study_table(done.study)
    assert table.complete and len(scores_of(done.study)) == 4
    assert "of a clip the mean of count=2." in format_table(table, "md")
    doubles.reset()
    assert not run_study(file, tmp_path / "study").failures and not doubles.DID
    # Other frames are scored anew, and stand alone in the table.
    write_json(file, plain | {"frames": "first"})
    again = run_study(file, tmp_path / "study")
    assert not again.failures and work_of("eva").total() == 4
    assert scores_of(again.study) != scores_of(done.study)
    assert "of a clip the mean of first." in format_table(study_table(again.study), "md")
