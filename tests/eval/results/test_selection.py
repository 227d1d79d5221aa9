"""Judges against people: pooled over runs and metrics, and by how far scores differ."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import raises
from scored import cases, image_run, judged_as

from counterprior.errors import DataError
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.results.judge_card import comparable_of, prompt_versions
from counterprior.eval.results.judge_check import JudgeCheck, write_checks
from counterprior.eval.results.selection import (
    LabelPair,
    _confusions,
    agreement_limits,
    judge_selection,
)
from counterprior.eval.stats.agreement import cohen_kappa
from counterprior.eval.suites import open_suite

Cli = Callable[..., subprocess.CompletedProcess[str]]
ASKED = cases(30, clusters=10)
PUBLISHED = [[224, 11, 4], [94, 1475, 30], [35, 56, 471]]
"""OTS-Bench, Table 13: people (rows) and Qwen3-VL-8B over 2,400 images of six metrics."""


def test_the_published_kappa_is_that_of_the_pooled_metrics() -> None:
    # The metrics' labels differ; what they stand for is pooled.
    names = {"invalid": ("invalid", "invalid"), "first": ("first_left", "correct")}
    names["other"] = ("first_right", "wrong")
    codes = list(names)
    pairs = []
    for i, row in enumerate(PUBLISHED):
        for j, count in enumerate(row):
            for k in range(count):
                said = (codes[i], codes[j])
                people, judge = (names[code][k % 2] for code in said)
                metric = ("order", "arrangement")[k % 2]
                pairs.append(LabelPair(metric, f"run{k % 3}", people, judge, said))
    (name, pooled), *others = _confusions(pairs)
    assert name == "all" and pooled.matrix == PUBLISHED and pooled.n == 2400
    assert pooled.kappa.value == pytest.approx(0.811357, abs=1e-6)
    assert [one for one, _ in others] == ["arrangement", "order", "run0", "run1", "run2"]
    assert sum(one.n for _, one in others[:2]) == sum(one.n for _, one in others[2:]) == 2400
    assert set(others[0][1].labels) == {"correct", "wrong", "invalid"}


def two_runs(tmp_path: Path) -> tuple[list[Path], Path]:
    """Two runs of one judge, and people's labels of both: of the first ten cases they differ in
    the first run by two."""
    roots = []
    labels = tmp_path / "labels.csv"
    with labels.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "question", "label", "image"])
        for shade, name in ((40, "one"), (90, "two")):
            root = image_run(tmp_path / name, ASKED, {case.id: shade for case in ASKED})
            judged_as(root, {c.id: "correct" if i % 3 else "wrong" for i, c in enumerate(ASKED)})
            images = Run.open(root).images()
            for i, case in enumerate(ASKED[:10]):
                said = "correct" if i % 3 or (name == "one" and i == 0) else "wrong"
                if name == "one" and i == 1:
                    said = "invalid"
                writer.writerow([case.id, "arrangement", said, images[case.id].sha256])
            roots.append(root)
    return roots, labels


def test_runs_are_pooled_and_scores_compared_by_image(tmp_path: Path) -> None:
    roots, labels = two_runs(tmp_path)
    (told,) = judge_selection(roots, labels).values()
    pooled, metric, one, two = told["confusions"]
    assert (pooled["name"], pooled["n"]) == ("all", 20)
    assert pooled["labels"] == ["invalid", "first", "other"]
    # People (rows): one invalid that the judge calls correct, one correct that it calls wrong.
    assert pooled["matrix"] == [[0, 1, 0], [0, 11, 1], [0, 0, 7]]
    assert pooled["kappa"] == pytest.approx(cohen_kappa(pooled["matrix"]).value)
    assert metric["name"] == "t2i_correctness/arrangement/reverse"
    assert metric["labels"] == ["correct", "invalid", "wrong"]
    assert (one["name"], two["name"]) == tuple(map(str, roots)) and two["agreement"] == 1
    scores = told["scores"]
    # An image that people find invalid is not right: the judge that calls it correct is higher.
    assert scores["n"] == 20 and scores["mean"] == 0
    assert scores["people_higher"] == scores["judge_higher"] == pytest.approx(1 / 20)
    assert scores["within_0.125"] == pytest.approx(18 / 20)
    assert dict(scores["histogram"])[0.0] == 18 and dict(scores["histogram"])[1.0] == 1


def test_only_what_a_judge_can_be_believed_on_is_compared(tmp_path: Path) -> None:
    roots, labels = two_runs(tmp_path)
    (before,) = judge_selection(roots[:1], own_labels(roots[0], labels)).values()
    run = Run.open(roots[0])
    (log,) = run.judges()
    suite = open_suite(run.header.suite)
    comparable = comparable_of(log.identity, prompt_versions(suite))
    rows = {case.row: case.clusters[0] for case in run.cases()}
    misled = {ASKED[0].row: ASKED[0].clusters[0]}
    check = JudgeCheck(log.name, comparable, rows, misled, {}, {}, {}, (0.9, 0.8, 1.0))
    write_checks(roots[0], [check])
    (after,) = judge_selection(roots[:1], own_labels(roots[0], labels)).values()
    assert (before["confusions"][0]["n"], after["confusions"][0]["n"]) == (10, 9)
    assert (before["scores"]["n"], after["scores"]["n"]) == (10, 9)


def own_labels(root: Path, labels: Path) -> Path:
    """The labels of one run's images alone."""
    digests = {image.sha256 for image in Run.open(root).images().values()}
    header, *lines = labels.read_text().splitlines()
    own = [line for line in lines if line.rsplit(",", 1)[1] in digests]
    path = labels.with_name("own.csv")
    path.write_text("\n".join([header, *own]) + "\n")
    return path


def test_runs_of_other_rows_are_no_comparison(tmp_path: Path) -> None:
    roots, labels = two_runs(tmp_path)
    header = roots[1] / "run.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"rows_sha256": "0" * 64}))
    with raises("different-rows", f"{roots[1]} and {roots[0]} are of different", error=RunError):
        judge_selection(roots, labels)


def test_limits_of_agreement_hold_95_percent_of_normal_differences() -> None:
    rng = np.random.default_rng(0)
    gaps = np.clip(rng.normal(0.05, 0.1, 4000), -1, 1)
    found = agreement_limits(gaps, [str(i) for i in range(4000)])
    low, high = found["limits"]
    assert np.mean((gaps > low) & (gaps < high)) == pytest.approx(0.95, abs=0.01)
    assert found["mean"] == pytest.approx(0.05, abs=0.006)
    assert low == pytest.approx(0.05 - 1.96 * 0.1, abs=3 * found["limits_error"])
    assert found["within_0.125"] == pytest.approx(np.mean(np.abs(gaps) <= 0.125))
    assert sum(count for _, count in found["histogram"]) == 4000
    single = agreement_limits(np.array([0.5]), ["a"])
    assert math.isnan(single["limits"][0]) and single["n"] == 1


def test_labels_of_other_images_are_no_comparison(tmp_path: Path, cli: Cli) -> None:
    roots, labels = two_runs(tmp_path)
    shown = cli("audit", "analyze", *roots, "--labels", labels)
    assert shown.returncode == 0, shown.stderr
    assert "kappa" in shown.stdout and "limits of agreement" in shown.stdout
    other = tmp_path / "other.csv"
    other.write_text(f"case,question,label,image\n{ASKED[0].id},arrangement,wrong,{'0' * 64}\n")
    with raises("nothing-to-do", "other.csv", error=DataError):
        judge_selection(roots, other)
