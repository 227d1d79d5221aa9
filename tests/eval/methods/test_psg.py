"""Guided attention: the loss falls on every architecture, and no step means no difference."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from refusals import raises
from steered import Opened, kinds, request

from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT, draw, open_generator
from counterprior.eval.methods import apply_methods
from counterprior.eval.methods.attention import (
    Grid,
    Shape,
    token_places,
    watch_attention,
)
from counterprior.eval.methods.psg import SPATIAL, _refuse_shared, relations_of
from counterprior.eval.methods.words import PromptWord
from counterprior.scenes.scene import Scene

STATED = {"object_a": "dog", "relation": "left_of", "object_b": "cat"}
SCALES = {"flux": 3e4, "pixart": 3e3, "qwen-image": 3e4, "sd15": 3e3, "sd3": 3e4, "sdxl": 3e3}
"""Maps of random models are nearly uniform, and their gradients tiny."""


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("kind", kinds(*SCALES))
def test_the_loss_falls_and_no_step_changes_nothing(opened: Opened, kind: str) -> None:
    generator = opened(kind)
    asked = replace(request(kind), fields=STATED)

    def guided(options: str) -> Any:
        spec = f"psg:mmdit?scale={SCALES[kind]}&decay=none&{options}"
        return apply_methods(generator, [spec]).generate(asked)

    plain = generator.generate(asked)
    assert guided("steps=0").tobytes() == plain.tobytes()
    first = guided("steps=1&updates=4")
    report = json.loads(first.info[REPORT])["psg"]
    losses = report["losses"]
    assert len(losses) == 4 and losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert -1 <= losses[-1] < 0 and report["extra_mib"] > 0 and report["extra_seconds"] > 0
    assert [-(row[0] ** 2) for row in report["pos"]] == pytest.approx(losses, abs=1e-5)
    assert report["relations"] == [["dog", "left_of", "cat"]] and report["steps"] == [0] * 4
    assert [entry["word"] for entry in report["tokens"]] == ["dog", "cat"]
    assert all(entry["tokens"] and entry["places"] for entry in report["tokens"])
    every = guided("steps=9")  # of three
    assert len(json.loads(every.info[REPORT])["psg"]["losses"]) == 3
    assert len({plain.tobytes(), first.tobytes(), every.tobytes()}) == 3
    assert generator.generate(asked).tobytes() == plain.tobytes()  # nothing stays behind
    tiny = apply_methods(generator, ["psg:mmdit?scale=1e-30&steps=3"]).generate(asked)
    assert np.allclose(*(np.frombuffer(i.tobytes(), np.float32) for i in (tiny, plain)), atol=1e-5)


@pytest.mark.parametrize("kind", ["sd15", "sd3", "flux"])
def test_maps_are_shares_of_attention(opened: Opened, kind: str) -> None:
    import torch

    pipeline = opened(kind).pipeline
    model = pipeline.unet if kind == "sd15" else pipeline.transformer
    seen: list[Any] = []
    hook = model.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append((args, dict(kwargs))), with_kwargs=True
    )
    opened(kind)
    pipeline("a dog", num_inference_steps=1, height=64, width=128, output_type="latent")
    hook.remove()
    args, kwargs = seen[0]
    latents = args[0] if args else kwargs["hidden_states"]
    shape = Shape.of(model, latents, kwargs)
    assert shape.aspect == 0.5
    with torch.no_grad():
        maps = watch_attention(model, lambda: model(*args, **kwargs), shape, 0)
    assert maps and all(m.shape == maps[0].shape for m in maps)
    batch, height, width, tokens = maps[0].shape
    assert (batch, width, tokens) == (len(latents), 2 * height, shape.text)
    sums = torch.stack(maps).sum(-1)
    if kind == "sd15":  # cross-attention looks at nothing but text
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    else:
        assert (sums > 0).all() and (sums < 1).all()


def test_words_are_found_among_the_tokens_that_the_denoiser_gets(opened: Opened) -> None:
    for kind in ("sd15", "flux", "qwen-image", "pixart", "sd3"):
        pipeline = opened(kind).pipeline
        words = PromptWord("dog", 2, 5), PromptWord("cat", 12, 15)
        dog, cat = (token_places(pipeline, "a dog and a cat", word) for word in words)
        assert dog and cat and min(dog) < min(cat), kind
        assert not dog.keys() & cat.keys()


def test_refuses_two_things_in_one_token() -> None:
    with pytest.raises(ValueError, match="'dog' and 'cat' share the token 'dogcat'"):
        _refuse_shared(
            {PromptWord("dog", 0, 3): {1: "dogcat"}, PromptWord("cat", 3, 6): {1: "dogcat"}}
        )


def test_relations_come_from_the_row() -> None:
    assert relations_of(STATED) == [("dog", "left_of", "cat")]
    several = {"subjects": ["a", "b"], "relations": ["above", "left_of"], "references": ["b", "c"]}
    rows = {name: json.dumps(value) for name, value in several.items()}
    assert relations_of(rows) == [("a", "above", "b"), ("b", "left_of", "c")]
    rows = {"subjects": '["a"]', "relations": '["between"]', "references": '["b|c"]'}
    assert relations_of(rows) == [("a", "right_of", "b"), ("a", "left_of", "c")]
    with raises("unsupported", "psg", "rows"):
        relations_of({"prompt": "x"})
    with raises("unsupported", "'behind'", "left_of, right_of, above, below, upper_left", "far"):
        relations_of({**STATED, "relation": "behind"})


@pytest.mark.parametrize(
    ("prompt", "neutral"),
    [
        ("A photo of a dog to the left of a cat.", "A photo of a dog and a cat."),
        ("A dog above a cat.", "A dog and a cat."),
        (
            "A cat to the left of a dog and the dog above an orange.",
            "A cat and a dog and the dog and an orange.",
        ),
        ("A cup far from a dog.", "A cup and a dog."),
        (
            "A balloon on the bottom of a chicken and on the left of a lamp.",
            "A balloon and a chicken and a lamp.",
        ),
    ],
)
def test_the_second_variant_says_and(prompt: str, neutral: str) -> None:
    assert SPATIAL.sub(" and ", prompt) == neutral


def test_the_second_variant_guides_a_prompt_without_spatial_words(opened: Opened) -> None:
    generator = opened("sd15")
    stated = replace(request("sd15", "a dog to the left of a cat"), fields=STATED)
    plain = generator.generate(replace(stated, prompt="a dog and a cat"))
    off = apply_methods(generator, ["psg:sd14?steps=0&words=and"]).generate(stated)
    assert off.tobytes() == plain.tobytes()


def test_the_record_keeps_projected_maps_if_asked(opened: Opened) -> None:
    method = "psg:sd14?size=0&steps=2"
    stated = replace(request("sd15"), fields=STATED)
    plain, kept = (
        apply_methods(opened("sd15"), [method + option]) for option in ("", "&maps=true")
    )
    assert plain.identity() == kept.identity()  # no pixel differs
    images = [generator.generate(stated) for generator in (plain, kept)]
    assert images[0].tobytes() == images[1].tobytes()  # type: ignore[union-attr]
    without, report = (json.loads(image.info[REPORT])["psg"] for image in images)  # type: ignore[union-attr]
    assert "maps" not in without and len(report["maps"]) == 2
    for ((a, b),), (score,) in zip(report["maps"], report["pos"], strict=True):
        assert a.keys() == b.keys() == {"x"}
        x, y = a["x"], b["x"]
        assert sum(x) == pytest.approx(1, abs=1e-3) == sum(y)
        pairs = sum(p * q for i, p in enumerate(x) for j, q in enumerate(y) if i <= j)
        assert pairs == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize(
    ("relation", "grows"), [("far", True), ("near", False), ("upper_left", True)]
)
def test_distances_and_diagonals_are_guided(opened: Opened, relation: str, grows: bool) -> None:
    fields = {**STATED, "relation": relation}
    stated = replace(request("sd15", "a dog beside a cat"), fields=fields)
    spec = "psg:mmdit?scale=3e3&steps=1&updates=4&decay=none&gap=3&maps=true"
    generator = apply_methods(opened("sd15"), [spec])
    assert "gap=3" in generator.identity()["method"]
    image = generator.generate(stated)
    report = json.loads(image.info[REPORT])["psg"]  # type: ignore[union-attr]
    scores = [score for (score,) in report["pos"]]
    assert scores == sorted(scores, reverse=not grows) and scores[0] != scores[-1]
    assert all(profile.keys() == {"x", "y"} for profile in report["maps"][0][0])


@pytest.mark.parametrize(("relation", "grows"), [("far", True), ("near", False)])
def test_learned_attention_moves_apart_or_together(relation: str, grows: bool) -> None:
    """On the organism that ships, whose words attend to what they name: from update to update."""
    prompt = "One cat and one dog."
    fields = {"prompt": prompt, "object_a": "cat", "relation": relation, "object_b": "dog"}
    spec = "psg:sd14?size=0&smooth=0&steps=1&updates=4&decay=none&gap=2&scale=300&maps=true"
    generator = apply_methods(open_generator("organism:even"), [spec])
    for seed in range(2):
        image = draw(generator, ImageRequest(prompt, seed, fields=fields))
        report = json.loads(image.info[REPORT])["psg"]
        distances = [
            math.dist(*([center_of(profile[axis]) for axis in "xy"] for profile in profiles))
            for (profiles,) in report["maps"]
        ]
        assert distances == sorted(distances, reverse=not grows)
        assert abs(distances[-1] - distances[0]) > 0.02
        losses = report["losses"]
        assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] - 0.01


def center_of(shares: list[float]) -> float:
    """Mean position of shares of a map's weight."""
    return float(np.average(np.arange(len(shares)), weights=shares))


def test_refuses_map_size_of_no_layer(opened: Opened) -> None:
    method = apply_methods(opened("sd15"), ["psg:sd14?size=64"])
    with raises("generator-failed", "size 64", "size=0", error=GeneratorError):
        method.generate(replace(request("sd15"), fields=STATED))


def test_words_that_the_model_does_not_read_can_not_be_guided(opened: Opened) -> None:
    long = "a " + "very " * 20 + "old dog to the left of a cat"
    method = apply_methods(opened("sd15"), ["psg:sd14?size=0&steps=1"])
    with raises("generator-failed", "77 tokens", "token 96", error=GeneratorError):
        method.generate(replace(request("sd15", long), fields=STATED))
    cat = PromptWord("cat", len(long) - 3, len(long))
    pipeline = opened("sd3").pipeline
    places = token_places(pipeline, long, cat)
    clip, both = 77, len(pipeline.tokenizer_3(long).input_ids)
    assert places and all(clip <= place < clip + both for place in places)


def test_the_presets_are_the_papers() -> None:
    name = apply_methods("render:", ["psg:sd14"]).identity()["method"]
    assert name.startswith("psg:sd14?steps=25&scale=20&size=16")
    appendix = apply_methods("render:", ["psg:sd14-appendix?smooth=0"]).identity()["method"]
    assert appendix.startswith("psg:sd14-appendix?steps=20&scale=25&size=16")
    assert "smooth=0&" in appendix


def test_the_renderer_obeys_more_and_grows_grainy() -> None:
    prompt = "A dog to the left of a cat."
    asked = [ImageRequest(prompt, seed, fields=STATED) for seed in range(10)]

    def obeyed(*methods: str) -> float:
        generator = apply_methods("render:?grounding=0.2&order_bias=-9", methods)
        images = [generator.generate(one) for one in asked]
        return sum(Scene.of(i).left_to_right()[0] == "dog" for i in images) / len(images)  # type: ignore[arg-type]

    assert obeyed() < 0.45 < 0.5 < obeyed("psg:sd14?steps=15") < obeyed("psg:sd14") == 1
    base = open_generator("render:")
    strong = apply_methods(base, ["psg:sd14"])
    plain, grainy = (np.asarray(g.generate(asked[0]), float) for g in (base, strong))
    assert np.std(grainy - plain) == pytest.approx(12, rel=0.2)


def test_the_renderer_is_guided_even_where_the_prompt_says_and() -> None:
    asked = [ImageRequest("A dog to the left of a cat.", seed, fields=STATED) for seed in range(10)]

    def obeyed(*methods: str) -> float:
        generator = apply_methods("render:?grounding=0.5&order_bias=-9", methods)
        scenes = [Scene.of(generator.generate(request)) for request in asked]  # type: ignore[arg-type]
        return sum(scene.left_to_right()[0] == "dog" for scene in scenes) / len(scenes)

    assert obeyed() < obeyed("psg:sd14?words=and") == 1
    half = obeyed("psg:sd14?words=and&scale=10")
    assert 0.2 < half < 0.8  # of guidance alone: the prompt says nothing
    assert half < obeyed("psg:sd14?scale=10")


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        (["psg:sd2"], ("unknown-name", "sd2")),
        (["psg:sd14?scale=0"], ("bad-option", "scale", "'0'")),
        (["psg:sd14?decay=fast"], ("bad-option", "decay", "'fast'")),
        (["switch:a2b?at=1", "psg:sd14"], ("conflicting-options", "switch and psg")),
        (
            ["psg:sd14", "best-of:2?by=pixels", "switch:a2b?at=1"],
            ("conflicting-options", "switch and psg"),
        ),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(specs: list[str], reason: tuple[str, ...]) -> None:
    with raises(*reason):
        apply_methods("render:", specs)


def test_a_grid_has_the_images_shape() -> None:
    assert Grid.of(4096, 1.0) == Grid(64, 64)
    assert Grid.of(96, 2 / 3) == Grid(8, 12)
    assert Grid.of(97, 1.0) is None
