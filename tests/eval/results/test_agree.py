"""Metrics against people: published counts come out, and what is missing stays missing."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import raises
from scipy.stats import spearmanr

from counterprior.eval.results.agree import agreement, human_scores, read_scores, run_agree
from counterprior.human_labels import read_labels
from counterprior.parsing import RowError

Run = Callable[..., subprocess.CompletedProcess[str]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def counted(tp: int, fp: int, fn: int, tn: int) -> tuple[dict[str, float], dict[str, float | None]]:
    cases = [(1, 1)] * tp + [(1, 0)] * fp + [(0, 1)] * fn + [(0, 0)] * tn
    names = [f"s{i}" for i in range(len(cases))]
    scores = {name: float(says) for name, (says, _) in zip(names, cases, strict=True)}
    return scores, {name: float(true) for name, (_, true) in zip(names, cases, strict=True)}


def test_the_published_counts_of_visor_give_its_row_with_the_columns_exchanged_back() -> None:
    found = agreement("visor", *counted(tp=617, fp=374, fn=96, tn=913))
    estimates = found["estimates"]
    percent = {name: round(100 * estimate["value"], 2) for name, estimate in estimates.items()}
    assert (percent["precision"], percent["recall"]) == (62.26, 86.54)
    assert (percent["accuracy"], percent["npv"], percent["f1"]) == (76.5, 90.49, 72.42)
    for name, estimate in estimates.items():
        low, high = estimate["interval"]
        assert low < estimate["value"] < high, name
    assert found["estimates"]["spearman"]["value"] == pytest.approx(
        found["estimates"]["pearson"]["value"]
    )


def test_correlations_are_scipys() -> None:
    rng = np.random.default_rng(3)
    x = rng.random(60)
    y = np.clip(x + rng.normal(0, 0.3, 60), 0, 1)
    names = [f"s{i}" for i in range(60)]
    shuffled = dict(sorted(zip(names, x.tolist(), strict=True), key=lambda pair: pair[1]))
    found = agreement("m", shuffled, dict(zip(names, y.tolist(), strict=True)))
    assert found["estimates"]["spearman"]["value"] == pytest.approx(spearmanr(x, y).statistic)


def test_missing_scores_and_undecided_labels_are_left_out_and_counted(tmp_path: Path) -> None:
    scores = write(
        tmp_path / "scores.jsonl",
        [
            {"sample_id": "a", "pse": 0.9, "clip": 0.3, "note": "x"},
            {"sample_id": "b", "pse": None, "clip": 0.1},
            {"sample_id": "c", "pse": 0.4, "clip": 0.2},
        ],
    )
    labels = write(
        tmp_path / "labels.jsonl",
        [
            {"sample_id": "a", "label": "PASS", "annotator": "ann"},
            {"sample_id": "a", "label": 0.5, "annotator": "bo"},
            {"sample_id": "b", "label": "missing"},
            {"sample_id": "c", "human_verdict": "UNDECIDABLE"},
        ],
    )
    assert human_scores(read_labels(labels)) == {"a": 0.75, "b": 0.0, "c": None}
    assert list(read_scores(scores)) == ["pse", "clip"]
    pse, clip = run_agree(scores, labels)
    assert (pse["n"], pse["unscored"], pse["undecided"]) == (1, 1, 1)
    assert (clip["n"], clip["unscored"], clip["undecided"]) == (2, 0, 1)
    assert pse["estimates"]["specificity"] == {"value": None, "interval": None}
    assert pse["estimates"]["spearman"]["value"] is None


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([{"sample_id": "a", "m": float("nan")}], [], ("not-a-number", "scores.jsonl:1: m", "nan")),
        ([{"sample_id": "a", "m": 1}] * 2, [], ("duplicate-id", "a")),
        ([{"m": 1}], [], ("missing-field", "sample_id")),
        ([{"sample_id": "a", "m": "x"}], [], ("missing-column",)),
        (
            [{"sample_id": "a", "m": 1}],
            [{"sample_id": "b", "label": 1}],
            ("unknown-reference", ":1: case", "l.jsonl:1", "case 'b'"),
        ),
        (
            [{"sample_id": "a", "m": 1}],
            [{"sample_id": "a", "label": "maybe"}],
            ("bad-value", ":1: label", "l.jsonl:1"),
        ),
        (
            [{"sample_id": "a", "m": 1}],
            [{"sample_id": "a", "label": 2}],
            ("bad-value", ":1: label", "l.jsonl:1", "2"),
        ),
        ([{"sample_id": "a", "m": 1}], [{"sample_id": "a"}], ("missing-field",)),
        (
            [{"sample_id": "a", "m": 1}],
            [{"case": "a", "question": q, "label": 1} for q in "xy"],
            ("conflicting-options", ":2: question", "l.jsonl:2", "y", "x"),
        ),
    ],
)
def test_bad_rows_are_named(
    tmp_path: Path, scores: Any, labels: Any, reason: tuple[str, ...]
) -> None:
    with raises(*reason, error=RowError):
        run_agree(write(tmp_path / "scores.jsonl", scores), write(tmp_path / "l.jsonl", labels))


def test_the_command(tmp_path: Path, cli: Run) -> None:
    given, human = counted(8, 2, 1, 9)
    scores = write(tmp_path / "s.jsonl", [{"sample_id": k, "pse": v} for k, v in given.items()])
    labels = write(tmp_path / "l.jsonl", [{"sample_id": k, "label": v} for k, v in human.items()])
    (found,) = run_agree(scores, labels)
    assert found["counts"] == {"tp": 8, "fp": 2, "fn": 1, "tn": 9}
    text = cli("agree", scores, "--labels", labels)
    assert "precision      0.8000 [0.4902, 0.9433]" in text.stdout
    with raises("unknown-name", "clip", "pse", error=RowError):
        run_agree(scores, labels, ["clip"])
