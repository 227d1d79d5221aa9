"""Several checked methods on one page and in CSV files: published numbers, boxes, refusals."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.geometry.boxes import Size
from counterprior.eval.report.checked import COLORS, chosen_images, overlay, write_check_report
from counterprior.eval.results.checked import CheckInputs, as_csv, check_report
from counterprior.parsing import RowError

Cli = Callable[..., subprocess.CompletedProcess[str]]
PUBLISHED = {
    "main": {"pass": 11.8, "coverage": 23.8, "pass_decided": 49.5},
    "abstention": {
        "undecidable": 76.25,
        "missing": 56.0,
        "ambiguous": 9.12,
        "high_overlap": 0.25,
        "near_boundary": 10.88,
        "unstable": 0.0,
    },
    "prompts": {"prompts": 200, "images_per_prompt": 4, "best_of_k": 34.0, "all_of_k": 1.0},
    "pairs": {"pairs": 100, "both_pass": 19.0, "undecidable": 81.0, "one_sided": 0.0},
    "relations": {"above": 16.5, "below": 14.0, "left_of": 7.5, "right_of": 9.0},
}
"""SpatialBench-UC, tables 5 to 7 and those of pairs and relations: the prompt-only method."""
CALIBRATION = {
    "pass": (14.5, 11.8, -2.75),
    "coverage": (28.4, 23.8, -4.63),
    "pass_decided": (51.1, 49.5, -1.63),
    "prompt_pass": (40.5, 34.0, -6.5),
    "mean_confidence (0 to 1)": (0.246, 0.206, -0.04),
}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_tables_come_out_of_one_command(
    shared_data: Path, tmp_path: Path, cli: Cli
) -> None:
    run = shared_data / "spatialbench_uc" / "sd15_promptonly"
    now, then = run / "eval", run / "eval_precal_20260116_113552"
    done = cli(
        "check-report",
        f"sd15={now / 'per_sample.jsonl'}",
        *("--rules", now / "checker_config.yaml"),
        *("--before", f"sd15={then / 'per_sample.jsonl'}"),
        *("--before-rules", then / "checker_config.yaml"),
        *("--labels", run / "human_labels.csv", "--out", tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    for table, numbers in PUBLISHED.items():
        (row,) = read_csv(tmp_path / "out" / f"{table}.csv")
        for column, value in numbers.items():
            # Printed with one or two decimals.
            assert float(row[column]) == pytest.approx(value, abs=0.0501), (table, column)
    found = {row["number"]: row for row in read_csv(tmp_path / "out" / "calibration.csv")}
    for name, expected in CALIBRATION.items():
        numbers = [float(found[name][column]) for column in ("before", "after", "change")]
        assert numbers == pytest.approx(expected, abs=0.0501 if "conf" not in name else 5.1e-4)
    (audit,) = read_csv(tmp_path / "out" / "audit.csv")
    assert audit["labeled"] == "66" and 0.46 < float(audit["kappa"]) < 0.47
    page = (tmp_path / "out" / "index.html").read_text()
    assert "near_boundary" in (tmp_path / "out" / "rules.yaml").read_text() or "margin: 0.1" in page
    # One method's bar of reasons, and risk in two ways; others are marks and axes.
    assert page.count('role="img"') == 3
    assert len(read_csv(tmp_path / "out" / "risk_coverage.csv")) > 20


def sample(name: str, offset: float, **more: Any) -> dict[str, Any]:
    boxes = ([20, 30, 30, 70], [20 + offset, 30, 30 + offset, 70])
    found = [
        {"label": label, "score": 0.9, "box_xyxy": box}
        for label, box in zip(("cat", "dog"), boxes, strict=True)
    ]
    return {
        "sample_id": name,
        "prompt_id": name.rsplit("-", 1)[0],
        "relation": "left_of",
        "object_a": "cat",
        "object_b": "dog",
        "detectors": {"primary": {"detections": found if offset else found[:1]}},
        "conf_components": {"stability": 1.0},
        "width": 128,
        "height": 128,
        **more,
    }


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two methods: one always right, one right, undecided or without a dog."""
    methods = {
        "Plain SD": [sample(f"p{i}-{k}", (60, 12, 0)[i % 3]) for i in range(6) for k in range(2)],
        "boxed": [sample(f"b{i}-{k}", 60) for i in range(6) for k in range(2)],
    }
    specs = []
    for name, rows in methods.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        specs.append(f"{name}={path}")
    return specs


def test_methods_share_a_folder_and_keep_their_metrics(two: list[str], tmp_path: Path) -> None:
    report = check_report(CheckInputs(two))
    page = write_check_report(report, tmp_path / "out")
    first, second = (
        json.loads((tmp_path / "out" / name / "metrics.json").read_text())
        for name in ("plain-sd", "boxed")
    )
    assert (first["pass_count"], second["pass_count"]) == (4, 12)
    main = read_csv(tmp_path / "out" / "main.csv")
    assert [row["method"] for row in main] == ["Plain SD", "boxed"]
    assert float(main[0]["pass_low"]) < float(main[0]["pass"]) < float(main[0]["pass_high"])
    assert float(main[1]["pass"]) == 100 and float(main[1]["pass_low"]) < 100
    for row in main:
        for rate in ("pass", "coverage", "pass_decided"):
            low, value, high = (float(row[f"{rate}{end}"]) for end in ("_low", "", "_high"))
            assert 0 <= low <= value <= high <= 100
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    (row,) = check_report(CheckInputs([f"none={empty}"])).tables["main"]
    assert row["images"] == 0 and row["pass"] is None and row["coverage_low"] is None
    assert "calibration" not in report.tables and "audit" not in report.tables
    before = {
        p.relative_to(tmp_path / "out"): p.read_bytes() for p in (tmp_path / "out").rglob("*.*")
    }
    write_check_report(check_report(CheckInputs(two)), tmp_path / "out")
    assert before == {
        p.relative_to(tmp_path / "out"): p.read_bytes() for p in (tmp_path / "out").rglob("*.*")
    }
    assert page.read_text().count('<tr><th scope="row">boxed</th>') >= 5


def test_other_rules_show_what_calibration_changed(two: list[str], tmp_path: Path) -> None:
    (tmp_path / "loose.yaml").write_text("geometry: {margin: 0.01}\n")
    labels = tmp_path / "l.csv"
    labels.write_text("sample_id,label\np0-0,PASS\nb0-0,FAIL\nb1-0,PASS\nelsewhere,PASS\n")
    report = check_report(CheckInputs(two, before_rules=tmp_path / "loose.yaml", labels=labels))
    changes = {
        (row["method"], row["number"]): row["change"] for row in report.tables["calibration"]
    }
    assert changes["Plain SD", "coverage"] == pytest.approx(-100 / 3)
    assert changes["boxed", "coverage"] == 0
    assert [row["method"] for row in report.tables["audit"]] == ["all", "Plain SD", "boxed"]
    assert report.left_out == ["elsewhere"]
    page = write_check_report(report, tmp_path / "out").read_text()
    assert "1 labeled samples are of none of these methods" in page and "elsewhere" in page


def test_boxes_are_drawn_on_images_of_every_verdict(two: list[str], tmp_path: Path) -> None:
    report = check_report(CheckInputs(two))
    rows = []
    for method in report.methods:
        for one in method.checked:
            name = one.sample.sample_id
            Image.new("RGB", (128, 128), "white").save(tmp_path / f"{name}.png")
            about = {"relation": "left_of", "object_a": "cat", "object_b": "dog"}
            rows.append({"sample_id": name, "file": f"{name}.png", **about})
    manifest = tmp_path / "m.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = write_check_report(report, tmp_path / "out", [manifest], overlays=3).read_text()
    assert len(re.findall(r'<img src="plain-sd/overlays/', page)) == 3
    assert {"PASS", "UNDECIDABLE"} <= set(re.findall(r"left of dog: <b>(\w+)</b>", page))
    assert "near_boundary" in page and "missing: dog" in page
    for source in re.findall(r'src="([^"]+)"', page):
        assert (tmp_path / "out" / source).is_file()
    plain = report.methods[0].checked
    kinds = [(one.reason or one.verdict)[:4] for one in chosen_images(plain, 3)]
    assert sorted(kinds) == ["PASS", "miss", "near"]
    drawn = overlay(Image.new("RGB", (128, 128), "white"), plain[0])
    # On the lower edges of the two boxes, which no label covers.
    colors = {drawn.getpixel((25, 70)), drawn.getpixel((85, 70))}
    expected = {tuple(bytes.fromhex(color[1:])) for color in COLORS}
    assert colors == expected


def test_rejects_methods_that_cannot_be_compared(two: list[str], tmp_path: Path) -> None:
    for methods, *problem in (
        ([two[0].partition("=")[2]], "missing-option", two[0].partition("=")[2], "METHOD=FILE"),
        ([two[0], two[0]], "duplicate-id", "'Plain SD'"),
        ([two[0], "plain-sd=x"], "duplicate-id", "'plain-sd'"),
    ):
        with raises(*problem, error=UsageError):
            check_report(CheckInputs(methods))
    with raises("unknown-reference", "other", "--before", error=UsageError):
        check_report(CheckInputs(two, before=["other=x"]))
    with raises("missing-option", "--before-rules", error=UsageError):
        check_report(CheckInputs(two, before=[two[0]]))
    again = f"copy={two[0].partition('=')[2]}"
    with raises("duplicate-id", "p0-0", "Plain SD", error=RowError):
        check_report(CheckInputs([two[0], again], size=Size(128, 128)))
    assert as_csv([{"a": None, "b": 0.1}]) == "a,b\n,0.1\n"
