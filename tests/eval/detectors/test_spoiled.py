"""Masks spoiled on purpose: by known amounts, and what PSE makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from refusals import raises
from typer.testing import CliRunner

from counterprior.cli.main import app
from counterprior.eval.core import ImageRequest
from counterprior.eval.detectors import Detection, DetectorError, Mask, Request, open_detector
from counterprior.eval.detectors.spoiled import SpoiledDetector, Spoiling, spoiled_mask
from counterprior.eval.generators.render import RenderGenerator
from counterprior.eval.geometry.boxes import Box
from counterprior.eval.geometry.pse import pse

MASKS = np.random.default_rng(3).random((2, 14, 11)) < 0.75


class Scripted:
    """Finds the same two things in every image."""

    def __init__(self, masks: Sequence[Mask | None]) -> None:
        self.things = [
            Detection(label, 0.9, Box(0, 0, 5, 5), mask)
            for label, mask in zip(("cat", "dog"), masks, strict=True)
        ]

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        return [self.things for _ in requests]

    def identity(self) -> dict[str, str]:
        return {"kind": "scripted"}


REQUEST = Request(Image.new("RGB", (11, 14)), ("cat", "dog"))


def spoil(masks: Sequence[Mask | None], **options: float) -> list[Detection]:
    spoiling = Spoiling.model_validate(options)
    (detections,) = SpoiledDetector(Scripted(masks), spoiling).detect([REQUEST])
    return detections


def opened(mask: Mask, radius: int) -> Mask:
    """A pixel stays where a square of mask that holds it fits into the image."""
    kept = np.zeros_like(mask)
    height, width = mask.shape
    side = 2 * radius + 1
    for y, x in product(range(height - side + 1), range(width - side + 1)):
        if mask[y : y + side, x : x + side].all():
            kept[y : y + side, x : x + side] = True
    return kept


def test_nothing_to_spoil_is_the_detector_itself() -> None:
    inner = Scripted([*MASKS])
    (same,) = SpoiledDetector(inner, Spoiling()).detect([REQUEST])
    assert [d is e for d, e in zip(inner.things, same, strict=True)] == [True, True]
    image = RenderGenerator().generate(ImageRequest("a cat to the left of a dog", 1))
    request = [Request(image, ("cat", "dog"))]
    (expected,), (found,) = (open_detector(s).detect(request) for s in ("scene", "spoiled:scene"))
    assert [d.to_row() for d in found] == [d.to_row() for d in expected]


def test_opening_equals_brute_force() -> None:
    found = spoil([*MASKS], opening=1)
    expected = [opened(mask, 1) for mask in MASKS]
    assert all(mask.any() and not mask.all() for mask in expected)
    assert [(d.mask == mask).all() for d, mask in zip(found, expected, strict=True)] == [True] * 2
    rows, columns = np.nonzero(expected[0])
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert tuple(found[0].box) == box
    assert spoil([*MASKS], opening=7) == []  # nothing is left to find


def test_jitter_moves_a_mask_as_a_whole_and_loses_what_leaves_the_image() -> None:
    mask = np.zeros((60, 60), bool)
    mask[25:35, 20:24] = True
    shifts = set()
    for seed in range(40):
        (detection, _) = spoil([mask, mask], jitter=3, seed=seed)
        assert detection.mask is not None and detection.mask.sum() == mask.sum()
        down, across = int(detection.box.y1) - 25, int(detection.box.x1) - 20
        assert (np.roll(mask, (down, across), (0, 1)) == detection.mask).all()
        shifts |= {("down", down), ("across", across)}
    assert shifts == set(product(("down", "across"), range(-3, 4)))
    corner = np.zeros((4, 4), bool)
    corner[0, 0] = True
    rng = np.random.default_rng(0)
    left = [spoiled_mask(corner, Spoiling(jitter=2), rng).sum() for _ in range(200)]
    assert np.mean(left) == pytest.approx(9 / 25, abs=0.1)


def test_dropout_drops_the_planted_share_and_pse_is_that_of_all_pairs_of_pixels() -> None:
    full = np.ones((100, 100), bool)
    (found, _) = spoil([full, full], dropout=0.3)
    assert found.mask is not None and found.mask.mean() == pytest.approx(0.7, abs=0.02)
    a, b = (d.mask for d in spoil([*MASKS], dropout=0.5, jitter=2, opening=1))
    assert a is not None and b is not None
    pairs = [np.sign(x - y) for x in np.nonzero(a)[1] for y in np.nonzero(b)[1]]
    assert pse(a, b, "right_of") == pytest.approx(max(0.0, float(np.mean(pairs))), abs=1e-12)
    assert pse(a, b, "left_of") == pytest.approx(max(0.0, -float(np.mean(pairs))), abs=1e-12)
    again = [d.mask for d in spoil([*MASKS], dropout=0.5, jitter=2, opening=1)]
    other = [d.mask for d in spoil([*MASKS], dropout=0.5, jitter=2, opening=1, seed=1)]
    assert (again[0] == a).all() and not (other[0] == a).all()


def test_spoiling_is_part_of_the_identity_and_needs_masks() -> None:
    detector = open_detector("spoiled:pixels?dropout=0.25")
    identity = detector.identity()
    assert (identity["kind"], identity["inner_kind"]) == ("spoiled", "pixels")
    assert identity["dropout"] == "0.25" and "jitter" not in identity
    with raises("unsupported", "without masks", "grounded-sam:", error=DetectorError):
        spoil([None, None], jitter=1)
    with raises("bad-option", "dropout must be"):
        open_detector("spoiled:pixels?dropout=2")
    with raises("unknown-option", "dropuot"):
        open_detector("spoiled:pixels?dropuot=0.2")
    with raises("missing-option", "spoiled:DETECTOR"):
        open_detector("spoiled:")


@pytest.mark.slow
def test_pse_of_spoiled_masks_by_command(text_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    judges = ("pse:scene", "pse:spoiled:scene?opening=0", "pse:spoiled:scene?opening=90")
    words = [word for judge in judges for word in ("--judge", judge)]
    command = ["eval", "--suite", "spatial_uc", "--generator", "render:", "--limit", "16", *words]
    done = CliRunner().invoke(app, [*command, "--data", str(text_release), "--out", str(out)])
    assert done.exit_code in (0, 1), done.stderr  # it can't draw everything
    rows = [
        [json.loads(line) for line in log.read_text().splitlines()]
        for log in (out / "verdicts").glob("*/verdicts.jsonl")
    ]
    numbers = [{r["case"]: r["number"] for r in log if "number" in r} for log in rows]
    gone, *same = sorted(numbers, key=lambda row: sum(row.values()))
    assert len(same) == 2 and same[0] == same[1] and sum(same[0].values()) > 0
    assert set(gone.values()) == {0.0}
    judged = ["--judge", "pse:spoiled:scene?jitter=-1", "--out", str(out)]
    wrong = CliRunner().invoke(app, [*command, *judged])
    assert wrong.exit_code == 2 and "jitter must be a whole number" in wrong.stderr
