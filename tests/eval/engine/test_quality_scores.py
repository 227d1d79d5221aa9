"""Scores of a run's images: recorded once, whatever is killed, and never 0 for a failure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from scored import cases, image_run

from counterprior.agents.budget import BudgetError
from counterprior.cli.options import CallOptions, ScoreOptions
from counterprior.cli.quality import quality
from counterprior.errors import InUseError, UsageError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.engine.costs import Cost
from counterprior.eval.engine.features import image_features
from counterprior.eval.engine.image_scores import SCORES, ScorerFailed, score_images, scorers_of
from counterprior.eval.engine.run import Run, RunError
from counterprior.eval.results.quality import read_quality
from counterprior.storage import read_records

ASKED = cases(10)
SHADES = {case.id: 20 * number for number, case in enumerate(ASKED)}


class Brightness:
    """Scores by the gray and the block: the last digits depend on what stands beside an image."""

    def __init__(self, batch: int = 3, dies_after: int = 1000, fails: Sequence[int] = ()) -> None:
        self.batch, self.dies_after, self.fails = batch, dies_after, fails
        self.calls: list[int] = []

    def identity(self) -> dict[str, str]:
        return {"kind": "brightness", "batch": str(self.batch)}

    def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
        if sum(self.calls) >= self.dies_after:
            raise KeyboardInterrupt
        self.calls.append(len(pairs))
        shades = [image.getpixel((0, 0))[0] for _, image in pairs]  # type: ignore[index]
        if bad := [shade for shade in shades if shade in self.fails]:
            raise RuntimeError(f"no score for {bad}")
        return [shade + sum(shades) / 1e6 for shade in shades]


def records(root: Path) -> bytes:
    (log,) = scorers_of(Run.open(root))
    return (log.root / SCORES).read_bytes()


def test_killed_run_writes_same_bytes(tmp_path: Path) -> None:
    whole = image_run(tmp_path / "whole", ASKED, SHADES)
    ((_, tally),) = score_images(whole, [Brightness()])
    assert (tally.scored, tally.recorded, tally.failed) == (10, 0, 0)
    killed = image_run(tmp_path / "killed", ASKED, SHADES)
    with pytest.raises(KeyboardInterrupt):
        score_images(killed, [Brightness(dies_after=6)])
    (log,) = scorers_of(Run.open(killed))
    # In the middle of a block and of a line.
    lines = (log.root / SCORES).read_bytes().splitlines(keepends=True)
    (log.root / SCORES).write_bytes(b"".join(lines[:4]) + lines[4][:9])
    again = Brightness()
    ((_, tally),) = score_images(killed, [again])
    assert (tally.scored, tally.recorded) == (6, 4)
    assert again.calls == [3, 3, 1]  # the torn block is computed whole
    assert records(killed) == records(whole)
    idle = Brightness()
    ((_, tally),) = score_images(killed, [idle])
    assert idle.calls == [] and (tally.scored, tally.recorded) == (0, 10)


def test_failures_are_recorded_and_cost_the_others_nothing(tmp_path: Path) -> None:
    lost = {ASKED[0].id: "missing", ASKED[9].id: "refused"}
    root = image_run(tmp_path / "run", ASKED, SHADES, lost)
    data = b"no image"
    (root / "images" / ASKED[4].file).write_bytes(data)
    with Run.open(root).results as results:
        image = results[ASKED[4].id]
        results.append(replace(image, sha256=hashlib.sha256(data).hexdigest()))
    ((log, tally),) = score_images(root, [Brightness(fails=[40])])
    assert (tally.scored, tally.failed) == (6, 2)
    assert tally.first_error == "RuntimeError: no score for [40]"
    found = log.of_cases(Run.open(root), ASKED)
    assert {case for case, one in found.items() if one.error} == {ASKED[2].id, ASKED[4].id}
    assert "is not a readable image" in found[ASKED[4].id].error
    told = [record for record in read_records(log.root / SCORES) if "error" in record]
    assert len(told) == 2 and all("value" not in record for record in told)
    # A failure of the scorer is tried again, the image that is broken too.
    ((log, tally),) = score_images(root, [Brightness()])
    assert (tally.scored, tally.recorded, tally.failed) == (1, 6, 1)


def test_undefined_scores_and_wrong_counts_are_failures(tmp_path: Path) -> None:
    class Undefined(Brightness):
        def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
            return [float("nan") if s >= 100 else s for s in super().score(pairs)]

    root = image_run(tmp_path / "a", ASKED, SHADES)
    ((_, tally),) = score_images(root, [Undefined()])
    assert (tally.scored, tally.failed, tally.first_error) == (5, 5, "the score is nan")

    class Speechless(Brightness):
        def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> Any:
            return [None if s >= 100 else s for s in super().score(pairs)]

    root = image_run(tmp_path / "speechless", ASKED, SHADES)
    ((_, tally),) = score_images(root, [Speechless()])
    assert (tally.scored, tally.failed) == (5, 5) and "NoneType" in tally.first_error

    class Short(Brightness):
        def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
            return super().score(pairs)[:1]

    root = image_run(tmp_path / "b", ASKED, SHADES)
    ((_, tally),) = score_images(root, [Short(batch=4)])
    assert tally.scored == 10  # each on its own
    with raises("all-failed", "Runtime", error=ScorerFailed):
        score_images(image_run(tmp_path / "c", ASKED, SHADES), [Brightness(fails=range(256))])


class Gray(Brightness):
    """Scores by the gray alone."""

    def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
        super().score(pairs)
        return [image.getpixel((0, 0))[0] for _, image in pairs]  # type: ignore[index]


def test_a_clip_scores_the_mean_of_its_chosen_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shades = {ASKED[0].id: (0, 30, 90, 60, 10), ASKED[1].id: (8, 9, 200, 10, 11), ASKED[2].id: 77}
    root = image_run(tmp_path / "run", ASKED[:3], shades)
    with pytest.raises(KeyboardInterrupt):
        score_images(root, [Gray(batch=2, dies_after=4)])
    run, (log,) = Run.open(root), scorers_of(Run.open(root))
    # The second clip has a score of one frame only, which is none of the clip.
    assert log.of_cases(run, ASKED[:3]).keys() == {ASKED[0].id}
    again = Gray(batch=2, fails=[200])
    ((log, tally),) = score_images(root, [again])
    assert (tally.recorded, tally.scored, tally.failed, tally.clips) == (4, 2, 1, 2)
    told = [(r["case"], r.get("frame"), r.get("value")) for r in read_records(log.root / SCORES)]
    first, second, image = (case.id for case in ASKED[:3])
    assert told[:3] == [(first, 0, 0), (first, 2, 90), (first, 4, 10)]
    assert told[3:] == [(second, 0, 8), (second, 2, None), (second, 4, 11), (image, None, 77)]
    found = log.of_cases(run, ASKED[:3])
    assert found[first].value == pytest.approx(100 / 3) and found[image].value == 77
    assert "no score for [200]" in found[second].error and math.isnan(found[second].value)
    # Other frames are other scores, and everything says which frames it stands on.
    quality([root], ScoreOptions(), CallOptions(), scorer=[Gray()], frames="count=2")  # type: ignore[list-item]
    printed = "".join(capsys.readouterr())
    assert "5 scored (frames count=2 of 2 clips)" in printed
    by_frames = {one.frames: one for one in read_quality(Run.open(root))}
    assert by_frames["count=2"].values == {first: 5, second: 9.5, image: 77}
    assert by_frames["first,middle,last"].score.excluded == {"error": 1}
    assert all(one.scorer.endswith(f"(mean of {text})") for text, one in by_frames.items())
    with raises("no-frame", first, "7", "of 5", error=UsageError):
        score_images(root, [Gray()], frames="7")
    with raises("unsupported", "has 2", "--features", error=UsageError):
        image_features(root, None)  # type: ignore[arg-type]


def test_raises_errors_that_end_a_run(tmp_path: Path) -> None:
    class Torn(Brightness):
        def score(self, pairs: Sequence[tuple[str, Image.Image]]) -> list[float]:
            raise LoadError("torn can't be loaded")

    root = image_run(tmp_path / "run", ASKED, SHADES)
    with raises("run-failed", "torn", error=LoadError):
        score_images(root, [Torn()])
    with Run.open(root).lock(), raises("in-use", root, error=InUseError):
        score_images(root, [Brightness()])
    part = image_run(tmp_path / "part", ASKED, SHADES)
    lines = (part / "images.jsonl").read_text().splitlines(keepends=True)
    (part / "images.jsonl").write_text("".join(lines[:-2]))
    with raises("incomplete-run", "2", "of 10", error=RunError):
        score_images(part, [Brightness()])


def test_a_replaced_image_is_scored_anew_and_equal_ones_once(tmp_path: Path) -> None:
    alike = [replace(case, prompt="the same") for case in ASKED]
    root = image_run(tmp_path / "run", alike, {case.id: 7 for case in alike})
    scorer = Brightness(batch=1)
    ((log, tally),) = score_images(root, [scorer])
    assert scorer.calls == [1] and tally.scored == 1
    assert len(log.of_cases(Run.open(root), alike)) == 10
    lines = [json.loads(line) for line in (root / "images.jsonl").read_text().splitlines()]
    lines[3]["stamp"] = [1, 2]
    (root / "images.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with raises("changed-file", "1", error=RunError):
        score_images(root, [scorer])


def test_a_paid_vqascore_is_paid_once_and_under_the_cap(tmp_path: Path, server: Any) -> None:
    server.tokens = [("Yes", math.log(0.7)), (" Yes", math.log(0.1)), ("No", math.log(0.05))]
    root = image_run(tmp_path / "run", ASKED, SHADES)
    spec = "vqascore:" + server.spec("openai", "logprobs=5&attempts=1")
    prices = tmp_path / "prices.yaml"
    prices.write_text("openai:m-1: {input: 1000, output: 1000}\n")
    with raises("over-budget", "0.6000", "0.0000", error=BudgetError):
        score_images(root, [spec], Cost(concurrency=1, max_usd=8, prices=prices))
    early = server.paid
    assert 0 < early < 10
    ((log, tally),) = score_images(root, [spec], Cost(max_usd=1000, prices=prices))
    # What was answered before the cap is in the ledger, and not asked again.
    assert server.paid == 10 and tally.scored == 10
    found = log.of_cases(Run.open(root), ASKED).values()
    assert [one.value for one in found] == pytest.approx([0.8] * 10)
    asked = server.asked[0].body["messages"][-1]["content"]
    (text,) = [part["text"] for part in asked if part["type"] == "text"]
    assert text == 'Does this figure show "prompt 0"? Please answer Yes or No.'
    ((_, tally),) = score_images(root, [spec], Cost(max_usd=1000, prices=prices))
    assert server.paid == 10 and tally.recorded == 10


def test_a_vqascore_without_probabilities_names_the_option(tmp_path: Path, server: Any) -> None:
    root = image_run(tmp_path / "run", ASKED[:2], SHADES)
    with raises("all-failed", "VQAScore", "e.g", error=ScorerFailed):
        score_images(root, ["vqascore:" + server.spec("openai", "attempts=1")])
