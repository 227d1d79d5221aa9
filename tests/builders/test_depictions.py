"""Gold images: they show what the fact says, whatever the entry says; bad depictions are named."""

import hashlib
import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from drawn_files import drawn
from PIL import Image, ImageOps
from refusals import raises

from counterprior.builders.bank import DEFAULT_BANK, BankError
from counterprior.builders.bank_faults import layout_faults
from counterprior.builders.depictions import (
    DEPICTIONS,
    LAYERS,
    LAYOUTS,
    Drawable,
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
        letter = VectorShape(text="F", height=270, fill="black")
        part = PlacedPart("f", (letter,), (0.35, 0.35, 0.65, 0.65), (at, 0.5))
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


def box(x: float, y: float, more: str = "") -> str:
    """A green box in the middle of a place."""
    return f'<rect x="{x - 125}" y="{y - 125}" width="250" height="250" fill="green"{more}/>'


GREEN, WHITE = box(200, 500), box(500, 500)
LABEL = '<text x="200" y="500" font-size="90" fill="black">'


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({}, ()),
        ({"fact": "flag-atlantis"}, ("'flag-atlantis'", "is unknown")),
        ({"parts": {"purple": GREEN}}, ("'purple'", "flag-italy", "green, white, red")),
        ({"parts": {"": GREEN}}, ("''", "flag-italy", "green, white, red")),
        ({"styles": []}, ("styles", "at least one")),
        ({"parts": {"green": '<line y2="9" stroke="red"/>'}}, ("'green'", "no area", "invisible")),
        ({"ground": GREEN + box(0, 0).replace("green", "red")}, ("'ground'", "one color")),
        ({"parts": {"green": box(800, 500), "white": WHITE}}, ("green stands after white",)),
        ({"parts": {"green": box(50, 500)}}, ("green", "x -75 to 175", "leaves the stage")),
        (
            {"parts": {"green": GREEN + '<rect x="75" y="375" width="125" height="125"/>'}},
            ("green", "leaves its box"),
        ),
        ({"parts": {"green": f"{GREEN}{LABEL}Ω</text>"}}, ("green", "lacks a letter", "'Ω'")),
        ({"parts": {"{part}": f"{GREEN}{LABEL}Ö{{part}}</text>"}, "spare": "x"}, ("'x'",)),
        ({"parts": {"green": f"{GREEN}{LABEL}{{part}}</text>"}}, ("green", "{part}", "only")),
        ({"parts": {"green": ""}}, ("'parts'", "'green'", "empty")),
        ({"parts": GREEN}, ("'parts'", "no layer of a part")),
        ({"scene": box(0, 0, ' stroke="greeen"')}, ("no color 'greeen'",)),
        ({"scene": box(0, 0, ' stroke="#00000080"')}, ("no color '#00000080'",)),
        ({"ground": box(0, 0).replace("green", "greeen")}, ("no color 'greeen'",)),
        ({"over": '<path d="M 0 0 X 1" fill="red"/>'}, ("'X' is not a command",)),
        ({"over": '<path d="M 0 0 L 1" fill="red"/>'}, ("'M 0 0 L 1'",)),
        ({"over": '<path d="M 0 0 C 1 1 0.5" fill="red"/>'}, ("'M 0 0 C 1 1 0.5'",)),
        ({"over": '<path d="L 1 1" fill="red"/>'}, ("'L 1 1'",)),
        ({"over": '<path d="1 1" fill="red"/>'}, ("'1 1'",)),
        ({"over": '<path d="" fill="red"/>'}, ("over", "path 1", "'d'")),
        ({"over": '<path d="Z" fill="red"/>'}, ("'Z'",)),
        ({"over": '<path fill="red"/>'}, ("over", "path 1", "'d'")),
        ({"over": box(1300, 500)}, ("over", "leaves")),
        ({"spare": "red"}, ("'red' is not drawn",)),
    ],
)
def test_bad_depictions_are_named(
    tmp_path: Path, change: dict[str, Any], facts: tuple[str, ...]
) -> None:
    good = {"fact": "flag-italy", "parts": {"green": GREEN, "white": WHITE}}
    write_depiction(tmp_path, **good | change)
    try:
        ((depiction,),) = DEPICTIONS.read(tmp_path).values()
        faults = list(depiction_faults(depiction, BANKS.facts))
    except BankError as error:
        faults = [str(error)]
        assert str(tmp_path / "depictions" / "flags" / "italy.svg") in faults[0]
    if facts:
        assert any(all(fact in fault for fact in facts) for fault in faults), faults
    else:
        assert not faults


@pytest.mark.parametrize(
    ("file", "text", "facts"),
    [
        ("flags/italia.svg", "{}", ("no entry", "flags.yaml", "id 'italia'", "add one")),
        ("flag/italy.svg", "{}", ("no file flag.yaml",)),
        ("flags/italy.svg", "", ("italy.svg", "No such file", "needs the drawing")),
        (
            "flags/italy.svg",
            drawn({"scene": "", "behind": ""}).replace("behind", "scene"),
            ("italy.svg", "two layers", "'scene'", "one"),
        ),
        (
            "flags/italy.svg",
            drawn({"parts": {"green": GREEN, "white": WHITE}}).replace("white", "green"),
            ("'parts'", "two layers", "'green'"),
        ),
        ("flags/italy.svg", drawn({"part": GREEN}), ("'part' is unknown", "ground, scene")),
    ],
)
def test_files_and_layers_that_do_not_fit_together_are_named(
    tmp_path: Path, file: str, text: str, facts: tuple[str, ...]
) -> None:
    write_depiction(tmp_path, fact="flag-italy", parts={"green": GREEN})
    path = tmp_path / "depictions" / file
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if text:
        path.write_text(text.replace("{}", drawn({})))
    with raises("bad-entry", *facts, error=BankError) as caught:
        DEPICTIONS.read(tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def write_depiction(bank: Path, **changes: Any) -> None:
    """A bank whose only depiction has these fields and layers."""
    layers = {name: changes.pop(name) for name in LAYERS if name in changes}
    folder = bank / "depictions" / "flags"
    folder.mkdir(parents=True)
    (folder / "italy.svg").write_text(drawn(layers))
    entry = {"id": "italy", "fact": "flag-italy", "pairs": []}
    (bank / "depictions" / "flags.yaml").write_text(yaml.safe_dump([entry | changes]))


def test_the_box_of_a_part_is_its_invisible_shape_else_what_it_draws(tmp_path: Path) -> None:
    around = '<rect x="100" y="300" width="300" height="400"/>'
    parts = {"green": GREEN + around, "white": WHITE}
    write_depiction(tmp_path, parts=parts)
    ((depiction,),) = DEPICTIONS.read(tmp_path).values()
    assert depiction.parts["green"].box == pytest.approx((0.1, 0.3, 0.4, 0.7))
    assert depiction.parts["white"].box == pytest.approx((0.375, 0.375, 0.625, 0.625))
    assert len(depiction.parts["green"].shapes) == 1


def drawable_of(bank: Path, **changes: Any) -> Drawable:
    """The pair of France as a depiction draws it."""
    write_depiction(bank, fact="flag-france", pairs=[FRANCE], **changes)
    pair = BANKS.drawables[FRANCE].pair
    return drawable_pairs(DEPICTIONS.read(bank), {FRANCE: pair}, BANKS.facts)[FRANCE]


def test_the_layer_of_all_other_parts_is_drawn_where_the_fact_has_them(tmp_path: Path) -> None:
    name = '<text x="500" y="500" font-size="90" fill="black" text-anchor="middle">{part}!</text>'
    parts = {"{part}": f'<rect x="400" y="450" width="200" height="100"/>{name}', "blue": GREEN}
    drawable = drawable_of(tmp_path, area=[0.2, 0.5, 0.8, 0.5], parts=parts)
    white, red, blue = drawable.image("right", "flat", 0).parts
    assert (white.name, white.center) == ("white", pytest.approx((0.5, 0.5)))
    assert (red.name, red.center) == ("red", pytest.approx((0.8, 0.5)))
    assert (blue.name, blue.center) == ("blue", pytest.approx((0.2, 0.5)))
    assert [shape.text for part in (white, red) for shape in part.shapes] == ["white!", "red!"]
    # A name is made smaller where its box is narrow.
    assert white.shapes[0].height < 90 == red.shapes[0].height


@pytest.mark.parametrize("keeps", [False, True])
def test_things_that_change_places_keep_their_height_where_the_entry_says_so(
    tmp_path: Path, keeps: bool
) -> None:
    parts = {"blue": box(200, 800), "red": box(800, 400)}
    drawable = drawable_of(tmp_path, keeps_heights=keeps, parts=parts)
    centers = {part.name: part.center for part in drawable.image("swapped", "flat", 0).parts}
    heights = (0.8, 0.4) if keeps else (0.4, 0.8)
    assert centers["blue"] == pytest.approx((0.8, heights[0]))
    assert centers["red"] == pytest.approx((0.2, heights[1]))


def test_what_is_seen_from_the_other_side_is_turned() -> None:
    by_frame = {
        "flags-and-heraldry-france-reverse-red-blue": Turn(mirrored=True),
        FRANCE: Turn(),
    }
    for name, turn in by_frame.items():
        right, swapped = (BANKS.drawables[name].image(k, "flat", 0) for k in ("right", "swapped"))
        assert right.turn == right.scene_turn == swapped.scene_turn == turn
        assert swapped.turn == Turn(mirrored=not turn.mirrored)


@pytest.mark.parametrize(
    ("frame", "plan", "sign", "upside"),
    [
        ("seat", False, 1, False),
        ("facing", False, -1, False),
        ("facing", True, -1, True),
        ("south-up", False, -1, True),
        ("turned", False, -1, True),
    ],
)
def test_half_a_turn_is_for_plans_and_for_maps_whose_south_is_on_top(
    frame: Any, plan: bool, sign: int, upside: bool
) -> None:
    drawable = BANKS.drawables[FRANCE]
    seen = replace(
        drawable,
        sign=sign,
        pair=drawable.pair.model_copy(update={"frame": frame}),
        depiction=drawable.depiction.model_copy(update={"plan": plan}),
    )
    assert seen.image("right", "flat", 0).turn == Turn(sign < 0, upside)


def test_a_part_that_a_moved_one_covers_is_left_out(tmp_path: Path) -> None:
    wide = '<rect x="0" y="375" width="400" height="250" fill="blue"/>'
    parts = {"blue": wide, "white": box(550, 500), "red": box(850, 500)}
    drawable = drawable_of(tmp_path, parts=parts)
    shown = {k: {p.name for p in drawable.image(k, "flat", 0).parts} for k in ("right", "swapped")}
    assert shown == {"right": {"blue", "white", "red"}, "swapped": {"blue", "red"}}


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
