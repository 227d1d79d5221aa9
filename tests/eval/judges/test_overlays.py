"""Boxes that `spatial check` draws: every verdict and reason, in the objects' colors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.eval.geometry.checker.rules import CheckerRules
from counterprior.eval.judges.checker.overlays import COLORS, chosen_images, overlay
from counterprior.eval.judges.checker.run import check_file, run_check

SIDE = 128


def sample(name: str, offset: float) -> dict[str, Any]:
    """A cat and a dog `offset` pixels to its right, or no dog."""
    boxes = ([20, 30, 30, 70], [20 + offset, 30, 30 + offset, 70])
    detections = [
        {"label": label, "score": 0.9, "box_xyxy": box}
        for label, box in zip(("cat", "dog"), boxes, strict=True)
    ]
    prompt = {"prompt_id": name, "relation": "left_of", "object_a": "cat", "object_b": "dog"}
    return {
        "sample_id": name,
        **prompt,
        "detectors": {"primary": {"detections": detections if offset else detections[:1]}},
        "conf_components": {"stability": 1.0},
        "width": SIDE,
        "height": SIDE,
    }


@pytest.fixture
def detections(tmp_path: Path) -> Path:
    """Images that pass, are undecidable, or lack a dog, in turn."""
    path = tmp_path / "d.jsonl"
    rows = [sample(f"p/{n}", (60, 12, 0)[n % 3]) for n in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def manifest(detections: Path, tmp_path: Path) -> Path:
    """The images, one of which is no image."""
    path = tmp_path / "m.jsonl"
    rows = []
    for number, line in enumerate(detections.read_text().splitlines()):
        row = {
            k: v for k, v in json.loads(line).items() if k.startswith(("sample", "object", "re"))
        }
        rows.append(row | {"file": f"{number}.png"})
        Image.new("RGB", (SIDE, SIDE), "white").save(tmp_path / f"{number}.png")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_few_images_of_every_verdict_are_drawn(
    detections: Path, manifest: Path, tmp_path: Path
) -> None:
    out, folder = tmp_path / "v.jsonl", tmp_path / "v.overlays"
    run_check(detections, None, out)
    assert not folder.exists()
    run_check(detections, None, out, manifests=[manifest], overlays=3)
    drawn = {path.name: path.read_bytes() for path in folder.iterdir()}
    outcomes = [name.split("-")[1] for name in sorted(drawn)]
    assert outcomes == ["PASS", "missing", "near_boundary"]
    run_check(detections, None, out, manifests=[manifest], overlays=3)
    assert drawn == {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in tmp_path.glob("*.png"):
        path.write_bytes(b"")
    run_check(detections, None, tmp_path / "w.jsonl", manifests=[manifest])
    assert not (tmp_path / "w.overlays").exists(), "an image that can't be read has no overlay"
    with raises("would-overwrite", manifest):
        run_check(detections, None, manifest, manifests=[manifest])


def test_the_boxes_that_decide_are_thick_and_in_the_colors_of_their_objects(
    detections: Path,
) -> None:
    checked = check_file(detections, CheckerRules())
    kinds = [(image.reason or image.verdict)[:4] for image in chosen_images(checked, 3)]
    assert sorted(kinds) == ["PASS", "miss", "near"]
    drawn = overlay(Image.new("RGB", (SIDE, SIDE), "white"), checked[0])
    # On the lower edges of the two boxes, which no label covers.
    colors = {drawn.getpixel((25, 70)), drawn.getpixel((85, 70))}
    expected = {tuple(bytes.fromhex(color[1:])) for color in COLORS}
    assert colors == expected
    thin = overlay(Image.new("RGB", (SIDE, SIDE), "white"), checked[2])
    assert {drawn.getpixel((25, 67)), thin.getpixel((25, 67))} == {
        tuple(bytes.fromhex(COLORS[0][1:])),
        (255, 255, 255),
    }
