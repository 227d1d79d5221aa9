"""`audit analyze` and `audit calibrate` know by the paths what is compared with human labels."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from refusals import assert_refused, raises

from counterprior.errors import UsageError
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import as_generator
from counterprior.eval.people.sources import kind_of

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(text_release: Path, tmp_path: Path) -> Path:
    """A run of two images."""
    folder = tmp_path / "run"
    red = as_generator(lambda prompt, seed: Image.new("RGB", (32, 32), "red"))
    generate(RunSettings("spatial_uc", str(text_release), folder, limit=2), red)
    return folder


def test_the_kind_is_known_by_the_paths(run: Path, tmp_path: Path) -> None:
    scores, ratings = tmp_path / "a=b.jsonl", tmp_path / "ratings"
    scores.write_text("")
    ratings.mkdir()
    assert kind_of([str(run), str(run)]).name == "runs"
    assert kind_of([f"gligen={scores}", "other=gone.jsonl"]).name == "verdicts"
    assert kind_of([str(scores)]).name == "scores"  # a file may have = in its name
    assert kind_of([str(ratings)]).name == "ratings"
    for mixed in ([str(run), "a=b"], [str(ratings), str(scores)]):
        with raises("unsupported", *mixed, error=UsageError):
            kind_of(mixed)


def test_an_option_of_another_kind_is_refused(run: Path, tmp_path: Path, cli: Cli) -> None:
    labels, ratings = ("--labels", "labels.csv"), tmp_path / "ratings"
    ratings.mkdir()
    analyze = ("audit", "analyze")
    for words, option in (
        ((run, *labels, "--threshold", "0.5"), "--threshold"),
        (("a=b.jsonl", *labels, "--judge", "pixels"), "--judge"),
        (("scores.jsonl", *labels, "--sample", "s.jsonl"), "--sample"),
        ((ratings, *labels), "--labels"),
    ):
        assert_refused(cli(*analyze, *words), "conflicting-options", option)
    assert_refused(cli(*analyze, run), "missing-option", "judged runs", "--labels")


def test_a_run_and_detections_are_calibrated_by_options_of_their_own(run: Path, cli: Cli) -> None:
    labels = ("--labels", "labels.csv")
    calibrate = ("audit", "calibrate")
    assert_refused(cli(*calibrate, "d.jsonl", *labels), "missing-option", "d.jsonl", "--rules")
    asked = cli(*calibrate, "d.jsonl", *labels, "--rules", "checker.yaml", "--question", "fine")
    assert_refused(asked, "missing-option", "--question")
    for words in (("--rules", "checker.yaml"), ("--risk", "0.1"), ("--delta", "0.2")):
        refused = cli(*calibrate, run, *labels, *words)
        assert_refused(refused, "conflicting-options", words[0], run)
    assert_refused(cli(*calibrate, run, run, *labels), "unsupported", "one run")
