"""LoRA on mirrored pairs: it learns, goes on after a kill bit for bit, and reloads as trained."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flip_sets import trained_losses, trained_weights, write_flips
from refusals import raises
from steered import OPTIONS, STEPS, Opened, request

from counterprior.errors import RunFailed
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.tuning.pairs import TABLE, export_imagefolder, fitted, read_flips
from counterprior.eval.methods.tuning.recipe import LoraRecipe
from counterprior.eval.methods.tuning.trainer import CHECKPOINT, WEIGHTS, LoraTrainer

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

QUICK = LoraRecipe(
    rank=4,
    alpha=8,
    conv_rank=2,
    conv_alpha=4,
    steps=24,
    learning_rate=2e-2,
    optimizer="adamw",
    size=64,
    held_out=0,
)
EVERY = 2
"""Steps between checkpoints."""
FAMILIES = (
    *(pytest.param(k, marks=pytest.mark.lane) for k in ("flux", "qwen-image", "sd3")),
    "sdxl",
)


def trained(
    opened: Opened, kind: str, flips: Path, out: Path, recipe: LoraRecipe = QUICK, stop: int = 0
) -> LoraTrainer:
    """A training to the end, or killed after a step."""

    class Killed(BaseException):
        pass

    def after_step(step: int) -> None:
        if stop and step == stop:
            raise Killed

    pairs = read_flips(flips, recipe.mirrored, recipe.held_out, recipe.seed)
    trainer = LoraTrainer(opened(kind).pipeline, pairs.train, recipe, out)
    with suppress(Killed):
        trainer.train(after_step, every=EVERY)
    return trainer


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_loss_falls_and_a_reload_is_the_trained_model(
    opened: Opened, kind: str, tmp_path: Path
) -> None:
    flips = write_flips(tmp_path / "flips")
    trainer = trained(opened, kind, flips, tmp_path / "lora")
    found = trained_losses(tmp_path / "lora")
    assert len(found) == QUICK.steps and trainer.optimizer == "adamw"
    assert np.mean(found[-8:]) < 0.95 * np.mean(found[:8])
    asked = request(kind)
    base = opened(kind)
    before = base.generate(asked).tobytes()
    tuned = apply_methods(base, [f"lora:{tmp_path / 'lora'}"])
    after = tuned.generate(asked).tobytes()  # type: ignore[union-attr]
    own = opened(kind)
    own.pipeline = trainer._pipeline
    assert after == own.generate(asked).tobytes() != before
    assert base.generate(asked).tobytes() == before  # the weights are only on within the method
    assert tuned.identity()["method"].startswith("lora:lora@")
    weak = apply_methods(base, [f"lora:{tmp_path / 'lora'}?scale=0.5"])
    assert weak.generate(asked).tobytes() not in (before, after)  # type: ignore[union-attr]
    from safetensors import safe_open

    with safe_open(tmp_path / "lora" / WEIGHTS, "pt") as file:
        (adapter,) = [json.loads(text) for text in file.metadata().values() if "{" in text]
    (modules,) = [value for name, value in adapter.items() if name.endswith("target_modules")]
    assert modules == sorted(modules) and len(modules) > 3
    if kind == "sdxl":
        with safe_open(tmp_path / "lora" / WEIGHTS, "pt") as file:
            ranks = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        conv = [s for n, s in ranks.items() if ".conv1." in n and "lora_A" in n]
        linear = [s for n, s in ranks.items() if "to_q" in n and "lora_A" in n]
        assert conv and {s[0] for s in conv} == {2} and {s[0] for s in linear} == {4}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("flux", marks=pytest.mark.lane), "sdxl"])
def test_a_killed_training_ends_in_the_same_bits(
    opened: Opened, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flips = write_flips(tmp_path / "flips")
    recipe = replace(QUICK, steps=5)
    trained(opened, kind, flips, tmp_path / "whole", recipe)
    for stop in (1, 3):  # between checkpoints too
        trained(opened, kind, flips, tmp_path / "killed", recipe, stop)
    trained(opened, kind, flips, tmp_path / "killed", recipe)
    assert trained_losses(tmp_path / "whole") == trained_losses(tmp_path / "killed")
    assert trained_weights(tmp_path / "whole") == trained_weights(tmp_path / "killed")
    _fill_the_disk(monkeypatch)
    with raises("cannot-write", "weights.safetensors", "28", error=RunFailed):
        trained(opened, kind, flips, tmp_path / "killed", recipe)
    assert trained_weights(tmp_path / "whole") == trained_weights(tmp_path / "killed")
    with raises("another-run", "adamw"):
        trained(opened, kind, flips, tmp_path / "killed", replace(recipe, alpha=4))
    (tmp_path / "killed" / CHECKPOINT).write_bytes(b"torn")
    with raises("damaged-file", "checkpoint.pt"):
        trained(opened, kind, flips, tmp_path / "killed", recipe)


@pytest.mark.lane
def test_moments_in_eight_bits_are_trained_and_resumed_too(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bitsandbytes")
    import torch

    flips = write_flips(tmp_path / "flips")
    large = replace(QUICK, rank=128, alpha=128, optimizer="adamw8bit", learning_rate=2e-3)
    whole = trained(opened, "sdxl", flips, tmp_path / "whole", large)
    kinds = {moments["state1"].dtype for moments in whole._optimizer.state.values()}
    assert whole.optimizer == "adamw8bit" and torch.uint8 in kinds  # small tensors stay in 32 bits
    found = trained_losses(tmp_path / "whole")
    assert np.mean(found[-8:]) < 0.95 * np.mean(found[:8])
    for stop in (5, 18):
        trained(opened, "sdxl", flips, tmp_path / "killed", large, stop)
    with monkeypatch.context() as without, raises("another-run", "adamw", "--out"):
        without.setitem(sys.modules, "bitsandbytes.optim", None)
        trained(opened, "sdxl", flips, tmp_path / "killed", large)
    trained(opened, "sdxl", flips, tmp_path / "killed", large)
    assert trained_losses(tmp_path / "killed") == found
    assert trained_weights(tmp_path / "killed") == trained_weights(tmp_path / "whole")


def _fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are torn, as safetensors tears them and says so."""
    import safetensors.torch

    def save(tensors: Any, file: Any, metadata: Any = None) -> None:
        Path(file).write_bytes(b"torn")
        raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors.torch, "save_file", save)


def test_held_out_pairs_and_mirror_images(tmp_path: Path) -> None:
    flips = write_flips(tmp_path / "flips", pairs=5)
    both = read_flips(flips, mirrored=True, held_out=2, seed=0)
    originals = read_flips(flips, mirrored=False, held_out=2, seed=0)
    assert len(both.train) == 6 and len(both.held_out) == 2
    assert len(originals.train) == 3 and not any(i.mirrored for i in originals.train)
    assert originals.held_out == both.held_out
    assert not {i.pair for i in both.train} & {i.pair for i in both.held_out}
    with raises("too-few-items", "flips", "5 pairs"):
        read_flips(flips, mirrored=True, held_out=5, seed=0)
    with raises("no-such-file", tmp_path, "counterprior corpus flips"):
        read_flips(tmp_path, mirrored=True, held_out=0, seed=0)


def test_a_set_whose_last_line_was_cut_off_is_refused(tmp_path: Path) -> None:
    table = write_flips(tmp_path / "flips", pairs=2) / TABLE
    table.write_bytes(table.read_bytes()[:-9])
    with raises("bad-json", f"{table}:4", "cut off"):
        read_flips(tmp_path / "flips", mirrored=True, held_out=0, seed=0)


def test_images_are_cropped_to_the_nearest_shape(tmp_path: Path) -> None:
    flips = write_flips(tmp_path / "flips", pairs=1, size=(400, 300))
    (image, _) = read_flips(flips, mirrored=True, held_out=0, seed=0).train
    assert fitted(image, 512).size == (576, 448)
    image.path.write_bytes(b"no image")
    with raises("unreadable-image", "0-original.png"):
        fitted(image, 512)


def test_the_set_is_exported_for_other_trainers(tmp_path: Path) -> None:
    import datasets

    flips = read_flips(write_flips(tmp_path / "flips"), mirrored=True, held_out=0, seed=0)
    assert export_imagefolder(flips.train, tmp_path / "out") == 4
    table = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "out"), split="train")
    assert table.num_rows == 4 and set(table.column_names) == {"image", "text"}
    captions = sorted(p.read_text() for p in (tmp_path / "out" / "train").glob("*.txt"))
    assert captions == ["a dog and a cat 0\n"] * 2 + ["a dog and a cat 1\n"] * 2
    with raises("folder-not-empty", tmp_path / "out", "--out"):
        export_imagefolder(flips.train, tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rank": 0}, ("out-of-range", "rank")),
        ({"learning_rate": 0.0}, ("out-of-range", "learning_rate")),
        ({"optimizer": "sgd"}, ("unknown-name", "sgd")),
    ],
)
def test_a_wrong_recipe_says_so(changes: dict[str, Any], reason: tuple[str, ...]) -> None:
    with raises(*reason):
        replace(LoraRecipe(), **changes)


def test_the_recipe_is_the_papers() -> None:
    r = LoraRecipe()
    assert (r.rank, r.alpha, r.conv_rank, r.conv_alpha, r.steps) == (32, 32, 16, 16, 10_000)
    assert (r.learning_rate, r.weight_decay, r.optimizer) == (1e-4, 1e-4, "adamw8bit")


def test_weights_are_refused_where_they_cant_be(tmp_path: Path) -> None:
    flips = write_flips(tmp_path / "flips")
    with raises("no-such-file", flips, ".safetensors"):
        apply_methods("render:", [f"lora:{flips}"])
    (tmp_path / "render.json").write_text('{"order_bias": 0.5}')
    with raises("conflicting-options", "lora"):
        apply_methods("render:", ["switch:a2b?at=1", f"lora:{tmp_path}"])
    halved = apply_methods("render:?order_bias=2", [f"lora:{tmp_path}"])
    assert halved.identity()["order_bias"] == "2"
    assert halved.inner.identity()["order_bias"] == "1"  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_tuned_pipeline_can_be_switched(opened: Opened, tmp_path: Path) -> None:
    flips = write_flips(tmp_path / "flips")
    trained(opened, "sdxl", flips, tmp_path / "lora", replace(QUICK, steps=4))
    base = opened("sdxl", OPTIONS["sdxl"])
    lora = f"lora:{tmp_path / 'lora'}"
    images = {
        at: apply_methods(base, [lora, f"switch:a2b?at={at}"]).generate(request("sdxl")).tobytes()  # type: ignore[union-attr]
        for at in (0, 1, STEPS)
    }
    plain = apply_methods(base, [lora]).generate(request("sdxl")).tobytes()  # type: ignore[union-attr]
    assert images[STEPS] == plain and len(set(images.values())) == 3
