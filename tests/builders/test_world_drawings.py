"""Gold images of altered worlds: both worlds alike but for the law, bad drawings and questions."""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_files import ALL, drawn
from PIL import Image
from refusals import raises
from small_worlds import DRAWINGS, GOLD, ICE, TREE, write_bank, write_worlds

from counterprior.builders.bank import BankError
from counterprior.builders.build import as_released, rebuilt
from counterprior.builders.census import worlds_census
from counterprior.builders.gold import LOOKED, difference
from counterprior.builders.suite import SHIPPED, Banks
from counterprior.builders.suites import SUITES
from counterprior.builders.suites.altered_worlds_gold import SUITE
from counterprior.builders.world_drawings import (
    WORLD_DRAWINGS,
    alike_faults,
    drawing_faults,
)
from counterprior.builders.world_looks import read_world_looks
from counterprior.builders.worlds import KEYED
from counterprior.cards.config_checks import Origin, differences
from counterprior.cards.manifest import read_manifest
from counterprior.release import iter_records, verify
from counterprior.schema import AlteredWorldGold

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from look_blind import record, world_sheets

GROUND = f"<rect {ALL} fill='#ddeeff'/>"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the small bank."""
    root = tmp_path_factory.mktemp("drawn")
    return write_worlds(write_bank(root / "bank"), root / "release")


def built(bank: Path) -> list[AlteredWorldGold]:
    return SUITE.build(Banks(bank), random.Random(0))


def blue(row: AlteredWorldGold) -> float:
    """Share of blue pixels."""
    with Image.open(BytesIO(row.image.bytes)) as image:
        assert image.mode == "RGB" and image.size == (384, 384)
        pixels = np.asarray(image, dtype=int)
    return float((pixels[..., 2] > pixels[..., 1] + 60).mean())


def test_a_group_has_both_worlds_in_two_styles_and_its_questions(tmp_path: Path) -> None:
    banks = Banks(write_bank(tmp_path))
    rows = SUITE.build(banks, random.Random(0))
    assert not list(SUITE.faults(rows, banks))
    assert [row.group for row in rows] == [ICE] * 4 + [TREE] * 4
    for real, altered in zip(rows[::2], rows[1::2], strict=True):
        assert (real.world, altered.world) == ("real", "altered")
        assert (real.style, real.drawn_seed) == (altered.style, altered.drawn_seed)
        # The backdrop, the trunk and the glass are the same: only what the law changes is not.
        assert 0.002 < difference(real.image.bytes, altered.image.bytes) < 0.4
    assert len({(row.style, row.drawn_seed) for row in rows[:4]}) == 2
    trees = rows[4:]
    assert [blue(row) > 0.1 for row in trees] == [row.world == "altered" for row in trees]
    sources = {row.id: row for row in SUITES["altered_worlds"].build(banks, random.Random(0))}
    for row in rows:
        levels = [sources[name] for name in row.source_ids]
        assert [one.level for one in levels] == ["L0", "L1", "L2", "L3"]
        assert {one.group for one in levels} == {row.group}
        assert (row.prompt, row.altered_prompt) == (levels[1].prompt, levels[3].prompt)
        assert [getattr(row, name) for name in KEYED] == [getattr(levels[0], n) for n in KEYED]
    forged = [rows[0].model_copy(update={"point_factual": rows[0].point_counterfactual})]
    assert {f.field for f in SUITE.faults([*forged, *rows[1:]], banks)} == {"point_factual"}
    assert {f.field for f in SUITE.faults(rows[1:], banks)} == {"world"}


def test_a_release_is_drawn_again_from_its_bank(release: Path, tmp_path: Path) -> None:
    assert verify(release) == []
    config = next(one for one in read_manifest(release).configs if one.name == GOLD)
    records = list(iter_records(release, GOLD))

    def problems(bank: Path) -> list[tuple[str | None, str | None]]:
        rows = rebuilt(bank)(GOLD, 0) or []
        origin = Origin("", rebuilt(bank), as_released)
        return [(one.row, one.field) for one in differences(config, records, rows, origin)]

    assert not problems(release.with_name("bank"))
    other = write_bank(tmp_path / "other", [DRAWINGS[0] | {"over": ""}, DRAWINGS[1]])
    ice = [record["id"] for record in records if record["group"] == ICE]
    assert len(ice) == 4 and problems(other) == [(row, "image") for row in ice]


def answered(folder: Path, change: dict[tuple[str, str], str]) -> Path:
    """What a reader writes who answers as the key does but for (world, question)."""
    lines = []
    for number, shown in json.loads((folder / "key.json").read_text()).items():
        said = [
            change.get((shown["world"], question), right)[0]
            for question, right in zip(shown["questions"], shown["right"], strict=True)
        ]
        lines.append(f"{number},{''.join(said)}\n")
    (folder / "answers.csv").write_text("".join(lines))
    return folder / "answers.csv"


def test_looks_count_the_questions_that_separate_the_worlds(release: Path, tmp_path: Path) -> None:
    bank = write_bank(tmp_path / "bank")
    blind = tmp_path / "blind"
    world_sheets(release, blind, bank=bank)
    key = json.loads((blind / "key.json").read_text())
    assert sorted((one["group"], one["world"]) for one in key.values()) == [
        (group, world) for group in (TREE, ICE) for world in ("altered", "real")
    ]
    for group in (TREE, ICE):  # on two sheets, and in two styles
        (a, one), (b, other) = ((int(n), k) for n, k in key.items() if k["group"] == group)
        assert a // 12 != b // 12
        styles = {r.image_sha256: r.style for r in built(bank)}
        assert styles[one["image"]] != styles[other["image"]]
    text = (blind / "sheet00.txt").read_text()
    assert "Are the leaves blue?" in text and "world" not in text

    record(blind, [answered(blind, {})], bank)
    rows = built(bank)
    assert sum(LOOKED in row.review for row in rows) == 4
    assert not list(SUITE.faults(rows, Banks(bank)))
    again = tmp_path / "again"
    world_sheets(release, again, bank=bank)
    assert json.loads((again / "key.json").read_text()) == {}
    world_sheets(release, again, [ICE], bank)
    unsure = {("altered", "logic_factual"): "unsure"}
    record(again, [answered(again, unsure)], bank)
    (fault,) = SUITE.faults(built(bank), Banks(bank))
    assert fault.field == "logic_factual"
    assert "yes of the real world, unsure of the altered world: Does ice stick" in fault.message
    shown = set()
    for name in "abc":  # the newest look at a world counts, whichever of its images it was at
        world_sheets(release, tmp_path / name, [ICE], bank)
        key = json.loads((tmp_path / name / "key.json").read_text())
        shown |= {one["image"] for one in key.values()}
        record(tmp_path / name, [answered(tmp_path / name, unsure)], bank)
        assert len(read_world_looks(bank)) == 4
    assert len(shown) == 4
    found = worlds_census(Banks(bank))
    assert found.drawn == {"Biology": 1, "Physics": 1, "all": 2}
    told = {one.question: asdict(one) for one in found.looked_at["all"]}
    assert told["point_factual"] == dict(question="point_factual", groups=2, told=2, unsure=0)
    assert told["logic_factual"] == dict(question="logic_factual", groups=2, told=1, unsure=1)


def test_looks_expire_with_their_image_or_question(release: Path, tmp_path: Path) -> None:
    bank, blind = write_bank(tmp_path / "bank"), tmp_path / "blind"
    world_sheets(release, blind, bank=bank)
    wrong = dict.fromkeys([("real", "point_factual"), ("altered", "presence")], "no")
    record(blind, [answered(blind, wrong)], bank)
    faults = list(SUITE.faults(built(bank), Banks(bank)))
    assert [f.field for f in faults] == ["presence", "point_factual"] * 2
    assert "must be yes, answered yes of the real world, no of the altered" in faults[0].message
    file = bank / "counterfactual" / "all.yaml"
    file.write_text(file.read_text().replace("Does the cube float", "Does a cube float"))
    left = list(SUITE.faults(built(bank), Banks(bank)))
    assert [f.field for f in left] == ["presence", "point_factual"]
    assert all(TREE in f.message for f in left)
    (seen,) = {one.groups for one in worlds_census(Banks(bank)).looked_at["all"]}
    assert seen == 1
    write_bank(bank, [DRAWINGS[0] | {"over": ""}, DRAWINGS[1] | {"ground": GROUND}])
    assert not list(SUITE.faults(built(bank), Banks(bank)))
    assert not worlds_census(Banks(bank)).looked_at


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"group": "nobody"}, "bad-entry", ("nobody",)),
        ({"group": "thumb-retired"}, "bad-entry", ("thumb-retired", "retired")),
        ({"group": "thumb-bare"}, "bad-entry", ("thumb-bare", "worlds/")),
        ({"group": TREE}, "duplicate-id", (TREE,)),
        ({"real": "", "altered": ""}, "bad-entry", ("real, altered:",)),
        ({"styles": []}, "bad-entry", ("styles:",)),
        ({"ground": f"<rect {ALL} fill='greeen'/>"}, "bad-entry", ("'greeen'",)),
        ({"ground": f"{GROUND}<rect {ALL} fill='red'/>"}, "bad-entry", ("ground", "color")),
        ({"scene": f"<rect {ALL} stroke='#12'/>"}, "bad-entry", ("'#12'",)),
        ({"over": "<image href='unicorn.png'/>"}, "bad-entry", (f"{ICE}.svg", "over", "<image>")),
        ({"behind": "<text fill='red'>Ω</text>"}, "bad-entry", ("behind:", "'Ω'")),
        (
            {"altered": "<line x2='12000' stroke='red'/>"},
            "bad-entry",
            ("altered:", "x 0 to 12000, y 0 to 0"),
        ),
        ({"real": "<rect width='9' fill='red'/>"}, "bad-entry", (f"{ICE}.svg", "rect 1")),
        ({"colour": "red"}, "bad-entry", ("colour:",)),
    ],
)
def test_bad_drawings_are_named(
    tmp_path: Path, change: dict[str, Any], code: str, facts: tuple[str, ...]
) -> None:
    bank = write_bank(tmp_path, [DRAWINGS[0] | change, DRAWINGS[1]])
    laws = bank / "counterfactual" / "all.yaml"
    text = laws.read_text()
    hand = text[text.index("  - id: thumb-hand") :]
    gone = (
        hand.replace("thumb-hand", "thumb-retired") + "    status: retired\n    erratum: Twice.\n"
    )
    laws.write_text(f"{text}{gone}{hand.replace('thumb-hand', 'thumb-bare')}")
    with raises(code, "world_drawings", *facts, error=BankError):
        print(Banks(bank).world_drawings)


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (
            lambda folder: (folder / f"{ICE}.svg").unlink(),
            (f"{ICE}.svg", "No such file"),
        ),
        (
            lambda folder: (folder / f"{ICE}.svg").rename(folder / "ice.svg"),
            ("ice.svg", "no entry", "all.yaml"),
        ),
        (
            lambda folder: (folder / f"{ICE}.svg").write_text("- a"),
            (f"{ICE}.svg", "not XML"),
        ),
        (
            lambda folder: (folder / f"{ICE}.svg").write_text(drawn({"reel": "", "over": ""})),
            (f"{ICE}.svg", "'reel'", "ground, scene, behind, real, altered, over"),
        ),
    ],
)
def test_a_file_that_is_missing_extra_or_of_other_layers_is_named(
    tmp_path: Path, change: Callable[[Path], object], facts: tuple[str, ...]
) -> None:
    change(write_bank(tmp_path) / "world_drawings" / "all")
    with raises("bad-entry", *facts, error=BankError):
        WORLD_DRAWINGS.read(tmp_path)


def test_every_faulty_file_is_named_at_once(tmp_path: Path) -> None:
    changed = [drawing | {"over": "<image/>"} for drawing in DRAWINGS]
    with raises("bad-entry", f"{ICE}.svg", f"{TREE}.svg", error=BankError):
        WORLD_DRAWINGS.read(write_bank(tmp_path, changed))


def test_worlds_that_look_alike_are_named(tmp_path: Path) -> None:
    hidden = DRAWINGS[0] | {"over": f"<rect {ALL} fill='white'/>"}
    (drawing,) = WORLD_DRAWINGS.read(write_bank(tmp_path / "hidden", [hidden]))["all"]
    assert [fault.partition(":")[0] for fault in alike_faults(drawing)] == [*drawing.styles]
    # Only a color differs, which a style of lines does not show.
    colored = DRAWINGS[1] | {"styles": ["flat", "ink"]}
    banks = Banks(write_bank(tmp_path / "colored", [colored]))
    (fault,) = alike_faults(banks.world_drawings[TREE].drawing)
    assert fault.startswith("ink: the two worlds look alike: 0.00%")
    (named,) = SUITE.faults(SUITE.build(banks, random.Random(0)), banks)
    assert named.field == "image" and f"{TREE}, ink: the two worlds look alike" in named.message


@pytest.mark.lane
def test_every_shipped_drawing_shows_two_worlds() -> None:
    if not SHIPPED.world_drawings:
        pytest.skip("the bank has no drawings")
    for file, drawings in WORLD_DRAWINGS.read(SHIPPED.root).items():
        for drawing in drawings:
            assert not [*drawing_faults(drawing), *alike_faults(drawing)], (file, drawing.group)
    rows = SUITE.build(SHIPPED, random.Random(0))
    assert not list(SUITE.faults(rows, SHIPPED))
    assert len(rows) == 4 * worlds_census(SHIPPED).drawn["all"]
    assert {row.suite for row in rows} == {GOLD}
