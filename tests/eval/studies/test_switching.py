"""Studies of `switch:` on biased cases recover the step that decides the layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import raises

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.selftest.trials import homogenization_trials
from counterprior.eval.studies import preflight, runner
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import biased_cases, run_study
from counterprior.eval.studies.scores.switched import biased
from counterprior.eval.studies.spec import parse_study
from counterprior.eval.studies.table import StudyTable, study_table

HOM = "t2i_homogenization"


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.of(next(homogenization_trials()).rows[:6])
    for module in (preflight, runner):
        monkeypatch.setattr(module, "read_rows", lambda *_: rows)


def study_of(**changes: Any) -> dict[str, Any]:
    methods = [f"{protocol}-{step}" for protocol in ("a2b", "n2a") for step in (2, 3)]
    columns = [
        {"label": method, "suite": HOM, "score": "hom", "method": method}
        for method in ("", *methods)
    ]
    lines = {name: {"generator": "r", "score": f"switched:{name}"} for name in ("success", "hom")}
    plain: dict[str, Any] = {
        "data": "trial",
        "suites": {HOM: {"where": "biased"}},
        "generators": {"r": "render:?order_bias=2&decides=3"},
        "methods": {name: f"switch:{name.replace('-', '?at=')}" for name in methods},
        "judges": {"p": "pixels"},
        "table": {"title": "switched", "lines": lines, "columns": columns},
    }
    return plain | changes


def values(table: StudyTable) -> dict[tuple[str, str], float]:
    return {
        (line.name, column.label): cell.score.value
        for line in table.lines
        for column, cell in zip(table.columns, line.cells, strict=True)
        if cell.score is not None
    }


@pytest.mark.slow
def test_success_and_hom_fall_where_the_layout_is_decided(tmp_path: Path) -> None:
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    file.write_text(yaml.safe_dump(study_of()))
    planned = {workload.name: workload.count for workload in plan_study(file).images}
    assert planned == dict.fromkeys(planned, 12)
    assert any("at most" in note for note in plan_study(file).notes)
    done = run_study(file, out)
    assert not done.failures
    chosen = {case.id for case in Run.open(out / "runs" / HOM / "r+a2b-2").cases()}
    assert 0 < len(chosen) < 12
    assert Run.open(out / "runs" / HOM / "r+n2a-3").header.where == "biased"
    assert not plan_study(file, out).workloads
    table = study_table(done.study)
    assert table.complete and "6 rows, biased cases, 1 seed" in "".join(table.remarks)
    found = values(table)
    assert found["hom", ""] < 100, "the base is of all cases"
    assert found["success", ""] == 100, "they were chosen for it"
    assert found["success", "a2b-2"] > 80 and found["success", "a2b-3"] < 20
    assert found["hom", "n2a-2"] > found["hom", "n2a-3"]
    with raises("another-run", "was made with where", error=RunError):
        run_study(study_of(suites={HOM: {}}), out)


@pytest.mark.slow
def test_the_same_success_where_all_cases_are_drawn(tmp_path: Path) -> None:
    chosen, every = (
        values(study_table(run_study(study_of(suites={HOM: sampling}), tmp_path / name).study))
        for name, sampling in (("chosen", {"where": "biased"}), ("all", {}))
    )
    steps = [key for key in every if key[0] == "success"]
    assert len(steps) == 5 and all(chosen[key] == every[key] for key in steps)


def test_nothing_is_drawn_while_nobody_knows_what_is_biased(tmp_path: Path) -> None:
    done = run_study(study_of(**{"except": [{"generator": "r"}]}), tmp_path / "out")
    assert len(done.failures) == 4
    assert all("which the study leaves out" in failure.cause for failure in done.failures)
    assert not list((tmp_path / "out").glob("runs/*/*/images"))


@pytest.mark.slow
def test_a_base_run_without_biased_case_fails_the_cells_that_draw_them(tmp_path: Path) -> None:
    out, generators = tmp_path / "out", {"r": "render:?order_bias=-9&decides=3"}
    done = run_study(study_of(generators=generators), out)
    assert [failure.cell.generator for failure in done.failures] == [
        f"r+{method}" for method in study_of()["methods"]
    ]
    assert all("in both orders" in failure.cause for failure in done.failures)
    assert [path.name for path in (out / "runs" / HOM).iterdir()] == ["r"]
    (cell, *_) = [cell for cell in done.study.cells if cell.biased]
    with raises("no-biased-case", f"{HOM} x r", error=RunError):
        biased_cases(done.study, cell)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"suites": {"spatial_uc": {"where": "biased"}}},
            ("unsupported", "s:13: suites.spatial_uc.where:", "both orders"),
        ),
        ({"methods": {}}, ("missing-field", f"s:9: suites.{HOM}.where:", "methods")),
    ],
)
def test_where_needs_a_prior_and_methods(changes: dict[str, Any], problem: tuple[str, ...]) -> None:
    plain = {name: part for name, part in study_of(**changes).items() if name != "table"}
    with raises(*problem):
        parse_study(yaml.safe_dump(plain), "s")


def test_biased_means_biased_in_both_orders() -> None:
    def outcome(row: str, variant: str, seed: int, label: str) -> Outcome:
        case = Case(row, variant, seed, 0, "", ("",))
        return Outcome(case, {("order", "original"): Verdict(label)})

    outcomes = [
        outcome("a", "plain", 1, "first_left"),
        outcome("a", "swapped", 1, "first_left"),
        outcome("a", "plain", 2, "first_left"),
        outcome("a", "swapped", 2, "first_right"),
        outcome("b", "plain", 1, "first_left"),
        outcome("b", "swapped", 1, "invalid"),
    ]
    chosen = [case.id for case in biased(outcomes, "order", "first_left")]
    assert chosen == ["a-plain-1", "a-swapped-1"]
