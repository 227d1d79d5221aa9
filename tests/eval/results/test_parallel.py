"""Runs that are scored at the same time: the same scores, the same errors, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored import cases, image_run, judged_as

from counterprior.eval.results import parallel as several
from counterprior.eval.results.parallel import ScoreOneRun, score_results
from counterprior.eval.results.scoring import ScoreSettings, results_json

ASKED = cases(6, clusters=3)


@pytest.mark.slow
def test_workers_find_what_one_process_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = []
    for name, label in (("one", "correct"), ("two", "wrong"), ("three", "invalid")):
        root = image_run(tmp_path / name, ASKED, {case.id: 40 for case in ASKED})
        roots.append(judged_as(root, {case.id: label for case in ASKED}))
    alone = score_results(roots, ScoreSettings())
    assert [result.folder for result in alone] == [str(root) for root in roots]
    monkeypatch.setattr(several, "_LARGE", 0)
    monkeypatch.setattr(several, "available_cpus", lambda: 2)
    told: list[tuple[str, int, int]] = []
    together = score_results(roots, ScoreSettings(), lambda *args: told.append(args))
    assert results_json(together) == results_json(alone)
    assert told == [("score", 1, 3), ("score", 2, 3), ("score", 3, 3)]
    # A worker names no run before another: the first that can't be scored is tried again here.
    task = ScoreOneRun(ScoreSettings(judges=("nobody",)), several=True)
    assert list(task.do([(0, roots[0])])) == [(0, None)]
    monkeypatch.setattr(several, "farm", lambda task, work, scale: (r for r in [(roots[1], None)]))
    assert results_json(score_results(roots, ScoreSettings())) == results_json(alone)
