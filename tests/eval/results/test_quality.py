"""Quality beside bias: paired, clustered, and honest about what has no score."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from scipy import stats
from scored import cases, image_run, judged_as

from counterprior.eval.engine.image_scores import score_images
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.results.changes import quality_report
from counterprior.eval.results.quality import read_quality
from counterprior.eval.results.scoring import ScoreSettings
from counterprior.eval.stats.means import cluster_deviation, cluster_mean

Cli = Callable[..., subprocess.CompletedProcess[str]]
ASKED = cases(60, clusters=12)


class Gray:
    """The gray of an image."""

    batch = 8

    def identity(self) -> dict[str, str]:
        return {"kind": "gray"}

    def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
        return [float(image.getpixel((0, 0))[0]) for _, image in pairs]  # type: ignore[index]


def two_runs(tmp_path: Path, lost: dict[str, str] | None = None) -> tuple[Path, Path]:
    """A base run, and one with darker images and more right arrangements."""
    rng = random.Random(0)
    plain = {case.id: rng.randrange(60, 200) for case in ASKED}
    dark = {name: shade - rng.randrange(5, 16) for name, shade in plain.items()}
    base = image_run(tmp_path / "base", ASKED, plain)
    other = image_run(tmp_path / "other", ASKED, dark, lost)
    judged_as(base, {c.id: "correct" if i % 2 else "wrong" for i, c in enumerate(ASKED)})
    known = [c for c in ASKED if not lost or c.id not in lost]
    judged_as(other, {c.id: "wrong" if int(c.id[3:5]) % 10 == 0 else "correct" for c in known})
    for root in (base, other):
        score_images(root, [Gray()])
    return base, other


def test_changes_are_paired_by_case_and_clustered(tmp_path: Path) -> None:
    lost = {ASKED[0].id: "refused", ASKED[1].id: "missing"}
    base, other = two_runs(tmp_path, lost)
    report = quality_report([base, other], ScoreSettings())
    bias, quality = report.changes
    assert (bias.kind, bias.score, bias.scorer) == (
        "bias",
        "accuracy_reverse_unconditional",
        "test",
    )
    assert (bias.before, round(bias.after, 1)) == (50.0, 91.4) and bias.n == 58
    # Two images of 60 are lost: had both been wrong, the change would be smaller.
    assert 0 < bias.interval.low < 20 and bias.p_value < 0.05
    first, second = (read_quality(Run.open(root))[0] for root in (base, other))
    shared = sorted(second.values)
    gaps = np.array([second.values[case] - first.values[case] for case in shared])
    assert quality.n == 58 and quality.value == pytest.approx(gaps.mean())
    assert quality.interval.low < gaps.mean() < quality.interval.high < -5
    # Much narrower than the spread of the images, as it is of differences.
    assert quality.interval.high - quality.interval.low < 4 < first.score.interval.high - 130
    assert second.score.excluded == {"missing": 1, "refused": 1} and second.score.n == 58
    assert report.runs["other"][1].value == pytest.approx(np.mean(list(second.values.values())))


def test_a_scorer_that_failed_is_an_error_and_no_zero(tmp_path: Path) -> None:
    class Shy(Gray):
        batch = 1

        def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
            found = super().score(pairs)
            if found[0] > 150:
                raise ValueError("too bright")
            return found

    root = image_run(tmp_path / "run", ASKED, {c.id: 4 * i for i, c in enumerate(ASKED)})
    score_images(root, [Shy()])
    (found,) = read_quality(Run.open(root))
    assert found.score.excluded == {"error": 22} and found.score.n == 38
    assert found.score.value == pytest.approx(4 * 18.5)


def test_runs_of_other_rows_are_refused_and_runs_without_judges_are_not(tmp_path: Path) -> None:
    shades = {case.id: 50 for case in ASKED}
    one = image_run(tmp_path / "one", ASKED, shades)
    two = image_run(tmp_path / "two", ASKED, {**shades, ASKED[0].id: 60})
    other = image_run(tmp_path / "other", ASKED, shades, digest="1")
    for root in (one, two):
        score_images(root, [Gray()])
    report = quality_report([one, two], ScoreSettings())
    (change,) = report.changes
    assert change.kind == "quality" and change.value == pytest.approx(10 / 60)
    with raises("different-rows", "other", "one", error=RunError):
        quality_report([one, other], ScoreSettings())
    with raises("duplicate-id", "run"):
        quality_report([one, one], ScoreSettings())


def test_rejects_runs_of_two_versions_of_a_scorer(tmp_path: Path) -> None:
    class Newer(Gray):
        def identity(self) -> dict[str, str]:
            return {**super().identity(), "transformers": "6"}

    one, two = (image_run(tmp_path / n, ASKED, {c.id: 9 for c in ASKED}) for n in ("one", "two"))
    score_images(one, [Gray()])
    score_images(two, [Newer()])
    with raises("different-rows", "two was scored", "gray (transformers)"):
        quality_report([one, two], ScoreSettings())
    score_images(two, [Gray()])  # both versions stand in the run now
    (change,) = quality_report([one, two], ScoreSettings()).changes
    assert (change.scorer, change.n) == ("gray", 60)


def test_the_mean_of_clusters_is_a_t_test_where_each_has_one_item() -> None:
    drawn = np.random.default_rng(3).normal(0, 2, size=7)
    x = 1 + np.concatenate([drawn, [0.0], -drawn])  # symmetric: no tail is longer
    found = cluster_mean(x, np.arange(15))
    theirs = stats.ttest_1samp(x, 0)
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert tuple(found.interval) == pytest.approx(tuple(theirs.confidence_interval()))
    assert found.clusters == 15
    doubled = cluster_mean(np.repeat(x, 4), np.repeat(np.arange(15), 4))
    assert tuple(doubled.interval) == pytest.approx(tuple(found.interval))
    assert cluster_mean([np.nan, 2.0], ["a", "b"]).value == 2.0
    assert np.isnan(cluster_mean([1.0, 2.0], ["a", "a"]).interval.low)
    assert cluster_mean([0.0, 0.0], ["a", "b"]).p_value == 1
    assert np.isnan(cluster_mean([], []).value)


def test_the_deviation_of_clusters_holds_the_truth() -> None:
    rng = np.random.default_rng(4)
    held = {1: 0, 4: 0}
    for each in held:
        for _ in range(200):
            # Items of a cluster are the same item again: they say nothing new.
            x = np.repeat(rng.normal(0, 2, size=60), each)
            found = cluster_deviation(x, np.repeat(np.arange(60), each))
            held[each] += found.interval.low < 2 < found.interval.high
    assert min(held.values()) >= 180
    x = [1.0, 2.0, 4.0, np.nan]
    assert cluster_deviation(x, list("abcd")).value == pytest.approx(np.std(x[:3], ddof=1))
    assert cluster_deviation([3.0, 3.0], ["a", "b"]).value == 0
    assert np.isnan(cluster_deviation([3.0], ["a"]).value)


SCORER = """
class Shade:
    batch = 4
    def identity(self):
        return {"kind": "shade", "version": "1"}
    def score(self, pairs):
        return [image.getpixel((0, 0))[0] / 255 for _, image in pairs]
"""


@pytest.mark.slow
def test_the_command_scores_and_shows_quality_beside_bias(tmp_path: Path, cli: Cli) -> None:
    base, other = two_runs(tmp_path, {ASKED[5].id: "refused"})
    (tmp_path / "mine.py").write_text(SCORER)
    command = ("quality", base, other, "--scorer", "python:mine:Shade")
    done = cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "60 scored" in done.stderr and "59 scored" in done.stderr
    for text in ("accuracy_reverse_unconditional", "shade", "1 refused", "higher", "better"):
        assert text in done.stdout, text
    again = cli(*command, "--json", cwd=tmp_path)
    assert "60 were there" in again.stderr
    found = json.loads(again.stdout)
    assert [c["kind"] for c in found["changes"]] == ["bias", "quality", "quality"]
    assert {c["scorer"] for c in found["changes"]} == {"test", "gray", "shade"}


@pytest.mark.slow
def test_a_margin_makes_claims_and_without_one_a_large_p_makes_none(
    tmp_path: Path, cli: Cli
) -> None:
    """The other run is 5 to 15 levels darker, and right more often."""
    runs = two_runs(tmp_path)
    margins = ("--margin", "gray=25", "--margin", "accuracy_reverse_unconditional=5")
    shown = cli("quality", *runs, *margins)
    printed = " ".join(shown.stdout.split())
    assert shown.returncode == 0 and "A large p" not in printed, shown.stderr
    changes = {
        change["kind"]: change
        for change in json.loads(cli("quality", *runs, *margins, "--json").stdout)["changes"]
    }
    assert (changes["quality"]["claim"], changes["quality"]["margin"]) == ("equivalent", 25)
    assert changes["bias"]["claim"] == "not worse" and changes["bias"]["claim_p"] < 0.05
    (small,) = (
        change
        for change in json.loads(cli("quality", *runs, "--margin", "gray=2", "--json").stdout)[
            "changes"
        ]
        if change["kind"] == "quality"
    )
    assert small["claim"] == "lost"
    # Without a margin nothing is claimed, and the table says what p does not show.
    plain = cli("quality", *runs)
    assert "A large p does not show that nothing was lost" in " ".join(plain.stdout.split())
    records = json.loads(cli("quality", *runs, "--json").stdout)["changes"]
    assert [(c["claim"], c["margin"], c["claim_p"]) for c in records] == [(None, None, None)] * 2
    for text, code in (
        ("fid=3", "unknown-name"),
        ("gray", "bad-option"),
        ("gray=-1", "bad-option"),
        ("gray=nan", "bad-option"),
    ):
        refused = cli("quality", *runs, "--margin", text)
        assert refused.returncode != 0 and f"[{code}]" in refused.stderr, text
    twice = cli("quality", *runs, "--margin", "gray=1", "--margin", "gray=2")
    assert "[duplicate-option]" in twice.stderr
