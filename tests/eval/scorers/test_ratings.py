"""Human ratings as a scorer: by the digest of an image, averaged over annotators."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.engine.image_scores import score_images
from counterprior.eval.engine.run import Run
from counterprior.eval.results.quality import read_quality
from counterprior.eval.scorers import as_scorer
from counterprior.parsing import RowError

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def labels(path: Path, *rows: tuple[str, str, object, str]) -> Path:
    """A file of labels: annotator, question, label, image."""
    lines = [
        f"c{image[:4]},{question},{label},{who},{image}" for who, question, label, image in rows
    ]
    path.write_text("\n".join(["case,question,label,annotator,image", *lines]) + "\n")
    return path


A, B = "a" * 64, "b" * 64


def test_ratings_are_means_over_annotators(tmp_path: Path) -> None:
    rows = [("x", "overall", 7, A), ("y", "overall", 4, A), ("x", "fidelity", 1, A)]
    file = labels(tmp_path / "l.csv", *rows, ("x", "overall", 2, B))
    scorer = as_scorer(f"ratings:{file}")
    found = scorer.score_digests([A, B, "c" * 64])  # type: ignore[attr-defined]
    assert found[:2] == [5.5, 2] and math.isnan(found[2])
    assert as_scorer(f"ratings:{file}?field=fidelity").score_digests([A]) == [1]  # type: ignore[attr-defined]
    # Other ratings are another scorer: scores of earlier ones are not taken for theirs.
    labels(tmp_path / "m.csv", *rows, ("x", "overall", 3, B))
    assert as_scorer(f"ratings:{tmp_path / 'm.csv'}").identity() != scorer.identity()


def test_faults_of_ratings_are_named(tmp_path: Path) -> None:
    with raises("no-such-file", "audit serve", error=UsageError):
        as_scorer(f"ratings:{tmp_path / 'none'}")
    file = labels(tmp_path / "l.csv", ("x", "overall", "good", A))
    with raises("bad-value", "l.csv:2: label", error=RowError):
        as_scorer(f"ratings:{file}")
    with raises("nothing-to-do", "'style'", error=DataError):
        as_scorer(f"ratings:{file}?field=style")


def test_a_runs_ratings_are_scores_with_intervals(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "p.txt").write_text("a cat above a dog\na cow above a dog\na cat above a cow\n")
    made = cli(
        *("eval", "--prompts", "p.txt", "--generator", "render:", "--judge", "scene"),
        *("--unchecked", "--out", "r"),
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    digests = [image.sha256 for image in Run.open(tmp_path / "r").images().values()]
    rated = [("x", "overall", 6, digests[0]), ("x", "overall", 3, digests[1])]
    file = labels(tmp_path / "l.csv", *rated)
    ((_, tally),) = score_images(tmp_path / "r", [f"ratings:{file}"])
    assert (tally.scored, tally.failed) == (2, 1) and "nobody" in tally.first_error
    (quality,) = read_quality(Run.open(tmp_path / "r"))
    assert quality.score.value == pytest.approx(4.5) and quality.score.n == 2
