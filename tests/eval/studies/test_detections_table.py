"""Tables from files of detections: published numbers, methods, rules, labels and refusals."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.judges.checker.analyze import analyze
from counterprior.eval.judges.checker.run import check_file
from counterprior.eval.studies.detections import TableSources, open_table
from counterprior.eval.studies.formats import FORMS, format_table
from counterprior.eval.studies.table import StudyTable
from counterprior.human_labels import read_labels
from counterprior.parsing import RowError

Cli = Callable[..., subprocess.CompletedProcess[str]]
PROMPT_ONLY = "SD1.5-prompt-only"
RECIPE = "spatialbench-uc-{}"
KAPPA = "kappa"


def table_of(recipe: str, *sources: object, **settings: Any) -> StudyTable:
    return open_table(RECIPE.format(recipe), TableSources([*map(str, sources)], **settings))


def values(table: StudyTable) -> dict[str, dict[str, float]]:
    """Line -> column -> value, where there is one."""
    return {
        line.name: {
            heading.name: cell.score.value
            for heading, cell in zip(table.columns, line.cells, strict=True)
            if cell.score is not None
        }
        for line in table.lines
    }


@pytest.mark.slow
def test_every_published_table_is_one_command(shared_data: Path, cli: Cli) -> None:
    run = shared_data / "spatialbench_uc" / "sd15_promptonly"
    now, before = run / "eval", run / "eval_precal_20260116_113552"
    sources = [f"{PROMPT_ONLY}={now / 'per_sample.jsonl'}", "--rules", now / "checker_config.yaml"]
    calibration = [
        f"before:{PROMPT_ONLY}={before / 'per_sample.jsonl'}",
        *("--rules", f"before={before / 'checker_config.yaml'}"),
    ]
    printed = 0
    for recipe in ("5", "6", "7", "relations", "pairs", "calibration"):
        more = calibration if recipe == "calibration" else []
        done = cli("study", "table", "--as", RECIPE.format(recipe), *sources, *more, *CSV)
        assert done.returncode == 0, done.stderr
        for row in csv.DictReader(io.StringIO(done.stdout)):
            if row["paper"]:
                # Printed with one or two decimals, and a confidence with three.
                within = 5.1e-4 if "confidence" in row["column"] else 0.0501
                assert float(row["value"]) == pytest.approx(float(row["paper"]), abs=within), row
                printed += 1
    assert printed == 4 + 6 + 2 + 4 + 3 + 15
    labels = ["--labels", run / "human_labels.csv"]
    done = cli("study", "table", "--as", RECIPE.format("fig-3"), *sources, *labels, *CSV)
    agreed, covered, risk, counted = csv.DictReader(io.StringIO(done.stdout))
    assert 0.46 < float(agreed["value"]) < 0.47 and covered["n"] == "66"
    assert (risk["n"], counted["n"]) == ("14", "21")


CSV = ("--format", "csv")


def sample(name: str, offset: float, **changes: Any) -> dict[str, Any]:
    boxes = ([20, 30, 30, 70], [20 + offset, 30, 30 + offset, 70])
    detections = [
        {"label": label, "score": 0.9, "box_xyxy": box}
        for label, box in zip(("cat", "dog"), boxes, strict=True)
    ]
    return {
        "sample_id": name,
        "prompt_id": name.rsplit("-", 1)[0].partition(" ")[2],
        "relation": "left_of",
        "object_a": "cat",
        "object_b": "dog",
        "detectors": {"primary": {"detections": detections if offset else detections[:1]}},
        "conf_components": {"stability": 1.0},
        "width": 128,
        "height": 128,
        **changes,
    }


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """One method: right, undecided or without a dog, in turn."""
    rows = [sample(f"a p{i}-{k}", (60, 12, 0)[i % 3]) for i in range(6) for k in range(2)]
    return write(tmp_path / "plain.jsonl", rows)


@pytest.fixture
def boxed(tmp_path: Path) -> Path:
    """Another one, which is always right."""
    rows = [sample(f"b p{i}-{k}", 60) for i in range(6) for k in range(2)]
    return write(tmp_path / "boxed.jsonl", rows)


def test_methods_are_lines_with_intervals_over_prompts(plain: Path, boxed: Path) -> None:
    table = table_of("5", f"Plain SD={plain}", f"boxed={boxed}")
    assert table.complete
    shares = values(table)
    assert shares["Plain SD"]["pass, %"] == pytest.approx(100 / 3)
    assert shares["boxed"]["pass, %"] == 100
    sure = [image.confidence for image in check_file(plain, CheckerRules())]
    assert shares["Plain SD"]["confidence"] == pytest.approx(sum(sure) / len(sure), abs=1e-12)
    for line in table.lines:
        for cell in line.cells[:3]:
            assert cell.score is not None
            assert 0 <= cell.score.interval.low <= cell.score.value <= cell.score.interval.high
            assert cell.score.interval.low < 100
    text = format_table(table, "md")
    assert "6 rows, 2 seeds" in text and str(boxed) in text
    assert text == format_table(table_of("5", f"Plain SD={plain}", f"boxed={boxed}"), "md")
    for form in FORMS:
        assert format_table(table, form)


def test_an_empty_file_has_no_rates(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    (line,) = table_of("5", f"none={empty}").lines
    assert not [c.score for c in line.cells if c.score is not None and c.score.value == 0]


def test_other_rules_show_what_calibration_changed(
    plain: Path, boxed: Path, tmp_path: Path
) -> None:
    loose = tmp_path / "loose.yaml"
    loose.write_text("geometry: {margin: 0.01}\n")
    sources = f"plain={plain}", f"boxed={boxed}"
    found = values(table_of("calibration", *sources, rules=[f"before={loose}"]))
    assert found["plain"]["change coverage"] == pytest.approx(-100 / 3)
    assert found["boxed"]["change coverage"] == 0
    before = found["plain"]["before coverage, %"]
    assert found["plain"]["after coverage, %"] - before == pytest.approx(-100 / 3)
    # A file of its own counts for one judge.
    apart = table_of(
        "calibration", sources[0], f"before:plain={boxed}", rules=[f"before={loose}", f"{loose}"]
    )
    assert values(apart)["plain"]["before pass, %"] == 100
    assert values(apart)["plain"]["after pass, %"] == pytest.approx(200 / 3)


def test_labels_give_the_numbers_of_the_audit(plain: Path, boxed: Path, tmp_path: Path) -> None:
    file = tmp_path / "l.csv"
    labels = ("a p0-0,PASS", "b p0-0,FAIL", "b p1-0,PASS", "b p2-0,UNDECIDABLE", "a p1-0,FAIL")
    file.write_text("\n".join(["sample_id,label", *labels, "elsewhere,PASS"]) + "\n")
    table = table_of("fig-3", f"plain={plain}", f"boxed={boxed}", labels=file)
    rules = CheckerRules()
    rows = [image.to_row() for path in (plain, boxed) for image in check_file(path, rules)]
    audit = analyze(rows, [label for label in read_labels(file) if label.case != "elsewhere"])
    found = values(table)["checker"]
    risks = audit["risk"]
    assert found[KAPPA] == pytest.approx(audit["kappa"]["value"])
    assert found["coverage"] == risks["human_undecidable_excluded"]["coverage"] == 0.8
    assert found["risk"] == risks["human_undecidable_excluded"]["risk"] == pytest.approx(1 / 3)
    assert found["risk, undecidable counted"] == risks["human_undecidable_counted"]["risk"] == 0.5
    assert any("excluded: 1, the first elsewhere" in text for text in table.remarks)
    drawn = "".join(ElementTree.fromstring(table.figure).itertext())
    for name, n in (("all", 5), ("plain", 2), ("boxed", 3)):
        assert f"checker, {name}, human undecidable excluded" in drawn and f"n = {n}" in drawn
    page = format_table(table, "html")
    assert page.count("<svg") == 1 and "checker, boxed" in page and "elsewhere" in page


def test_what_was_not_measured_is_listed(plain: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in plain.read_text().splitlines()]
    bare = write(tmp_path / "bare.jsonl", [{**row, "conf_components": None} for row in rows])
    (note,) = (t for t in table_of("5", f"bare={bare}").remarks if "stability" in t)
    assert "stability was not recorded for 4 images" in note


def changed(path: Path, row: int, **fields: Any) -> Path:
    """A copy of a file with other fields in one row; None removes a field."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[row] = {k: v for k, v in (rows[row] | fields).items() if v is not None}
    return write(path.with_name("changed.jsonl"), rows)


def test_rejects_rows_that_cannot_be_compared(plain: Path, boxed: Path, tmp_path: Path) -> None:
    first = f"plain={plain}"
    with raises("no-such-file", "absent.jsonl", error=RowError):
        table_of("5", f"a={tmp_path / 'absent.jsonl'}")
    with raises("missing-field", "changed.jsonl:3", "relation", error=RowError):
        table_of("5", f"a={changed(plain, 2, relation=None)}")
    with raises("duplicate-id", "plain.jsonl:1", "sample_id", "a p0-0", error=RowError):
        table_of("5", first, f"copy={plain}")
    with raises("different-rows", "changed.jsonl:5", "prompt_id", "p99", error=RowError):
        table_of("5", first, f"b={changed(boxed, 4, prompt_id='p99')}")
    with raises("different-rows", "changed.jsonl:1", "prompt_id", "right_of", error=RowError):
        table_of("5", first, f"b={changed(boxed, 0, relation='right_of')}")
    short = write(tmp_path / "short.jsonl", [sample("b p0-0", 60)])
    with raises("different-rows", "short.jsonl", "prompt_id", "p1", "4 more", error=RowError):
        table_of("5", first, f"b={short}")
    labels = tmp_path / "l.csv"
    labels.write_text("sample_id,label\nelsewhere,PASS\n")
    with raises("different-rows", "l.csv:2", "sample_id", "elsewhere", error=RowError):
        table_of("fig-3", first, labels=labels)
    labels.write_text("sample_id,label\na p0-0,RIGHT\n")
    with raises("unknown-name", "l.csv:2", "label", "RIGHT", "PASS", error=RowError):
        table_of("fig-3", first, labels=labels)


def test_rejects_names_and_options_that_cannot_be_used(plain: Path, tmp_path: Path) -> None:
    first = f"plain={plain}"
    for code, recipe, sources, facts in (
        ("missing-option", "5", [first, str(plain)], ["plain.jsonl", "NAME=FILE"]),
        ("missing-option", "5", [first, "="], ["NAME=FILE"]),
        ("duplicate-id", "5", [first, first], ["plain", "twice"]),
        ("duplicate-id", "5", [first, "Plain=x.jsonl"], ["Plain", "punctuation"]),
        ("unknown-name", "5", [f"befor:{first}"], ["befor", "checker"]),
        ("missing-option", "calibration", [f"after:{first}"], ["before:plain=FILE"]),
        ("wrong-suite", "ots", [first], ["checker", "spatial_uc", "spatialbench-uc-5"]),
        ("missing-option", "none", [first], ["--as", "spatialbench-uc-5"]),
    ):
        name = {"ots": "ots-bench-4", "none": ""}.get(recipe, RECIPE.format(recipe))
        rules = [f"before={tmp_path / 'r.yaml'}"] if recipe == "calibration" else []
        with raises(code, *facts, error=UsageError):
            open_table(name, TableSources(sources, rules))
    with raises("no-such-file", "before", "--rules before=FILE", error=UsageError):
        table_of("calibration", first)
    with raises("duplicate-option", "b.yaml", "a.yaml", error=UsageError):
        table_of("5", first, rules=["a.yaml", "b.yaml"])
    with raises("conflicting-options", "--rules", error=UsageError):
        open_table("", TableSources([str(tmp_path)], ["a.yaml"]))
    with raises("not-a-study", tmp_path):
        open_table("", TableSources([str(tmp_path)]))
