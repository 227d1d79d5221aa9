"""`judge-check` of judges by rule: what a detector misses, and scores corrected for it."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
import squares
from PIL import Image
from refusals import raises

from counterprior.errors import DataError, UsageError
from counterprior.eval.core import ImageRequest, Verdict
from counterprior.eval.detectors import Request, open_detector
from counterprior.eval.engine.data import read_rows, row_fields
from counterprior.eval.generators.composed import CutOuts, Drawings
from counterprior.eval.results.detectability import fitted, read_detector_check, seen_boxes
from counterprior.eval.studies.detector_check import check_detectors

JUDGE = "pse:python:squares:detector"
Command = Callable[..., CompletedProcess[str]]


@pytest.fixture(scope="module")
def classes(text_release: Path) -> list[str]:
    rows = read_rows(str(text_release), "spatial_uc").rows
    names = {name for row in rows for name in (row.object_a, row.object_b)}  # type: ignore[attr-defined]
    assert len({squares.color(name) for name in names}) == len(names)
    return sorted(names)


@pytest.fixture(scope="module")
def cutouts(classes: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cut-outs of all classes but the last two, and of one that no prompt names."""
    folder = tmp_path_factory.mktemp("cutouts") / "cut"
    squares.write_cutouts(folder, [*classes[:-2], "unicorn"])
    (folder / classes[-1]).mkdir()
    return folder


def requests(release: Path, count: int = 24) -> list[ImageRequest]:
    rows = read_rows(str(release), "spatial_uc").rows[:count]
    return [
        ImageRequest(row.prompt, seed, fields=row_fields(row))  # type: ignore[attr-defined]
        for row in rows
        for seed in row.seeds[:2]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [False, True])
def test_composed_images_show_what_they_say(drawn: bool, cutouts: Path, text_release: Path) -> None:
    generator = Drawings() if drawn else CutOuts(cutouts)
    detector = open_detector("scene") if drawn else squares.SquareDetector(100.0)
    shown = [
        request
        for request in requests(text_release)
        if generator.can_show([request.fields["object_a"], request.fields["object_b"]])
    ]
    left_out = 0
    for request in shown:
        names = (request.fields["object_a"], request.fields["object_b"])
        things = {thing.name: thing for thing in generator.things(request)}
        image = generator.generate(request)
        assert np.array_equal(image, generator.generate(request))
        (detections,) = detector.detect([Request(image, names)])
        boxes = {detection.label: detection.box for detection in reversed(detections)}
        assert boxes.keys() == things.keys()
        left_out += len(things) < 2
        for name, thing in things.items():
            area = boxes[name].area / (image.width * image.height)
            assert thing.size == pytest.approx(area, rel=0.25 if drawn else 0.02)
        if len(things) == 2:
            axis = 0 if request.fields["relation"] in ("left_of", "right_of") else 1
            first, second = (boxes[name].center[axis] for name in names)
            assert (first < second) == (request.fields["relation"] in ("left_of", "above"))
    assert 0.05 < left_out / len(shown) < 0.5


@pytest.mark.slow
def test_scores_corrected_for_missed_things_hold_the_truth(
    cutouts: Path, text_release: Path, tmp_path: Path, cli: Command
) -> None:
    release, gold, run = str(text_release), tmp_path / "gold", tmp_path / "run"
    check = ("judge-check", "--judge", JUDGE, "--suite", "spatial_uc", "--cutouts", cutouts)
    done = cli(*check, "--data", release, "--out", gold, "--limit", "60")
    assert done.returncode == 0, done.stderr
    assert "missed of what is there" in done.stdout
    assert "folders of no class of the suite, not used: unicorn" in done.stderr
    assert "2 of 33 classes have no image" in done.stderr
    assert "folders without an image: zebra" in done.stderr

    made = cli(
        *("eval", "--suite", "spatial_uc", "--data", release, "--out", run, "--limit", 150),
        *("--generator", "python:squares:generator", "--judge", JUDGE),
    )
    assert made.returncode == 0, made.stderr
    scored = cli("score", run, "--gold", gold, "--json")
    assert scored.returncode == 0, scored.stderr
    (result,) = json.loads(scored.stdout)
    scores = {score["name"]: score for score in result["scores"] if score["group"] == "all"}
    both = squares.THERE**2
    truths = {"decided": both, "accuracy_unconditional": both * squares.HOLDS, "accuracy": 0.6}
    for name, truth in truths.items():
        corrected = scores[f"{name}_if_seen"]
        low, high = corrected["interval"]
        assert low < 100 * truth < high
        assert corrected["bounds"][0] < 100 * truth < corrected["bounds"][1]
        assert corrected["excluded"]["not_seen"] == corrected["n"] - scores["accuracy"]["n"]
    assert scores["decided"]["interval"][1] < 100 * both
    assert scores["accuracy_unconditional"]["interval"][1] < 100 * both * squares.HOLDS
    (note,) = [note for note in result["notes"] if "have the rate of all others" in note]
    assert "classes without any (bed, bottle, " in note
    groups = {score["group"] for score in result["scores"] if score["name"] == "decided_if_seen"}
    assert "relation=above" in groups

    printed = cli("score", run, "--gold", gold, "--explain")
    assert "`accuracy`, if the detector missed nothing" in printed.stdout
    again = cli(*check, "--data", release, "--out", gold, "--limit", "60", "--json")
    (judge,) = json.loads(again.stdout)["spatial_uc"]
    together, *classes = judge["classes"]
    assert together["name"] == "all" and together["missed"] > 50 and together["absent"] > 50
    fewest, *_, most = sorted(classes, key=lambda line: line["there"])
    assert fewest["there"] == 0
    unknown, known = (np.diff(line["missing_at"][1]["interval"])[0] for line in (fewest, most))
    assert unknown > 1.2 * known

    other = cli("score", run, "--gold", tmp_path / "nowhere")
    assert other.returncode == 2 and "[no-such-file]" in other.stderr
    path = gold / "spatial_uc" / "detectability.json"
    written = path.read_text()
    for change, code in (
        (lambda record: record.update(seen=[]), "wrong-count"),
        (lambda record: record.update(comparable={}), "judge-unchecked"),
        (lambda record: record.update(cutouts=[""] * len(record["seen"])), "too-few-items"),
    ):
        path.write_text(changed(written, change))
        with raises(code, error=DataError):  # `score` asks these two, as `nowhere` above shows
            fitted(read_detector_check(path.parent, json.loads(written)[0]["comparable"]))


def changed(checks: str, change: Callable[[dict[str, Any]], None]) -> str:
    (record,) = json.loads(checks)
    change(record)
    return json.dumps([record])


def test_the_checkers_missing_things_are_missed() -> None:
    evidence = {"found": {"dog": [[0.9, 1, 1, 9, 9]], "cat": [[0.1, 2, 2, 3, 3]]}}
    unsure = {"why": "UNDECIDABLE missing: cat, confidence 0.0000"}
    near = {"why": "UNDECIDABLE near_boundary (|delta|=0.01 <= margin=0.1), confidence 0.2000"}
    assert seen_boxes(Verdict("invalid", json.dumps(evidence | unsure)))["cat"] is None
    assert None not in seen_boxes(Verdict("invalid", json.dumps(evidence | near))).values()
    assert seen_boxes(Verdict("invalid", json.dumps({"found": {"dog": []}}))) == {"dog": None}
    with raises("unsupported", "no detections"):
        seen_boxes(Verdict("holds", "1"))


def test_rejects_folders_that_hold_no_cutouts(text_release: Path, tmp_path: Path) -> None:
    data = str(text_release)

    def check(suite: str = "spatial_uc", judge: str = JUDGE) -> None:
        check_detectors(data, tmp_path / "out", [judge], suite, cutouts=tmp_path / "cut")

    with raises("no-such-file", "cut", error=DataError):
        check()
    (tmp_path / "cut" / "dog").mkdir(parents=True)
    with raises("nothing-to-do", "cut", error=DataError):
        check()
    image = tmp_path / "cut" / "dog" / "1.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    with raises("unreadable-image", image, error=DataError):
        check()
    Image.new("RGBA", (9, 9), (1, 2, 3, 0)).save(image)
    with raises("unreadable-image", image, "transparent", error=DataError):
        check()
    Image.new("RGBA", (9, 9), (1, 2, 3, 255)).save(image)
    image.parent.rename(tmp_path / "cut" / "unicorn")
    with raises("unknown-class", "unicorn", "teddy bear", error=DataError):
        check()
    (tmp_path / "cut" / "unicorn").rename(tmp_path / "cut" / "dog")
    with raises("unsupported", "spatial_3d", error=UsageError):
        check("spatial_3d")
    with raises("unsupported", "pixels", error=UsageError):
        check(judge="pixels")
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").rglob("*.png"))


def test_cutouts_need_a_suite_of_spatial_relations(tmp_path: Path, cli: Command) -> None:
    done = cli("judge-check", "--judge", JUDGE, "--cutouts", tmp_path, "--out", tmp_path / "gold")
    assert done.returncode == 2 and "[missing-option]" in done.stderr
