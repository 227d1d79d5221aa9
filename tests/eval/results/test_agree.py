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
    assert list(read_scores(scores).by_metric) == ["pse", "clip"]
    pse, clip = run_agree(scores, labels)
    assert (pse["n"], pse["unscored"], pse["undecided"]) == (1, 1, 1)
    assert (clip["n"], clip["unscored"], clip["undecided"]) == (2, 0, 1)
    assert pse["estimates"]["specificity"] == {"value": None, "interval": None, "n": 0}
    assert pse["yes"] == {"people": 1.0, "metric": 1.0}
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
    text = cli("audit", "analyze", scores, "--labels", labels)
    assert "precision      0.8000 [0.4270, 0.9555]   n 10\n" in text.stdout
    assert "people pass 0.4500 of them, the metric 0.5000" in text.stdout
    assert "--clusters COLUMN" in text.stdout
    with raises("unknown-name", "clip", "pse", error=RowError):
        run_agree(scores, labels, ["clip"])


def prompts_with_seeds(seed: int, alike: float = 1.0) -> tuple[list[dict[str, Any]], Any]:
    """25 prompts of four seeds, whose scores and labels are alike to some degree."""
    rng = np.random.default_rng(seed)
    prompt = np.repeat(np.arange(25), 4)

    def normal() -> np.ndarray:
        common, own = rng.normal(size=25)[prompt], rng.normal(size=100)
        return np.sqrt(alike) * common + np.sqrt(1 - alike) * own

    x, y = normal(), normal()
    rows = [
        {"sample_id": f"s{i}", "pse": float(x[i]), "prompt_id": int(prompt[i])} for i in range(100)
    ]
    return rows, [{"sample_id": f"s{i}", "label": int(y[i] > 0)} for i in range(100)]


@pytest.mark.slow
def test_seeds_of_a_prompt_are_no_independent_evidence(tmp_path: Path) -> None:
    """Score and label have nothing in common but the prompt of each image."""
    held: dict[str, list[bool]] = {"prompt_id": [], "sample": []}
    for seed in range(40):
        rows, labels = prompts_with_seeds(seed)
        cluster_of = {row["sample_id"]: str(row["prompt_id"]) for row in rows}
        scores = {row["sample_id"]: row["pse"] for row in rows}
        human = {label["sample_id"]: float(label["label"]) for label in labels}
        for name, clusters in (("prompt_id", cluster_of), ("sample", None)):
            result = agreement("pse", scores, human, 0.0, ["spearman"], clusters)
            for kind, truth in (("spearman", 0.0), ("accuracy", 0.5)):
                low, high = result["estimates"][kind]["interval"]
                held[name].append(low <= truth <= high)
    assert np.mean(held["prompt_id"]) > 0.9 > 0.75 > np.mean(held["sample"])


def test_the_command_clusters_by_prompt(tmp_path: Path, cli: Run) -> None:
    rows, labels = prompts_with_seeds(0)
    scores, people = write(tmp_path / "s.jsonl", rows), write(tmp_path / "l.jsonl", labels)
    text = cli("audit", "analyze", scores, "--labels", people, "--threshold", "0").stdout
    assert "100 images in 25 clusters by prompt_id" in text and "--clusters" not in text
    assert [line for line in text.splitlines() if line.startswith("prompt_id")] == []
    (row,) = json.loads(cli("audit", "analyze", scores, "--labels", people, "--json").stdout)
    assert (row["clusters"], row["clustered_by"]) == (25, "prompt_id")
    renamed = [
        {"scene": r["prompt_id"], "sample_id": r["sample_id"], "pse": r["pse"]} for r in rows
    ]
    scores = write(tmp_path / "s.jsonl", renamed)
    (by_scene,) = run_agree(scores, people, clusters="scene")
    assert by_scene["estimates"] == row["estimates"]
    with raises("missing-column", "place", "scene", error=RowError):
        run_agree(scores, people, clusters="place")
    renamed[3]["scene"] = None
    with raises("missing-field", "s.jsonl:4: scene", error=RowError):
        run_agree(write(scores, renamed), people, clusters="scene")


def test_images_without_any_score_are_counted(tmp_path: Path) -> None:
    rows = [{"sample_id": "a", "pse": 0.9}, {"sample_id": "b", "pse": None}]
    labels = [{"sample_id": name, "label": "PASS"} for name in "ab"]
    (row,) = run_agree(write(tmp_path / "s.jsonl", rows), write(tmp_path / "l.jsonl", labels))
    assert (row["n"], row["unscored"]) == (1, 1)


def test_few_labels_of_one_kind_are_named() -> None:
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(60)]
    scores = dict(zip(names, rng.random(60).tolist(), strict=True))
    human = {name: float(number >= 4) for number, name in enumerate(names)}
    (warning,) = agreement("m", scores, human, kinds=["pearson"])["warnings"]
    assert warning.startswith("pearson: few images or clusters")
    assert agreement("m", scores, human | dict.fromkeys(names[:30], 0.0))["warnings"] == []


@pytest.mark.parametrize(
    ("n", "flipped", "warned"), [(60, 2, True), (60, 12, False), (120, 2, False)]
)
def test_scores_that_all_but_decide_the_labels_have_a_warning(
    n: int, flipped: int, warned: bool
) -> None:
    names = [f"s{i}" for i in range(n)]
    scores = {name: float(number) for number, name in enumerate(names)}
    human = {name: float(number >= n // 2) for number, name in enumerate(names)}
    human |= dict.fromkeys(names[n // 2 : n // 2 + flipped], 0.0)
    human |= dict.fromkeys(names[n // 2 - flipped : n // 2], 1.0)
    for better in (1, -1):
        signed = {name: better * score for name, score in scores.items()}
        warnings = agreement("m", signed, human, kinds=["pearson", "spearman", "kendall"])[
            "warnings"
        ]
        assert [w.partition(":")[0] for w in warnings] == ["kendall", "spearman"] * warned
        assert all("all but decide" in warning for warning in warnings)
