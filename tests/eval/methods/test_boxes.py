"""A layout given as boxes: the published ones, seen by GLIGEN or by BoxDiff's loss."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import assert_refused, raises
from steered import OPTIONS, STEPS, Opened, request

from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT
from counterprior.eval.geometry.boxes import Box
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.boxes import PLACEMENTS, BoxesOptions, box_loss, place_things
from counterprior.scenes.scene import Scene

Cli = Callable[..., subprocess.CompletedProcess[str]]
STATED = {"object_a": "dog", "relation": "right_of", "object_b": "cat"}
PAIR = {"first": "dog", "second": "cat", "first_kind": "animal", "second_kind": "animal"}


def test_boxes_are_those_of_the_published_configs() -> None:
    """`box_placement` of configs/gen_sd15_boxdiff.yaml and gen_sd15_gligen.yaml, the same in both:
    x_range and y_range of box_a, then of box_b."""
    low, middle, high = (0.05, 0.35), (0.25, 0.75), (0.65, 0.95)
    published = {
        "left_of": ((low, middle), (high, middle)),
        "right_of": ((high, middle), (low, middle)),
        "above": ((middle, low), (middle, high)),
        "below": ((middle, high), (middle, low)),
    }
    ours = {
        relation: tuple(((box.x1, box.x2), (box.y1, box.y2)) for box in pair)
        for relation, pair in PLACEMENTS.items()
    }
    assert ours == published
    options = BoxesOptions()
    # boxdiff_kwargs: max_iter_to_alter, scale_factor, attention_res, sigma, P, L
    published_settings = (25, 20, 16, 0.5, 0.2, 1)
    assert published_settings == (
        *(options.steps, options.scale, options.size),
        *(options.smooth, options.share, options.corner),
    )
    assert options.beta == 0.3  # gligen_scheduled_sampling_beta


def test_the_loss_is_least_for_attention_in_the_box() -> None:
    torch = pytest.importorskip("torch")
    options = BoxesOptions(share=0.25)
    left, right = PLACEMENTS["left_of"]
    weights = torch.zeros(1, 16, 16)
    weights[:, 4:12, 1:6] = 1  # rows .25 to .75 and columns .05 to .35, rounded
    assert float(box_loss(weights, left, options)) == 0
    assert float(box_loss(weights, right, options)) > 1.5
    # By hand: a 4 x 4 map, the left half as the box, 2 of 8 positions count on each side.
    weights = torch.tensor([[[0.9, 0.1, 0.3, 0.0]] + [[0.5, 0.1, 0.2, 0.0]] * 3])
    inner, outer = 1 - (0.9 + 0.5) / 2, (0.3 + 0.2) / 2
    columns = (0.1 + 0.9 + 0.3 + 0.0) / 4  # edges at 0 and 2, a position wide: 0 to 1, 1 to 3
    rows = (0.1 + 0.5 + 0.5) / 4  # edges at 0 and 4: 0 to 1, and 3
    loss = float(box_loss(weights, Box(0, 0, 0.5, 1), options))
    assert loss == pytest.approx(inner + outer + columns + rows)


def test_boxdiff_lowers_its_loss_and_no_step_changes_nothing(opened: Opened) -> None:
    generator = opened("sd15")
    asked = replace(request("sd15"), fields=STATED)

    def boxed(options: str) -> Any:
        return apply_methods(generator, [f"boxes:boxdiff?size=0&{options}"]).generate(asked)

    plain = generator.generate(asked)
    assert boxed("steps=0").tobytes() == plain.tobytes()
    image = boxed("scale=1000")
    report = json.loads(image.info[REPORT])["boxes"]
    assert image.tobytes() != plain.tobytes() and report["steps"] == [0, 1, 2]
    assert report["things"] == [
        {"name": "dog", "box": [0.65, 0.25, 0.95, 0.75]},
        {"name": "cat", "box": [0.05, 0.25, 0.35, 0.75]},
    ]
    # Another step has another noise: compare the loss with that of a run that hardly moves.
    still = json.loads(boxed("scale=1e-9").info[REPORT])["boxes"]["losses"]
    assert report["losses"][0] == still[0]
    assert all(
        moved < before for moved, before in zip(report["losses"][1:], still[1:], strict=True)
    )
    assert generator.generate(asked).tobytes() == plain.tobytes()  # nothing stays behind


def test_gligen_sees_both_boxes_and_without_a_step_none(opened: Opened) -> None:
    generator = opened("gligen")
    for name in ("gligen_phrases", "gligen_boxes"):
        del generator._call[name]
    pipeline = generator.pipeline
    for name, weight in pipeline.unet.named_parameters():
        if name.endswith(("alpha_attn", "alpha_dense")):  # zero before training
            weight.data.fill_(1.0)
    asked = replace(request("gligen"), fields=STATED)

    import torch
    from diffusers import StableDiffusionPipeline

    parts = {**pipeline.components, "safety_checker": None, "feature_extractor": None}
    ungrounded = StableDiffusionPipeline(**parts, requires_safety_checker=False)
    ungrounded.set_progress_bar_config(disable=True)
    made = ungrounded(
        *(asked.prompt, 64, 64, STEPS),
        generator=torch.Generator("cpu").manual_seed(asked.seed),
        output_type="np",
    ).images[0]
    plain = np.ascontiguousarray(made[:, :, 0], dtype=np.float32).tobytes()

    def boxed(options: str) -> Any:
        return apply_methods(generator, [f"boxes:gligen{options}"]).generate(asked)

    assert boxed("?beta=0").tobytes() == plain
    image = boxed("?beta=1")
    assert image.tobytes() != plain
    assert json.loads(image.info[REPORT])["boxes"]["phrases"] == ["a dog", "a cat"]
    other = replace(asked, fields={**STATED, "relation": "above"})
    moved = apply_methods(generator, ["boxes:gligen?beta=1"]).generate(other)
    assert moved.tobytes() != image.tobytes()


@pytest.mark.parametrize("guidance", [1, 4])
def test_weights_of_gligen_see_the_same_boxes_in_a_plain_pipeline(
    opened: Opened, guidance: int
) -> None:
    """Whose pipeline has no argument for them: the UNet is given what GLIGEN's would give it."""
    asked = replace(request("gligen"), fields=STATED)
    images = []
    for options in ("", "&pipeline=StableDiffusionPipeline"):
        generator = opened("gligen", f"{OPTIONS['gligen']}&guidance={guidance}{options}")
        generator._call.pop("gligen_phrases"), generator._call.pop("gligen_boxes")
        for name, weight in generator.pipeline.unet.named_parameters():
            if name.endswith(("alpha_attn", "alpha_dense")):
                weight.data.fill_(1.0)
        specs = [f"boxes:gligen?beta={beta}" for beta in (0, 0.7, 1)]
        images.append([apply_methods(generator, [spec]).generate(asked) for spec in specs])
    given, seen = ([image.tobytes() for image in made] for made in images)  # type: ignore[union-attr]
    assert given == seen and len({*seen}) == 3


def test_a_chosen_side_is_that_of_the_thing_mentioned_first() -> None:
    asked = ImageRequest("One cat and one dog.", 1, fields=PAIR)
    assert [thing.name for thing in place_things(asked, "left")] == ["cat", "dog"]
    assert place_things(asked, "left")[0].box == PLACEMENTS["left_of"][0]
    assert place_things(asked, "right")[0].box == PLACEMENTS["left_of"][1]
    requests = [replace(asked, seed=seed) for seed in range(200)]
    on_left = [place_things(r, "random")[0].box.x1 < 0.5 for r in requests]
    assert on_left == [place_things(r, "random")[0].box.x1 < 0.5 for r in requests]
    assert 75 < sum(on_left) < 125


@pytest.mark.slow
def test_the_renderer_puts_things_into_their_boxes() -> None:
    pairs = [ImageRequest("One dog and one cat.", seed, fields=PAIR) for seed in range(24)]

    def first_on_left(*methods: str) -> int:
        generator = apply_methods("render:?order_bias=9", methods)
        scenes = [Scene.of(generator.generate(r)) for r in pairs]  # type: ignore[arg-type]
        return sum(scene.left_to_right()[0] == "dog" for scene in scenes)

    assert 5 < first_on_left("boxes:gligen?first=random") < 19
    assert first_on_left() == first_on_left("boxes:boxdiff?first=left") == 24
    assert first_on_left("boxes:boxdiff?first=right") == 0
    assert first_on_left("boxes:boxdiff?first=right&steps=0") == 24

    stated = [ImageRequest("A dog to the right of a cat.", n, fields=STATED) for n in range(6)]
    ignores = "render:?grounding=0&order_bias=9"

    def obeyed(*methods: str) -> int:
        generator = apply_methods(ignores, methods)
        scenes = [Scene.of(generator.generate(r)) for r in stated]  # type: ignore[arg-type]
        return sum(scene.left_to_right()[0] == "cat" for scene in scenes)

    assert obeyed() == obeyed("boxes:boxdiff?steps=0") == 0
    assert obeyed("boxes:boxdiff") == obeyed("boxes:gligen") == 6
    assert obeyed("boxes:gligen?first=right") == 6 > obeyed("boxes:gligen?first=left")


@pytest.mark.parametrize(
    ("base", "specs", "reason"),
    [
        ("render:", ["boxes:layout"], ("unknown-name", "'layout'", "gligen, boxdiff")),
        ("render:", ["boxes:gligen?steps=3"], ("unknown-option", "boxes:gligen", "'steps'")),
        ("render:", ["boxes:boxdiff?beta=0.1"], ("unknown-option", "boxes:boxdiff", "'beta'")),
        ("render:", ["boxes:gligen?beta=2"], ("bad-option", "beta", "'2'")),
        ("render:", ["boxes:gligen?first=top"], ("bad-option", "first", "'top'")),
        ("render:", ["psg:sd14", "boxes:boxdiff"], ("conflicting-options", "boxes")),
        ("folder:{folder}", ["boxes:gligen"], ("unsupported", "folder:", "diffusers:")),
        ("{sd15}", ["boxes:gligen"], ("wrong-model", "StableDiffusionPipeline", "GLIGEN")),
        ("{flux}", ["boxes:boxdiff"], ("wrong-model", "FluxPipeline", "Stable Diffusion")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    base: str,
    specs: list[str],
    reason: tuple[str, ...],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if base.startswith("{"):
        kind = base.strip("{}")
        base = f"diffusers:{request.getfixturevalue('checkpoint')(kind)}?device=cpu"
    with raises(*reason):
        apply_methods(base.format(folder=tmp_path), specs)


def test_rows_without_a_layout_are_refused_before_the_first_image(
    text_release: Path, tmp_path: Path, cli: Cli
) -> None:
    done = cli(
        *("generate", "--suite", "t2i_homogenization", "--data", text_release, "--limit", "4"),
        *("--generator", "render:", "--method", "boxes:gligen", "--out", tmp_path / "run"),
    )
    assert_refused(done, "unsupported", "no layout", "first=random")
    unnamed = ImageRequest("A horse to the left of a cow.", 1, fields=STATED)
    with raises("generator-failed", "'dog'", error=GeneratorError):
        apply_methods("render:", ["boxes:gligen?first=left"]).generate(unnamed)
