"""What people label straight from judged runs: the judge's own questions, strata alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import JudgeSettings, evaluate_run
from counterprior.eval.people.drawn import SAMPLE, DrawnSample, open_audit
from counterprior.eval.results.scoring import ScoreSettings, score_runs
from counterprior.labels import read_labels

SUITE = "t2i_homogenization"


@pytest.fixture(scope="module")
def runs(text_release: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two generators of different bias, judged by pixels; read only."""
    found = []
    for name, bias in (("weak", 0), ("strong", 2)):
        out = tmp_path_factory.mktemp("drawn") / name
        settings = RunSettings(SUITE, str(text_release), out, limit=12)
        evaluate_run(settings, f"render:?order_bias={bias}", ["pixels"], JudgeSettings())
        found.append(out)
    return found


def test_a_judges_questions_are_drawn_with_its_words_and_answers(
    runs: list[Path], tmp_path: Path
) -> None:
    audit = open_audit(runs, "judge", tmp_path / "labels", n=16)
    sample = DrawnSample.read(tmp_path / "labels" / SAMPLE)
    assert len(audit.tasks) == len(sample.items) == 16
    assert set(Counter(item.runs[0] for item in sample.items)) == {"weak", "strong"}
    # Every answer stands for as many as its stratum has for each that was drawn of it.
    keys = {(item.case, item.images[0]) for item in sample.items}
    assert len(keys) == 16  # an image that both runs have is asked about once
    assert 30 < sum(item.weight for item in sample.items) <= 48
    task, item = audit.tasks[0], sample.items[0]
    assert dict(task.texts)["prompt"] == item.prompt and "left" in dict(task.texts)["asked"]
    labels = {label for label, _ in task.options}
    assert labels == {"first_left", "first_right", "invalid"}
    for label, digit in task.options:
        assert digit in dict(task.texts)["asked"] and label
    assert "pixels" not in str(audit.state("ann")) and "weak" not in str(audit.state("ann"))


def test_its_labels_are_read_by_score(
    runs: list[Path], tmp_path: Path, cli: Callable[..., object]
) -> None:
    folder = tmp_path / "labels"
    audit = open_audit(runs, "judge", folder, n=40)
    for task in audit.tasks:
        audit.click("ann", task.id, {"label": task.options[0][0]})
    labels = read_labels(folder / "ann.jsonl")
    assert len(labels) == len(audit.tasks) > 30 and all(len(label.image) == 64 for label in labels)
    assert audit.agreement()["done"] == {"ann": len(labels)}
    judged = score_runs(runs, ScoreSettings(labels=folder / "ann.jsonl"))
    counted = [one.result.card.agreement["order"].n for one in judged]
    # A label of an image that both have counts for both.
    assert sum(counted) >= len(labels) and min(counted) > 10


def test_images_for_verdicts_come_from_every_run_and_group(
    runs: list[Path], tmp_path: Path
) -> None:
    audit = open_audit(runs, "verdict", tmp_path / "labels", n=20)
    sample = DrawnSample.read(tmp_path / "labels" / SAMPLE)
    assert set(Counter(item.runs[0] for item in sample.items).values()) <= {9, 10, 11}
    audit.click("ann", audit.tasks[0].id, {"human_verdict": "PASS"})
    (label,) = read_labels(tmp_path / "labels" / "ann.jsonl")
    assert label.label == "PASS" and label.image == sample.items[0].images[0]
