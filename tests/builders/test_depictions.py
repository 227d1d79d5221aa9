"""Gold images: they show what the fact says, whatever the entry says; bad depictions are named."""

import hashlib
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image, ImageOps
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.bank_faults import layout_faults
from counterprior.builders.depictions import (
    LAYOUTS,
    Depiction,
    depiction_faults,
    drawable_pairs,
    read_looks,
)
from counterprior.builders.drawings import drawing
from counterprior.builders.gold import LOOKED, difference, draw_gold
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.suite import Banks
from counterprior.builders.suites.t2i_correctness_gold import SUITE, images_of
from counterprior.scenes.vector import PlacedPart, Turn, VectorImage, VectorShape, draw_vector

FRANCE = "flags-and-heraldry-france-blue-red"


def test_a_wrong_key_does_not_change_the_image() -> None:
    right = BANKS.drawables[FRANCE]
    pair = right.pair.model_copy(update={"left": right.pair.right, "right": right.pair.left})
    depictions = {"flags_and_heraldry": [right.depiction.model_copy(update={"pairs": (pair.id,)})]}
    wrong = drawable_pairs(depictions, {pair.id: pair}, BANKS.facts)[pair.id]
    for layout in LAYOUTS:
        assert draw_gold(wrong.image(layout, "flat", 0)) == draw_gold(
            right.image(layout, "flat", 0)
        )
    assert any("must be left of" in fault for fault in layout_faults(wrong))


@pytest.mark.parametrize(
    ("pair", "layout", "blue_first"),
    [
        (FRANCE, "right", True),
        (FRANCE, "swapped", False),
        ("flags-and-heraldry-france-reverse-red-blue", "right", False),
        ("flags-and-heraldry-france-reverse-red-blue", "swapped", True),
    ],
)
def test_the_pixels_show_it_too(pair: str, layout: Any, blue_first: bool) -> None:
    for style in ("flat", "shaded"):
        image = draw_vector(BANKS.drawables[pair].image(layout, style, 3))
        pixels = np.asarray(image, dtype=int)
        blue = (pixels[..., 2] > pixels[..., 0] + 60).nonzero()[1].mean()
        red = (pixels[..., 0] > pixels[..., 2] + 90).nonzero()[1].mean()
        assert (blue < red) == blue_first


def test_text_stays_upright_where_all_is_mirrored() -> None:
    def drawn(turn: Turn, at: float) -> Image.Image:
        letter = VectorShape(text="F", height=0.9)
        part = PlacedPart("f", (letter,), (at, 0.5), (0.3, 0.3))
        return draw_vector(VectorImage((part,), turn=turn, upright=False, ground="white"))

    mirrored = drawn(Turn(mirrored=True), 0.75)
    assert mirrored.tobytes() == drawn(Turn(), 0.25).tobytes()
    assert mirrored.tobytes() != ImageOps.mirror(mirrored).tobytes()


def test_rows_are_a_function_of_the_bank_and_pass_their_checks() -> None:
    few = Banks(DEFAULT_BANK)
    few.__dict__["drawables"] = {FRANCE: BANKS.drawables[FRANCE]}
    rows = SUITE.build(few, random.Random(0))
    with drawing(use_kept=False):
        assert rows == SUITE.build(few, random.Random(1)) and not list(SUITE.faults(rows, few))
    assert [(r.layout, r.style, r.drawn_seed) for r in rows] == list(
        images_of(few.drawables[FRANCE])
    )
    for row in rows:
        assert hashlib.sha256(row.image.bytes).hexdigest() == row.image_sha256
        with Image.open(BytesIO(row.image.bytes)) as image:
            assert image.mode == "RGB" and image.size == (384, 384)
    right, swapped = rows[:2]
    assert difference(right.image.bytes, swapped.image.bytes) > 0.2
    same = swapped.model_copy(update={"image": right.image})
    (fault,) = SUITE.faults([right, same], few)
    assert fault.row == swapped.id and "looks like the layout right" in fault.message


def test_records_looks_and_rejects_misread_images(tmp_path: Path) -> None:
    few = Banks(DEFAULT_BANK)
    few.__dict__["drawables"] = {FRANCE: BANKS.drawables[FRANCE]}
    few.__dict__["gold_looks"] = {}
    images = [row.image_sha256 for row in SUITE.build(few, random.Random(0))]
    said = ("right", "right", "unsure")  # the second is swapped
    looks = [{"image": image, "said": one} for image, one in zip(images, said, strict=False)]
    (tmp_path / "gold_looks.yaml").write_text(yaml.safe_dump(looks))
    few.__dict__["gold_looks"] = read_looks(tmp_path)
    rows = SUITE.build(few, random.Random(0))
    assert [row.review for row in rows[:3]] == [["code", LOOKED], ["code"], ["code"]]
    (fault,) = SUITE.faults(rows, few)
    assert (fault.row, fault.message) == (
        rows[1].id,
        "was taken for right by a model that looked at it",
    )
    (tmp_path / "gold_looks.yaml").write_text(yaml.safe_dump(looks[:1] * 2))
    with raises("duplicate-id", "gold_looks", error=BankError):
        read_looks(tmp_path)


GREEN = {"draw": [{"rect": [0, 0, 1, 1], "fill": "green"}], "at": [0.2, 0.5]}
WHITE = {"draw": [{"rect": [0, 0, 1, 1], "fill": "white"}], "at": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"fact": "flag-atlantis"}, "is unknown"),
        ({"parts": {"purple": GREEN}}, "not a part of fact flag-italy"),
        ({"parts": {"green": WHITE | {"at": [0.8, 0.5]}, "white": WHITE}}, "stands after"),
        ({"parts": {"green": GREEN | {"at": [0.05, 0.5]}}}, "leaves the stage"),
        ({"parts": {"green": GREEN | {"draw": [{"rect": [0, 0, 2, 1]}]}}}, "leaves its box"),
        ({"parts": {"green": GREEN | {"draw": [{"text": "Ω"}]}}}, "lacks a letter"),
        ({"parts": {"green": GREEN | {"draw": [{"text": "{part}"}], "label": "Ö"}}}, "of 'Ö'"),
        ({"scene": [{"rect": [0, 0, 1, 1], "fill": "greeen"}]}, "no color 'greeen'"),
        ({"over": [{"path": "M 0 0 X 1"}]}, "'X' is not a command"),
        ({"over": [{"path": "M 0 0 L 1"}]}, "path 'M 0 0 L 1'"),
        ({"over": [{"path": "M 0 0 C 1 1 0.5"}]}, "path 'M 0 0 C 1 1 0.5'"),
        ({"over": [{"path": "L 1 1"}]}, "path 'L 1 1'"),
        ({"over": [{"path": "1 1"}]}, "path '1 1'"),
        ({"over": [{"fill": "red"}]}, "a shape is one of"),
        ({"spare": "red"}, "is not drawn"),
    ],
)
def test_bad_depictions_are_named(change: dict[str, Any], reason: str) -> None:
    good = {
        "id": "italy",
        "fact": "flag-italy",
        "pairs": [],
        "parts": {"green": GREEN, "white": WHITE},
    }
    faults = list(depiction_faults(Depiction.model_validate(good | change), BANKS.facts))
    assert (not faults) if not reason else any(reason in fault for fault in faults), faults


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (
            ("flags-and-heraldry-nowhere",),
            ("bad-entry", "flag-france", "flags-and-heraldry-nowhere"),
        ),
        (("sports-fields-kendo-flags",), ("bad-entry", "flag-france", "sports-fields-kendo-flags")),
        (
            ("rites-and-insignia-nataraja-drum-flame",),
            ("bad-entry", "flag-france", "rites-and-insignia-nataraja-drum-flame"),
        ),
        (("flags-and-heraldry-mali-green-yellow",), ("bad-entry", "flag-mali")),
        ((FRANCE, FRANCE), ("bad-entry", "flag-france", "flags-and-heraldry-france-blue-red")),
    ],
)
def test_pairs_that_a_depiction_can_not_draw_are_named(pairs: Any, reason: tuple[str, ...]) -> None:
    depiction = BANKS.drawables[FRANCE].depiction.model_copy(update={"pairs": pairs})
    known = {pair.id: pair for listed in BANKS.pairs.values() for pair in listed}
    with raises(*reason, error=BankError):
        drawable_pairs({"flags": [depiction]}, known, BANKS.facts)


def test_the_name_of_a_part_is_nothing_on_the_stage() -> None:
    shape = VectorShape(text="{part}")
    plain = draw_vector(VectorImage((), ground="white"))
    assert draw_vector(VectorImage((), scene=(shape,), ground="white")) == plain
