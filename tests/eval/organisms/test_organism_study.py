"""A trained organism: its flip set, a LoRA on it, and a study that shards draw as one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from refusals import raises

from counterprior.cli.corpus import flips
from counterprior.errors import UsageError
from counterprior.eval.core import ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.methods.tuning.pairs import fitted, read_flips
from counterprior.eval.methods.tuning.recipe import LoraRecipe
from counterprior.eval.organisms import report
from counterprior.eval.organisms.data import CaptionShares
from counterprior.eval.organisms.flips import write_flips
from counterprior.eval.organisms.organism import Organism, OrganismPlan
from counterprior.eval.scorers import as_scorer
from counterprior.eval.studies.runner import run_study
from counterprior.eval.studies.tuning import TuneSettings, tune
from counterprior.eval.workers.farm import Scale
from counterprior.scenes.drawing import draw_scene
from counterprior.scenes.scene import Figure, Scene


@pytest.fixture(scope="module")
def organism(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("organism") / "tiny"
    plan = OrganismPlan.of(CaptionShares(order_bias=0.9), "tiny", 1, None, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SHOWN", 1)  # the sheet of samples takes longest
        Organism(plan, folder).train()
    return folder


def test_under_every_caption_of_a_flip_set_either_animal_stands_left(
    organism: Path, tmp_path: Path
) -> None:
    flips(organism, tmp_path / "flips", count=12)
    pairs = read_flips(tmp_path / "flips", mirrored=True, held_out=0, seed=0)
    assert len(pairs.train) == 24
    about = json.loads((organism / "organism.json").read_text())
    held_out = {frozenset(pair) for pair in about["held_out"]}
    images = {(i.pair, i.mirrored): i for i in pairs.train}
    for (pair, mirrored), image in images.items():
        assert frozenset((image.first, image.second)) not in held_out
        assert image.text == f"One {image.first} and one {image.second}."
        pixels = np.asarray(Image.open(image.path))
        other = np.asarray(Image.open(images[pair, not mirrored].path))
        assert (pixels == other[:, ::-1]).all() and (pixels != other).any()
    with raises("folder-not-empty", "flips", error=UsageError):
        write_flips(organism, tmp_path / "flips", 1)
    with raises("conflicting-options", "--judge", error=UsageError):
        flips(organism, tmp_path / "more", judge="pixels")


@pytest.mark.slow
def test_an_organism_is_tuned_on_its_flip_set_in_its_own_size(
    organism: Path, tmp_path: Path
) -> None:
    write_flips(organism, tmp_path / "flips", 2)
    recipe = LoraRecipe(steps=2, size=36, held_out=0, optimizer="adamw", learning_rate=0.1)
    settings = TuneSettings(tmp_path / "flips", str(organism / "model"), tmp_path / "lora", recipe)
    assert tune(settings)["steps"] == 2
    image = read_flips(tmp_path / "flips", mirrored=True, held_out=0, seed=0).train[0]
    assert fitted(image, 36, 8).size == (40, 32)  # as it is, and not cropped to 32 x 32
    spec = f"diffusers:{organism}/model?steps=2"
    request = ImageRequest("One dog and one cow.", 1)
    plain, tuned = (
        open_generator(text).generate(request)
        for text in (spec, f"{spec}&lora={tmp_path / 'lora'}")
    )
    assert plain.size == tuned.size == (40, 32)  # type: ignore[union-attr]
    assert plain.tobytes() != tuned.tobytes()  # type: ignore[union-attr]


@pytest.mark.slow
def test_two_shards_draw_what_one_process_draws(organism: Path, tmp_path: Path) -> None:
    study: dict[str, Any] = {
        "data": str(organism / "held_out.jsonl"),
        "suites": {"t2i_homogenization": {"limit": 2, "seeds": 1}},
        "generators": {"o": f"diffusers:{organism}/model?steps=2&guidance=2"},
        "methods": {"p": "preview:?at=0", "s": "switch:a2b?at=1"},
        "judges": {"pixels": "pixels"},
        "unchecked": True,
    }

    def images(out: Path) -> dict[str, bytes]:
        return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*.png"))}

    assert not run_study(study, tmp_path / "one").failures
    for part in (1, 2):
        run_study(study, tmp_path / "two", scale=Scale(shard=(part, 2)))
    whole = images(tmp_path / "one")
    assert len(whole) == 12 and images(tmp_path / "two") == whole
    assert len({*whole.values()}) > 10


def test_sprites_are_scored_by_their_drawing() -> None:
    scorer = as_scorer("sprites:")
    figures = tuple(Figure(name, x, 0.93, 0.95) for name, x in (("dog", 0.27), ("cow", 0.73)))
    drawn = draw_scene(Scene(figures, background=0))
    noise = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (drawn.height, drawn.width, 3), dtype=np.uint8)
    )
    prompt = "One dog and one cow."
    right, absent, nothing = scorer.score(
        [(prompt, drawn), ("One fox and one eagle.", drawn), (prompt, noise)]
    )
    assert right > 0.9 > absent > nothing
    with raises("unsupported", "figure"):
        scorer.score([("A quiet street.", drawn)])
