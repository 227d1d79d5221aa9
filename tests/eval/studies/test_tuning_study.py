"""`counterprior tune`: from a flip set to weights that `--method lora:` loads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flip_sets import write_flips
from refusals import raises

from counterprior.cli.methods import tune as command
from counterprior.eval.core import ImageRequest
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.tuning.recipe import OPTIMIZERS, LoraRecipe
from counterprior.eval.studies.tuning import TuneSettings, tune

OPTIONS = "device=cpu&steps=2&height=64&width=64"


@pytest.mark.slow
def test_a_flip_set_becomes_weights_and_a_curve(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "brighter.py").write_text(
        "def judge():\n"
        "    # Which half is brighter: an answer that depends on the picture alone.\n"
        "    def look(question):\n"
        "        import numpy as np\n"
        "        shown = np.asarray(question.images[-1], float)\n"
        "        half = shown.shape[1] // 2\n"
        "        return question.labels[int(shown[:, :half].mean() < shown[:, half:].mean())]\n"
        "    return look\n"
    )
    settings = TuneSettings(
        flips=write_flips(tmp_path / "flips", pairs=4),
        model=f"diffusers:{checkpoint('sd3')}?{OPTIONS}",
        out=tmp_path / "lora",
        recipe=LoraRecipe(rank=2, steps=4, size=64, held_out=2),
        judge="python:brighter:judge",
        validate_every=2,
    )
    found = tune(settings)
    assert found["steps"] == 4 and found["images"] == 4 and found["held_out"] == 2
    assert found["recipe"]["optimizer"] in OPTIMIZERS
    assert [point["step"] for point in found["validation"]] == [0, 2, 4]
    for point in found["validation"]:
        assert point["first_left"] + point["first_right"] == 2 and not point["excluded"]
    assert (tmp_path / "lora" / "tuning.html").read_text().count("<svg") == 2
    assert len(list((tmp_path / "lora" / "validation").rglob("*.png"))) == 6
    assert tune(settings) == found  # nothing is trained or judged again
    records = (tmp_path / "lora" / "validation.jsonl").read_text()
    assert len(records.splitlines()) == 3
    lost = records.splitlines(keepends=True)[:2]  # as a kill between checkpoint and validation
    (tmp_path / "lora" / "validation.jsonl").write_text("".join(lost))
    assert tune(settings) == found
    with raises("another-run", "adamw"):
        tune(replace(settings, recipe=replace(settings.recipe, mirrored=False)))
    tuned = apply_methods(settings.model, [f"lora:{tmp_path / 'lora'}"])
    assert tuned.generate(ImageRequest("a dog", 1)).size == (64, 64)  # type: ignore[union-attr]


def test_the_set_is_exported_without_training(tmp_path: Path, cli: Callable[..., Any]) -> None:
    flips = write_flips(tmp_path / "flips", pairs=3)
    words = ("--flips", flips, "--held-out", 1, "--export", "imagefolder", "--no-mirrored")
    done = cli("tune", *words, "--out", tmp_path / "folder")
    assert done.returncode == 0, done.stderr
    assert "2 captioned images" in done.stderr
    assert len(list((tmp_path / "folder" / "train").glob("*.png"))) == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, ("missing-option", "--model")),
        ({"export": "zip"}, ("unknown-name", "zip")),
        ({"model": "x", "held_out": 9}, ("too-few-items",)),
        ({"model": "nobody/nothing"}, ("wrong-model",)),
        ({"model": "diffusers:nobody/nothing"}, ("wrong-model",)),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, options: dict[str, Any], reason: tuple[str, ...]
) -> None:
    flips = write_flips(tmp_path / "flips")
    with raises(*reason):
        command(flips, tmp_path / "lora", **{"held_out": 0, **options})
    assert not (tmp_path / "lora").exists()


def test_a_judge_needs_held_out_pairs(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    settings = TuneSettings(
        flips=write_flips(tmp_path / "flips"),
        model=str(checkpoint("sd3")),
        out=tmp_path / "lora",
        recipe=LoraRecipe(held_out=0),
        judge="pixels",
    )
    with raises("conflicting-options"):
        tune(settings)


@pytest.mark.lane
def test_two_processes_train_on_two_examples_a_step(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    flips = write_flips(tmp_path / "flips", pairs=4)
    model = f"diffusers:{checkpoint('sd3')}?{OPTIONS}"

    def losses(processes: int, steps: int) -> list[float]:
        out = tmp_path / f"of-{processes}"
        told = {"flips": flips, "model": model, "out": out, "held-out": 1, "steps": steps}
        told |= {"size": 64, "rank": 2, "learning-rate": 1e-12}  # so small that no step counts
        words = [str(word) for name, value in told.items() for word in (f"--{name}", value)]
        start = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
        subprocess.run([*start, "-m", "counterprior", "tune", *words], check=True, timeout=300)
        found = [json.loads(line) for line in (out / "losses.jsonl").read_text().splitlines()]
        assert [one["step"] for one in found] == list(range(1, steps + 1))
        return [one["loss"] for one in found]

    one, two = losses(1, 4), losses(2, 2)
    assert two == pytest.approx([(one[0] + one[1]) / 2, (one[2] + one[3]) / 2], rel=1e-5)
    tuned = apply_methods(model, [f"lora:{tmp_path / 'of-2'}"])
    assert tuned.generate(ImageRequest("a dog", 1)).size == (64, 64)  # type: ignore[union-attr]
