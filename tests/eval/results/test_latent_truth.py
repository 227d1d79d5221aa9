"""`score --latent`: one truth from several judges and people."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from judged import LABELS, SEEN, judged_run

from counterprior.eval.core import Case, Outcome, Verdict
from counterprior.eval.engine.run import Run
from counterprior.eval.results.scoring import ScoreSettings, score_run
from counterprior.eval.store.verdicts import VERDICTS, Answered
from counterprior.eval.suites import open_suite
from counterprior.storage import RecordLog

Cli = Callable[..., CompletedProcess[str]]
OTHER = {"correct": "wrong", "wrong": "correct"}
ACCURACIES = {"test": 0.9, "second": 0.8, "third": 0.7}
TRUE_RATE = 0.3


def run_of(folder: Path, judges: list[str], n: int = 240) -> tuple[Path, dict[str, str]]:
    """A run under judges of these accuracies, which call a tenth of wrong images invalid."""
    rng = random.Random(4)
    cases = [Case(f"row{i}", "reverse", 0, 0, "", (f"pair{i}",)) for i in range(n)]
    truth = {c.id: "correct" if rng.random() < TRUE_RATE else "wrong" for c in cases}
    said: dict[str, dict[str, str]] = {}
    for judge in judges:
        for case, label in truth.items():
            answer = label if rng.random() < ACCURACIES[judge] else OTHER[label]
            if label == "wrong" and rng.random() < 0.1:
                answer = "invalid"
            said.setdefault(judge, {})[case] = answer
    first = [
        Outcome(c, {("arrangement", "original"): Verdict(said[judges[0]][c.id])}) for c in cases
    ]
    root = judged_run(folder, first)
    for judge in judges[1:]:
        log = Run.open(root).judge({"kind": judge, "persona": "standard"})
        with RecordLog(log.root / VERDICTS) as records:
            for case, label in said[judge].items():
                answered = Answered(
                    key=f"{case}/arrangement/original",
                    case=case,
                    image=SEEN,
                    question="arrangement",
                    probe="original",
                    labels=LABELS,
                    answers={},
                    sided=True,
                    verdict=Verdict(label),
                )
                records.append(answered.to_record())
    return root, truth


def labels_file(path: Path, truth: dict[str, str], n: int) -> Path:
    rows = [f"{case},arrangement,{label}" for case, label in list(truth.items())[:n]]
    path.write_text("\n".join(["case,question,label", *rows]) + "\n")
    return path


@pytest.mark.slow
def test_three_judges_and_people_give_one_score_by_command(tmp_path: Path, cli: Cli) -> None:
    root, truth = run_of(tmp_path / "run", list(ACCURACIES))
    labels = labels_file(tmp_path / "labels.csv", truth, 40)
    done = cli("score", root, "--labels", labels, "--latent", "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    rate = 100 * sum(label == "correct" for label in truth.values()) / len(truth)
    scores = [{s["name"]: s for s in r["scores"] if s["group"] == "all"} for r in results]
    combined = [of["accuracy_reverse_latent"] for of in scores]
    assert len(combined) == 3 and all(score == combined[0] for score in combined)
    assert combined[0]["interval"][0] <= rate <= combined[0]["interval"][1]
    # All images are valid, though judges call a tenth of the wrong ones invalid: both are close.
    (first, *_) = scores
    both = [first[f"accuracy_reverse{name}_latent"]["value"] for name in ("_unconditional", "")]
    assert 0.9 * both[1] < both[0] <= both[1]
    errors = [abs(of["accuracy_reverse"]["value"] - rate) for of in scores]
    assert abs(combined[0]["value"] - rate) < min(errors)
    assert combined[0]["n"] == 240 and "err independently" in combined[0]["warning"]
    by_judge = {r["judge"]: r["card"]["latent"]["arrangement"]["correct"] for r in results}
    assert by_judge["test"][0] > by_judge["third"][0]
    assert all(low <= share <= high for share, low, high in by_judge.values())
    assert any("people recognize, by all raters together" in n for n in results[0]["notes"])
    printed = cli("score", root, "--labels", labels, "--latent").stdout
    assert "accuracy_reverse_latent" in printed and "recognizes, by all raters" in printed
    (plain, *_) = score_run(root, ScoreSettings())
    assert "accuracy_reverse_latent" not in plain.whole and not plain.result.card.latent


@pytest.mark.slow
def test_a_latent_score_of_few_labels_or_images_says_how_well_its_interval_holds(
    tmp_path: Path,
) -> None:
    narrow = "held the truth in 90 %"
    for n, labeled, warned in ((240, 40, False), (240, 20, True), (200, 40, True)):
        folder = tmp_path / f"{n}-{labeled}"
        root, truth = run_of(folder / "run", list(ACCURACIES), n)
        labels = labels_file(folder / "labels.csv", truth, labeled)
        (first, *_) = score_run(root, ScoreSettings(labels=labels, latent=True))
        assert (narrow in first.whole["accuracy_reverse_latent"].warning) is warned


@pytest.mark.slow
def test_too_few_judges_without_an_anchor_are_refused(tmp_path: Path, cli: Cli) -> None:
    root, truth = run_of(tmp_path / "run", ["test", "second"])
    refused = cli("score", root, "--latent")
    assert refused.returncode == 2 and "too-few-raters" in refused.stderr
    assert "2 judges of arrangement" in refused.stderr and "--labels" in refused.stderr
    labels = labels_file(tmp_path / "labels.csv", truth, 40)
    assert cli("score", root, "--latent", "--labels", labels).returncode == 0


def test_judges_that_differ_by_a_lot_are_named_with_both_numbers(tmp_path: Path, cli: Cli) -> None:
    root, _ = run_of(tmp_path / "run", ["test", "third"])
    first, second = score_run(root, ScoreSettings())
    headline = open_suite("t2i_correctness").headline.score
    values = [f"{run.whole[headline].value:.1f}" for run in (first, second)]
    for run in (first, second):
        (note,) = [n for n in run.result.notes if "differ on the same images" in n]
        assert " and ".join(values) in note
        assert f"arrangement {run.result.alpha['arrangement']:.3f}" in note
    assert "differ on the same images" in " ".join(cli("score", root).stdout.split())
    alike, _ = run_of(tmp_path / "alike", ["test"])
    (alone,) = score_run(alike, ScoreSettings())
    assert not any("differ on" in note for note in alone.result.notes)
