"""A study draws the rows that its file chooses, the same on every day and machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import study_doubles as doubles
import yaml
from refusals import raises

from counterprior.errors import CounterpriorError
from counterprior.eval.engine.data import RowChoice, read_rows
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.studies.folder import Study
from counterprior.eval.studies.preflight import plan_study
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.spec import parse_study
from counterprior.eval.studies.table import study_table
from counterprior.eval.workers.farm import Scale
from counterprior.release import iter_records

HOM, COR = "t2i_homogenization", "t2i_correctness"
Cli = Callable[..., subprocess.CompletedProcess[str]]


def written(folder: Path, data: Path, suites: dict[str, Any], **changes: Any) -> Path:
    file = folder / "s.yaml"
    plain = doubles.study_file(data, suites) | {"unchecked": True} | changes
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return file


def rows_of(out: Path, suite: str, generator: str = "red") -> set[str]:
    return {case.row for case in Run.open(out / "runs" / suite / generator).cases()}


@pytest.fixture
def ids(text_release: Path, tmp_path: Path) -> Path:
    """Two prompts of a row, and one of another."""
    first, second = list(iter_records(text_release, COR))[:2]
    names = [f"{first['id']}-{v}" for v in ("aligned", "reverse")] + [f"{second['id']}-aligned"]
    path = tmp_path / "ids.txt"
    path.write_text("\n".join(names))
    return path


@pytest.mark.slow
def test_where_and_ids_choose_what_the_command_line_chooses(
    text_release: Path, ids: Path, tmp_path: Path, cli: Cli
) -> None:
    of_config = list(iter_records(text_release, HOM))
    animal = next(r for r in of_config if r["pair_type"] == "A-A")["first"]["name"]
    where = ["pair_type=A-A,A-O", f"first={animal}"]
    file = written(tmp_path, text_release, {HOM: {"where": where}, COR: {"ids": str(ids)}})
    wanted = {
        r["id"]
        for r in of_config
        if r["pair_type"] in ("A-A", "A-O") and r["first"]["name"] == animal
    }
    assert 0 < len(wanted) < len(of_config)
    planned = cli("study", "plan", file, "--trust").stdout
    assert (
        f"{HOM}: {len(wanted):,} of {len(of_config):,} rows: pair_type=A-A,A-O, first=" in planned
    )
    assert f"{COR}: 2 of 4" in planned and "ids.txt" in planned
    out = tmp_path / "out"
    done = run_study(file, out)
    assert not done.failures and rows_of(out, HOM) == wanted
    drawn = {case.item for case in Run.open(out / "runs" / COR / "red").cases()}
    assert drawn == set(ids.read_text().split())
    header = Run.open(out / "runs" / HOM / "red").header
    assert header.where == f"only first={animal} pair_type=A-A,A-A,A-O,A-O"
    assert json.loads((out / "study.json").read_text())["rows"][f"{HOM}/red"]["where"]
    remarks = "\n".join(study_table(done.study).remarks)
    assert f"{HOM}: {len(wanted)} rows, only first={animal} pair_type=A-A," in remarks
    assert f"{COR}: 2 rows, only the ids of digest " in remarks
    assert not plan_study(file, out).workloads


def test_no_condition_on_a_field_replaces_another(text_release: Path) -> None:
    listed = read_rows(str(text_release), HOM)
    kept = RowChoice.of(["pair_type!=A-A", "pair_type!=H-H"]).rows(listed)
    assert {row.pair_type for row in kept} == {"A-O", "H-A", "H-O", "O-O"}  # type: ignore[attr-defined]
    with raises("conflicting-options", "pair_type=H-H", "pair_type=VALUE,VALUE"):
        RowChoice.of(["pair_type=A-A", "pair_type=H-H"])


def test_some_cells_draw_other_rows(text_release: Path, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        text_release,
        {HOM: {"where": "pair_type=A-A", "limit": 3}},
        generators={n: f"python:study_doubles:painter?name={n}" for n in ("red", "blue")},
        **{"except": [{"generator": "blue", "where": "pair_type=H-H"}]},
    )
    plan = plan_study(file)
    assert [(c.rows, c.only) for c in plan.rows] == [
        (3, ("pair_type=A-A",)),
        (3, ("pair_type=H-H",)),
    ]
    table = study_table(run_study(file, tmp_path / "out").study)
    (line,) = [text for text in table.remarks if "elsewhere" in text]
    assert "3 rows of limit 3, only pair_type=A-A" in line and "only pair_type=H-H" in line
    assert not rows_of(tmp_path / "out", HOM) & rows_of(tmp_path / "out", HOM, "blue")


@pytest.mark.parametrize(
    ("sample", "code", "words"),
    [
        ({"where": "domai=ways"}, "unknown-name", ("where: domai=:", "domain, ")),
        ({"where": "status=maybe"}, "unknown-name", ("where: status=:", "domain, ")),
        ({"where": "text_bound=maybe"}, "nothing-to-do", ("text_bound=:", "'maybe'", "'True'")),
        ({"ids": "no.txt"}, "no-such-file", ("ids: no.txt", "No such file")),
        ({"ids": "one.txt"}, "unknown-reference", ("ids: one.txt", "1 of 1", "'nobody'")),
        ({"ids": "empty.txt"}, "nothing-to-do", ("ids: empty.txt", "one a line")),
    ],
)
def test_a_choice_of_nothing_ends_before_anything_is_drawn(
    sample: dict[str, Any],
    code: str,
    words: tuple[str, ...],
    text_release: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("nobody\n")
    Path("empty.txt").touch()
    file = written(tmp_path, text_release, {HOM: {"limit": 1}, COR: sample})
    for call in (lambda: plan_study(file), lambda: run_study(file, tmp_path / "out")):
        with raises(code, "s.yaml:6: suites.t2i_correctness", *words, error=CounterpriorError):
            call()
    assert not doubles.DID and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sample", "code", "words"),
    [
        ("where: A-A", "bad-value", ("s:2: suites.t2i_homogenization.where", "pair_type=A-A")),
        ("where: {pair_type: A-A}", "bad-value", ("FIELD=VALUE",)),
        ("where: [pair_type=A-A, A-H]", "bad-value", ("'A-H'",)),
        ("ids: i.txt, limit: 3", "conflicting-options", (".ids: names the prompts", "`limit`")),
    ],
)
def test_what_is_no_choice_is_a_fault_of_the_file(
    sample: str, code: str, words: tuple[str, ...]
) -> None:
    text = f"data: r\nsuites: {{{HOM}: {{{sample}}}}}\n"
    with raises(code, *words):
        parse_study(text + 'generators: {a: "render:"}\njudges: {p: pixels}\n', "s")


def test_other_rows_than_a_study_began_with_are_refused(
    text_release: Path, ids: Path, tmp_path: Path
) -> None:
    suites = {HOM: {"where": "pair_type=A-A", "limit": 2}, COR: {"ids": str(ids)}}
    file, out = written(tmp_path, text_release, suites), tmp_path / "out"
    run_study(file, out, scale=Scale(shard=(1, 2)))
    listed = ids.read_text()
    ids.write_text(listed.splitlines()[0])
    with raises("another-run", "out/runs/t2i_correctness/red", "`ids`", error=RunError):
        run_study(file, out, scale=Scale(shard=(2, 2)))
    ids.write_text(listed)
    done = run_study(file, out, scale=Scale(shard=(2, 2)))
    assert not done.failures and len(rows_of(out, COR)) == 2
    with raises("another-run", "red was made with where: only pair_type=A-A", error=RunError):
        run_study(file, out, changes=[f"suites.{HOM}.where=pair_type=H-H"])
    ids.unlink()  # what is there is read without it
    assert study_table(Study.open(out)).complete


def test_shards_that_have_not_begun_know_the_ids_of_the_first(
    text_release: Path, ids: Path, tmp_path: Path
) -> None:
    file, out = written(tmp_path, text_release, {COR: {"ids": str(ids)}}), tmp_path / "out"
    study = Study.start(out, parse_study(file.read_text(), "s"), file.read_text())
    study.models.remember_rows(study.cells)
    ids.write_text(ids.read_text().splitlines()[0])
    with raises("another-run", "t2i_correctness/red", "lists others now", error=RunError):
        run_study(file, out)
    assert not doubles.DID
