"""`audit calibrate`: the threshold that agrees best with human acceptance, and its uncertainty."""

import csv
import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior.eval.engine.data import read_rows
from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.run import Run
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import as_generator
from counterprior.eval.people.gate import GRID, GateSample, calibrate
from counterprior.eval.stats.agreement import cohen_kappa, confusion
from counterprior.eval.suites.worlds import QUESTIONS, image_score

Cli = Callable[..., subprocess.CompletedProcess[str]]


def gate_sample(cut: float, noise: float, n: int = 400, seed: int = 3) -> GateSample:
    """Scores anywhere in [0, 1], accepted from `cut` on, save for a share of slips; 40 laws."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    accepted = (scores >= cut) != (rng.random(n) < noise)
    return GateSample(scores, accepted, np.array([f"law{number % 40}" for number in range(n)]))


def test_finds_the_threshold_of_the_annotators() -> None:
    labeled = gate_sample(0.7, 0.05)
    found = calibrate(labeled)
    assert found["chosen"]["threshold"] == 0.7
    low, high = found["chosen"]["threshold_95"]
    assert 0.6 <= low <= 0.7 <= high <= 0.8
    assert found["published"]["threshold"] == 0.5
    assert found["published"]["kappa"] < found["chosen"]["kappa_95"][0]
    assert found["warnings"] == []
    for point in found["grid"]:
        passes = np.where(labeled.scores >= point["threshold"], "yes", "no").tolist()
        said = np.where(labeled.accepted, "yes", "no").tolist()
        assert point["kappa"] == pytest.approx(
            cohen_kappa(confusion(said, passes, ["no", "yes"])).value
        )
        assert point["agreement"] == pytest.approx(np.mean(np.array(passes) == said))


def test_labels_unrelated_to_the_score_have_no_kappa_held_out() -> None:
    found = calibrate(gate_sample(0.5, 0.5))
    held_out = found["cross_validated"]
    assert held_out["kappa"] < 0.05 < held_out["optimism"]
    assert len(held_out["chosen_share"]) > 3
    assert sum(held_out["chosen_share"].values()) == pytest.approx(1)


def test_of_equally_good_thresholds_the_published_one_is_chosen() -> None:
    scores = np.array([0.25, 0.75] * 30)
    found = calibrate(GateSample(scores, scores > 0.5, np.array([f"l{i % 6}" for i in range(60)])))
    assert found["chosen"]["threshold"] == 0.5 and found["chosen"]["kappa"] == 1
    assert found["plateau"] == [0.3, 0.75]
    assert found["cross_validated"]["optimism"] == pytest.approx(0)


def test_an_edge_and_few_labels_are_named() -> None:
    found = calibrate(gate_sample(0.97, 0, n=200))
    assert found["chosen"]["threshold"] == GRID[-1]
    edge, few = found["warnings"]
    assert "0.95 is the largest of the grid" in edge and "accepted" in few


def test_order_changes_nothing() -> None:
    labeled = gate_sample(0.6, 0.2, n=120)
    order = np.random.default_rng(0).permutation(120)
    assert calibrate(GateSample(*(part[order] for part in labeled))) == calibrate(labeled)


@pytest.mark.parametrize(
    ("labeled", "folds", "code", "facts"),
    [
        (gate_sample(0, 0, n=8), 2, "too-few-items", ("8 of 8", "L1")),
        (gate_sample(2, 0, n=8), 2, "too-few-items", ("0 of 8", "L1")),
        (gate_sample(0.5, 0, n=8), 9, "out-of-range", ("9 folds", "8 laws")),
    ],
)
def test_refuses_one_sided_labels_and_too_many_folds(
    labeled: GateSample, folds: int, code: str, facts: tuple[str, ...]
) -> None:
    with raises(code, *facts):
        calibrate(labeled, folds)


def write(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("case", "question", "label"), *rows])
    return path


@pytest.mark.slow
def test_the_command(full_release: Path, tmp_path: Path, cli: Cli) -> None:
    """People answer the three questions, as a judge; others accept where the scene is there."""
    run = tmp_path / "run"
    red = as_generator(lambda prompt, seed: Image.new("RGB", (32, 32), "red"))
    generate(RunSettings("counterfactual", str(full_release), run, limit=120), red)
    rng = random.Random(0)
    answers, accepted = [], []
    for case in Run.open(run).cases():
        said = {name: rng.choice(("yes", "no")) for name in case.weights}
        answers += [(case.id, name, label) for name, label in said.items()]
        if case.variant == "L1":
            accepted.append((case.id, "accept", said["assessment"]))
    answered, unsure = answers[:-3], ("L1", accepted[0][0])
    accepted[0] = (unsure[1], "accept", "unsure")
    judge = f"human:{write(tmp_path / 'answers.csv', answered)}"
    assert cli("judge", run, "--judge", judge).returncode == 0
    done = cli("audit", "calibrate", run, "--labels", write(tmp_path / "a.csv", accepted), "--json")
    assert done.returncode == 0, done.stderr
    ((name, found),) = json.loads(done.stdout).items()
    assert name == "human" and found["left_out"]["neither yes nor no"] == 1
    assert found["labeled"] + sum(found["left_out"].values()) == len(accepted)
    # The assessment weighs more than the other two together: it alone passes the gate.
    assert found["chosen"]["threshold"] == 0.5 and found["chosen"]["kappa"] == 1
    assert found["prr"]["published"] == found["prr"]["chosen"]
    nobody = cli("audit", "calibrate", run, "--labels", tmp_path / "a.csv", "--question", "fine")
    assert_refused(nobody, "nothing-to-do", tmp_path / "a.csv", "question", "'fine'")
    accepted[1] = ("elsewhere", "accept", "yes")
    other = cli("audit", "calibrate", run, "--labels", write(tmp_path / "b.csv", accepted))
    assert_refused(other, "unknown-reference", "b.csv:3: case:", "'elsewhere'")


@pytest.mark.slow
def test_numbers_make_the_gate_more_than_one_question(
    full_release: Path, tmp_path: Path, cli: Cli
) -> None:
    """A judge answers each question with a number from 0 to 10, in the file of a script."""
    rng, lines = random.Random(1), []
    rows = {row.id: row for row in read_rows(str(full_release), "counterfactual").rows}
    stated: dict[str, float] = {}
    for row in rows.values():
        for question in (getattr(row, name) for name in QUESTIONS):
            stated.setdefault(question.text, rng.choice((0, 3, 4, 4.5, 5, 6, 7, 10)))
    for text, number in sorted(stated.items(), key=lambda item: -len(item[0])):
        contains = [f"Question: {text}\n", "from 0 to 10"]
        lines.append({"role": "judge", "contains": contains, "answer": f"{number:g}"})
    (tmp_path / "script.json").write_text(json.dumps(lines))
    out = tmp_path / "run"
    done = cli(
        *("eval", "--suite", "counterfactual", "--data", full_release, "--limit", "60"),
        *("--generator", "python:gold_judges:painter", "--out", out, "--unchecked"),
        *("--judge", f"scripted:{tmp_path / 'script.json'}?answer=scale"),
    )
    assert done.returncode == 0, done.stderr
    (log,) = Run.open(out).judges()
    scores, deciding = [], []
    for outcome in outcomes(Run.open(out), log):
        asked = {name: getattr(rows[outcome.case.row], name) for name in QUESTIONS}
        numbers = {name: stated[question.text] / 10 for name, question in asked.items()}
        assert {name: outcome.verdict(name).number for name in asked} == numbers
        weights = {name: question.weight for name, question in asked.items()}
        mean = sum(weights[n] * numbers[n] for n in asked) / sum(weights.values())
        assert image_score(outcome) == pytest.approx(mean, abs=1e-12)
        if outcome.case.variant == "L1":
            scores.append((outcome.case.id, mean))
            deciding.append(numbers["assessment"])
    passes = [score >= 0.5 for _, score in scores]
    assert passes != [number >= 0.5 for number in deciding], "as yes or no they are the same"
    accepted = [(case, "accept", "yes" if score >= 0.4 else "no") for case, score in scores]
    labels = write(tmp_path / "a.csv", accepted)
    gated = cli("audit", "calibrate", out, "--labels", labels, "--json", "--folds", "2")
    (found,) = json.loads(gated.stdout).values()
    assert found["chosen"]["kappa"] == 1 and 0.3 < found["chosen"]["threshold"] <= 0.45
    assert found["published"]["kappa"] < 1
