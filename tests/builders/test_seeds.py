"""Seed images: each row is described as its own image shows it."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises
from releases import small_release

from counterprior.builders import seeds
from counterprior.builders.build import suite_faults
from counterprior.builders.seeds import draw_seeds
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.suites import SUITES
from counterprior.builders.suites.i2i_homogenization import told_apart
from counterprior.cards.diff import diff
from counterprior.cards.manifest import read_manifest
from counterprior.cli import release
from counterprior.cli.options import CallOptions
from counterprior.errors import UsageError
from counterprior.eval.api import evaluate
from counterprior.eval.core import ImageRequest, Question
from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.generators.render import RenderGenerator
from counterprior.images import encode_png
from counterprior.release import iter_records
from counterprior.scenes.looks import look
from counterprior.scenes.scene import Scene
from counterprior.schema import EncodedImage, SeededRow

CONFIGS = ["i2i_homogenization", "i2i_correctness"]


def some_rows(config: str) -> list[SeededRow]:
    rows = SUITES[config].build(BANKS, random.Random(f"0/{config}"))
    return random.Random(2).sample(rows, 4)


def drawn(rows: list[SeededRow], generator: str = "render:") -> list[SeededRow]:
    return draw_seeds(rows, generator, lambda count: None)


def faulty_fields(config: str, rows: list[SeededRow]) -> set[str]:
    return {fault.field for fault in suite_faults(config, rows, BANKS, complete=False)}


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_carry_the_look_that_the_renderer_draws(config: str) -> None:
    bare = some_rows(config)
    made = drawn(bare)
    for row, before in zip(made, bare, strict=True):
        assert row.left.look == look(row.left.name) != before.left.look
        assert row.right.look == look(row.right.name) != before.right.look
        assert (row.id, row.seeds, row.seed_source) == (before.id, before.seeds, "render")
    assert faulty_fields(config, made) == set()


@pytest.mark.parametrize("config", CONFIGS)
def test_rejects_a_look_other_than_the_drawn_one(config: str) -> None:
    bare = some_rows(config)
    undressed = [
        row.model_copy(update={"left": before.left})
        for row, before in zip(drawn(bare), bare, strict=True)
    ]
    assert faulty_fields(config, undressed) == {"left"}
    # Of another source the look is that of the bank; that the row has no image is named.
    elsewhere = [row.model_copy(update={"seed_source": "x"}) for row in bare]
    assert faulty_fields(config, elsewhere) == {"seed_source"}


class Blank:
    """A generator that is not the renderer."""

    def generate(self, request: ImageRequest) -> Image.Image:
        return Image.new("RGB", (32, 32), "white")

    def identity(self) -> dict[str, str]:
        return {"kind": "blank"}


def test_images_of_another_generator_keep_the_look_of_the_bank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeds, "open_generator", lambda spec: Blank())
    bare = some_rows("i2i_homogenization")
    made = drawn(bare, "blank:")
    assert [(row.left, row.right) for row in made] == [(row.left, row.right) for row in bare]
    assert {row.seed_source for row in made} == {"blank"}


def test_an_entity_that_the_renderer_lacks_is_named() -> None:
    row: Any = some_rows("i2i_homogenization")[0]
    unknown = row.left.model_copy(update={"name": "unicorn"})
    with raises("unsupported", "unicorn", error=UsageError):
        drawn([row.model_copy(update={"left": unknown})])


CONFIG = "i2i_homogenization"
WRONG = "grounding=0&missing=0.2"


class Studio:
    """Draws as the renderer does at its worst, and is not the renderer."""

    def __init__(self) -> None:
        self.inner = RenderGenerator(grounding=0, missing=0.2)

    def generate(self, request: ImageRequest) -> Any:
        return self.inner.generate(request)

    def identity(self) -> dict[str, str]:
        return {"kind": "python", "name": "studio"}


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """The command `build` on four rows; gives the released ones."""
    recipe, some = SUITES[CONFIG], some_rows(CONFIG)

    def few(rows: Any, banks: Any) -> Any:
        return (fault for fault in recipe.faults(rows, banks) if fault.row)

    monkeypatch.setitem(
        SUITES, CONFIG, replace(recipe, build=lambda banks, rng: some, faults=few, rows=4)
    )

    def build(out: Path, seed_images: str, **more: Any) -> list[dict[str, Any]]:
        told = {"config": [CONFIG], "out": out, "jobs": 1, "seed_judge": "pixels"} | more
        release.build(CallOptions(), seed_images=seed_images, **told)
        return list(iter_records(out, CONFIG))

    return build


def right(record: dict[str, Any]) -> bool:
    scene = Scene.of(Image.open(BytesIO(record["seed_image"]["bytes"])))
    names = (record["left"]["name"], record["right"]["name"])
    return not scene.faults and scene.left_to_right() == names


@pytest.mark.slow
def test_a_release_has_only_seed_images_that_the_judge_affirmed(
    make: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    out = tmp_path / "release"
    records = make(out, f"render:?{WRONG}", seed_tries=1)
    having = [r for r in records if r["seed_image"]]
    assert 0 < len(having) < 4 and all(map(right, having))
    lacking = [r for r in records if not r["seed_image"]]
    assert {r["seed_source"] for r in lacking} == {"none"}
    assert {r["seed_source"] for r in having} == {"render"}
    facts = read_manifest(out)
    assert facts.seed_check is not None and facts.configs[0].status == "preview"
    assert (facts.seed_check.scenes, facts.seed_check.kept) == (4, len(having))
    assert sum(facts.seed_check.refused.values()) == len(lacking)
    assert f"{len(lacking)} of them without a seed image" in (out / "README.md").read_text()
    assert f"`{CONFIG}` {len(lacking)}" in (out / "datasheet.md").read_text()
    assert release._check_by(None)(out).problems == ()

    # A run counts what has no image as missing, and makes nothing in its place.
    run = RunSettings(CONFIG, str(out), tmp_path / "run")
    done = evaluate_run(run, "render:", ["pixels"])
    said = [outcome.image for outcome in outcomes(done.run, done.judged[0][0])]
    assert sorted(said) == ["made"] * len(having) + ["missing"] * len(lacking)


@pytest.mark.lane
def test_the_same_again_is_the_same_and_more_tries_only_add_images(
    make: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    out = tmp_path / "release"
    records = make(out, f"render:?{WRONG}", seed_tries=1)
    having = [r for r in records if r["seed_image"]]
    make(tmp_path / "again", f"render:?{WRONG}", seed_tries=1)
    assert diff(out, tmp_path / "again").bump == "NONE"
    more = make(tmp_path / "again", f"render:?{WRONG}", seed_tries=3)
    assert sum(bool(r["seed_image"]) for r in more) > len(having)
    assert all(m == r for m, r in zip(more, records, strict=True) if r["seed_image"])


STUDIO = f"python:{__name__}:Studio"


def test_rejects_seed_options_before_drawing(
    make: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    out, studio = tmp_path / "release", STUDIO
    with raises("missing-option", "--seed-judge", error=UsageError):
        make(out, studio, seed_judge="")
    with raises("missing-option", "--seed-license", error=UsageError):
        make(out, studio)
    with raises("conflicting-options", "--seed-judge", "without --seed-images", error=UsageError):
        make(out, "none")
    with raises("conflicting-options", "--seed-license", error=UsageError):
        make(out, "render:", seed_license="CC-BY-4.0")
    assert not out.exists() and not (tmp_path / "release-seeds").exists()


@pytest.mark.lane
def test_images_of_another_generator_keep_the_look_that_the_judge_affirmed(
    make: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    out = tmp_path / "release"
    records = make(out, STUDIO, seed_license="Apache-2.0", seed_tries=2)
    having = [r for r in records if r["seed_image"]]
    assert having and all(map(right, having))
    assert {r["license"] for r in having} == {"Apache-2.0 AND CC-BY-4.0"}
    bare = {row.id: row for row in some_rows(CONFIG)}
    assert all(r["left"]["look"] == bare[r["id"]].left.look for r in records)  # type: ignore[attr-defined]
    assert "Noto Emoji" not in (out / "LICENSE").read_text() + (out / "README.md").read_text()
    assert release._check_by(None)(out).problems == ()


ALREADY = [
    ("animal_opening_mouth", "wide open mouth"),
    ("animal_opening_mouth", "mouth open with white teeth"),
    ("animal_sticking_out_tongue", "a pink tongue hanging out"),
    ("animal_running", "galloping over the grass"),
    ("animal_running", "at a fast trot, racing along"),
    ("animal_lowering_head", "grazing in the meadow"),
    ("animal_lying_down", "sprawled on the floor"),
    ("animal_walking", "striding to the side"),
    ("animal_looking_up", "eyes gazing up"),
    ("animal_sniffing", "its nose to the ground"),
    ("animal_raising_paw", "a lifted front paw"),
    ("animal_swimming", "half under water"),
    ("animal_jumping", "all four feet off the ground"),  # no word of it is known
    ("human_photographing", "a camera with its flash going off"),
    ("human_saluting", "one hand at the brow in a salute"),
    ("object_falling", "shown in the air, upside down"),
    ("object_dirty", "with muddy wheels"),
    ("object_worn", "scuffed and faded all over"),
    ("object_broken", "in three pieces"),
    ("object_tipping_over", "toppling to one side"),
]
"""Action, and what a look says if the seed shows it already; written without the bank's words."""


def test_a_seed_that_shows_the_action_already_is_rejected() -> None:
    rows = SUITES[CONFIG].build(BANKS, random.Random(f"0/{CONFIG}"))
    planted: list[Any] = []
    for number, (action, said) in enumerate(ALREADY):
        row: Any = next(
            r for r in rows if r.provenance.entry == action and r.id not in {p.id for p in planted}
        )
        side = ("left", "right")[number % 2]
        entity: Any = getattr(row, side)
        shown = entity.model_copy(update={"look": f"{entity.look}, {said}"})
        planted.append(row.model_copy(update={side: shown}))
    faults = suite_faults(CONFIG, planted, BANKS, complete=False)
    caught = {fault.row for fault in faults if fault.field.endswith(".look")}
    assert len(planted) == 20
    assert len(caught) >= 19, [
        a for a, row in zip(ALREADY, planted, strict=True) if row.id not in caught
    ]


SEEN = {
    "animal_opening_mouth": "frog crocodile",
    "animal_sticking_out_tongue": "snake",
    "animal_running": "horse",
    "animal_jumping": "horse",
    "animal_walking": "horse elephant turtle hedgehog pig",
    "animal_sitting": "rabbit fox hamster bear dog",
    "animal_raising_tail": "cat goat",
    "animal_curling_tail": "cat",
    "animal_flying": "eagle",
    "animal_taking_flight": "eagle",
    "animal_diving": "eagle",
    "animal_flapping_wings": "eagle",
    "animal_looking_up": "giraffe parrot",
    "animal_stretching_neck": "giraffe",
    "animal_raising_paw": "dog",
    "animal_basking": "lizard",
    "object_leaning": "tennis_racket baseball_bat ski guitar skateboard",
    "object_tilted": "suitcase",
    "object_tilting": "suitcase",
    "object_tipping_over": "suitcase",
    "object_falling": "frisbee fork knife spoon remote trumpet violin flute",
    "object_screen_on_off": "cell_phone laptop television",
}
"""Action -> things whose drawing an eye could take to show it, read from the drawings alone."""


@pytest.mark.slow
def test_an_editor_that_returns_the_seed_has_no_bias(tmp_path: Path) -> None:
    pixel = EncodedImage(bytes=encode_png(Image.new("RGB", (16, 16))), path="seed.png")
    digest = hashlib.sha256(pixel.bytes).hexdigest()
    filled = {"seed_image": pixel, "image_sha256": digest}
    built = SUITES[CONFIG].build(BANKS, random.Random(f"0/{CONFIG}"))
    rows: dict[str, Any] = {
        row.id: seeds.described(row, "render").model_copy(update=filled)
        for row in built
        if isinstance(row, SeededRow)
        and any(seen(row, side) for side in (row.left.name, row.right.name))
    }
    data = small_release(
        tmp_path / "data", [CONFIG], lambda _: list(rows.values()), seed_images="none"
    )

    def judge(question: Question) -> str:
        row = rows[question.case.rsplit("-", 2)[0]]
        shows = [seen(row, name) for name in (row.left.name, row.right.name)]
        return {(True, False): "left_acts", (False, True): "right_acts"}.get(
            (shows[0], shows[1]), "invalid"
        )

    done = evaluate(CONFIG, lambda prompt, seed, source: source, judge, data=str(data))
    scores = done.scores
    assert scores["hom"].n > 20, "arguable states must remain, else the run says nothing"
    low, high = scores["signed_index"].interval
    assert low <= 0 <= high
    assert scores["hom"].value == 0, "every state is seen on the left as often as on the right"


def seen(row: Any, name: str) -> bool:
    return name.replace(" ", "_") in SEEN.get(row.provenance.entry, "").split()


@pytest.mark.parametrize("config", CONFIGS)
def test_an_editor_can_tell_the_two_apart(config: str) -> None:
    rows = SUITES[config].build(BANKS, random.Random(f"0/{config}"))
    for row in rows:
        assert isinstance(row, SeededRow)
        assert ("full body" in row.seed_prompt) == (row.pair_type != "O-O")
        if row.pair_type == "H-H":
            assert told_apart(BANKS.taxonomy, row.left.name, row.right.name)
    assert not told_apart(
        BANKS.taxonomy, "male school counselor", "male dentist"
    )  # gray hair, a prop
    assert told_apart(BANKS.taxonomy, "male school counselor", "female dentist")
    assert told_apart(BANKS.taxonomy, "male school counselor", "male chef")


def test_neither_half_of_a_bound_edit_is_true_already() -> None:
    actions = BANKS.taxonomy.actions.values()
    ordinary = {action.clause for action in actions if action.ordinary and action.clause}
    for row in SUITES["i2i_correctness"].build(BANKS, random.Random("0/i2i_correctness")):
        expected: Any = row
        assert not ordinary & {expected.left_expected, expected.right_expected}
        assert "standing up straight" not in expected.aligned_instruction
