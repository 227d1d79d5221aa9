"""Seed images: each row is described as its own image shows it."""

import random
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from refusals import raises

from counterprior.builders import seeds
from counterprior.builders.build import suite_faults
from counterprior.builders.seeds import draw_seeds
from counterprior.builders.suite import SHIPPED as BANKS
from counterprior.builders.suites import SUITES
from counterprior.cards.diff import diff
from counterprior.cards.manifest import read_manifest
from counterprior.cli import release
from counterprior.cli.options import CallOptions
from counterprior.errors import UsageError
from counterprior.eval.core import ImageRequest
from counterprior.eval.engine.evaluation import RunSettings, outcomes
from counterprior.eval.engine.steps import evaluate_run
from counterprior.eval.generators.render import RenderGenerator
from counterprior.release import iter_records
from counterprior.scenes.looks import look
from counterprior.scenes.scene import Scene
from counterprior.schema import SeededRow

CONFIGS = ["i2i_homogenization", "i2i_correctness"]


def some_rows(config: str) -> list[SeededRow]:
    rows = SUITES[config].build(BANKS, random.Random(f"0/{config}"))
    return random.Random(1).sample(rows, 4)


def drawn(rows: list[SeededRow], generator: str = "render:") -> list[SeededRow]:
    return draw_seeds(rows, generator, 1, lambda count: None)


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
