"""The gate: two builds are let pass if they are shown to draw alike, and only then."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from refusals import raises
from scored import cases, image_run, judged_as

from counterprior.eval.results.gate import decide, gate, paired_drift
from counterprior.eval.results.scoring import ScoreSettings

Cli = Callable[..., subprocess.CompletedProcess[str]]
ASKED = cases(200, clusters=100)
LABELS = {case.id: "correct" if i % 4 else "wrong" for i, case in enumerate(ASKED)}


def build(root: Path, changed: Mapping[str, str], shade: int = 100, lost: int = 0) -> Path:
    """A judged run: `LABELS` but for what changed, without the images of the first `lost` cases."""
    gone = {case.id: "missing" for case in ASKED[:lost]}
    image_run(root, ASKED, dict.fromkeys(LABELS, shade), gone)
    labels = {**LABELS, **changed}
    judged_as(root, {case: label for case, label in labels.items() if case not in gone})
    return root


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the trusted build."""
    return build(tmp_path_factory.mktemp("gate") / "base", {})


def flipped(number: int) -> dict[str, str]:
    """Labels of so many cases that were right and are wrong, one a pair of entities."""
    right = [case.id for case in ASKED if LABELS[case.id] == "correct"]
    return dict.fromkeys(right[:number], "wrong")


@pytest.mark.parametrize(
    ("changed", "lost", "code", "decision"),
    [
        (0, 0, 0, "equivalent"),
        (1, 0, 0, "equivalent"),
        (5, 0, 3, "undecided"),
        (30, 0, 1, "different"),
        # Images that are missing don't make a build pass: nothing but `valid` says so.
        (0, 30, 1, "different"),
    ],
)
def test_the_exit_code_is_the_decision(
    cli: Cli, base: Path, tmp_path: Path, changed: int, lost: int, code: int, decision: str
) -> None:
    other = build(tmp_path / "other", flipped(changed), lost=lost)
    if lost or code == 3:
        shown = cli("gate", base, other, "--margin", "3")
        assert shown.returncode == code, shown.stderr
        assert shown.stdout.rstrip().splitlines()[-1].startswith(decision), shown.stdout
        pairs = f"{200 - lost} of the same prompt and seed, {200 - lost} with the same"
        assert pairs in shown.stdout
    listed = cli("gate", base, other, "--margin", "3", "--json")
    assert listed.returncode == code, listed.stderr
    facts = json.loads(listed.stdout)
    assert facts["decision"] == decision
    assert facts["images"]["excluded"] == ({"missing in one run": lost} if lost else {})
    score, valid = facts["drifts"]
    assert score["n"] == 200 - lost and valid["score"] == "valid" and valid["n"] == 200
    assert valid["difference"] == pytest.approx(-lost / 2) and score["n"] == 200 - lost
    if not lost:
        assert score["difference"] == pytest.approx(-changed / 2)
    low, high = score["interval"]
    assert low <= score["difference"] <= high


def test_undecided_says_how_many_rows_decide(base: Path, tmp_path: Path) -> None:
    roots = base, build(tmp_path / "other", flipped(5))
    decided = gate(roots, 3, ScoreSettings())
    drift = decided.drifts[0]
    reach = max(drift.value - drift.interval.low, drift.interval.high - drift.value)
    assert decided.factor == pytest.approx((reach / (3 - 2.5)) ** 2) and decided.factor > 1
    assert math.isnan(gate(roots, 10, ScoreSettings()).factor)


def test_pixels_are_compared_by_the_published_formulas(base: Path, tmp_path: Path) -> None:
    roots = base, build(tmp_path / "other", {}, 110)
    images = gate(roots, 3, ScoreSettings()).images
    assert (images.both, images.same_bytes, images.compared, images.same_pixels) == (200, 0, 200, 0)
    assert images.psnr.value == pytest.approx(20 * math.log10(255 / 10))
    constant = (0.01 * 255) ** 2
    ssim = (2 * 100 * 110 + constant) / (100**2 + 110**2 + constant)
    assert images.ssim.value == pytest.approx(ssim) == images.least_ssim


def test_refusals(cli: Cli, base: Path, tmp_path: Path) -> None:
    for margin in (0.0, -3.0, math.nan, math.inf):
        with raises("bad-option", "no positive number"):
            gate((base, tmp_path / "other"), margin, ScoreSettings())
    with raises("duplicate-id", "twice"):
        gate((base, base), 3, ScoreSettings())
    other = image_run(tmp_path / "unjudged", ASKED, dict.fromkeys(LABELS, 7))
    assert "nobody has judged" in cli("gate", base, other, "--margin", "3").stderr
    rows = image_run(tmp_path / "rows", ASKED[:9], dict.fromkeys(LABELS, 7), digest="1")
    assert "different rows" in cli("gate", base, rows, "--margin", "3").stderr
    assert "--margin" in cli("gate", base, other).stderr


def decisions(drift: float, noise: float, items: int, experiments: int = 60) -> list[str]:
    """Decisions at a margin of 3 over experiments.

    drift: true loss in points; noise: share of items whose answer changes either way.
    """
    verdicts = []
    for seed in range(experiments):
        rng = np.random.default_rng(seed)
        a = (rng.random(items) < 0.6).astype(float)
        worse = rng.random(items) < noise / 2 + max(0.0, drift) / 100 / 0.6
        better = rng.random(items) < noise / 2 * 0.6 / 0.4 + max(0.0, -drift) / 100 / 0.4
        b = np.where(a == 1, np.where(worse, 0.0, 1.0), np.where(better, 1.0, 0.0))
        clusters = [str(i // 2) for i in range(items)]
        columns = a[:, None], b[:, None]
        drifted = paired_drift("test", ("base", "run"), "valid", *columns, clusters, None)
        verdicts.append(decide([drifted], 3)[0].claim.verdict)
    return verdicts


@pytest.mark.slow
def test_it_does_not_flicker() -> None:
    # Answers that change either way by chance are no drift, and never a failure.
    still = decisions(0, 0.1, 1600)
    assert still.count("different") == 0 and still.count("equivalent") > 56
    # A drift at the margin passes in 5 % of experiments, one of twice its size never.
    assert decisions(3, 0.1, 1600).count("equivalent") / 60 < 0.09
    beyond = decisions(6, 0.1, 1600)
    assert beyond.count("equivalent") == 0 and beyond.count("different") > 40
    # A build that became better is another build, too.
    better = decisions(-6, 0.1, 1600)
    assert better.count("equivalent") == 0 and better.count("different") > 40
