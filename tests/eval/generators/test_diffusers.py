"""Pipelines of diffusers: real classes and the real loading path, tiny random weights."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import GeneratorError, ImageRequest
from counterprior.eval.generators import open_generator
from counterprior.eval.generators.diffusion import DiffusersGenerator

Checkpoint = Callable[[str], Path]
SMALL = "device=cpu&steps=2&height=64&width=64"
DRAWING = pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("sd15", ""),
        ("flux", "&max_sequence_length=32"),
        ("sd3", "&guidance=4.5"),
        ("qwen-image", "&negative_prompt= &true_cfg_scale=4"),
    ],
)


def open_pipeline(folder: Path, options: str = SMALL) -> DiffusersGenerator:
    generator = open_generator(f"diffusers:{folder}?{options}")
    assert isinstance(generator, DiffusersGenerator)
    return generator


def noise(seed: int) -> Image.Image:
    return Image.frombytes("RGB", (64, 64), random.Random(seed).randbytes(64 * 64 * 3))


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures as float32 in 32-bit RGBA: what a prompt changes in a random model is below 1/255.

    The four bytes of each pixel are those of the first colour's number.
    """

    def image(values: Any) -> Image.Image:
        first = np.ascontiguousarray(values[:, :, 0], dtype=np.float32)
        return Image.frombytes("RGBA", first.shape[::-1], first.tobytes())

    monkeypatch.setattr("counterprior.eval.generators.diffusion._image", image)


@DRAWING
def test_the_seed_decides_the_image(checkpoint: Checkpoint, kind: str, options: str) -> None:
    generator = open_pipeline(checkpoint(kind), SMALL + options)
    one, other, again = (generator.generate(ImageRequest("a dog", seed)) for seed in (1, 2, 1))
    assert one.mode == "RGB" and one.size == (64, 64)
    assert one.tobytes() == again.tobytes() != other.tobytes()
    fresh = open_pipeline(checkpoint(kind), SMALL + options)
    assert fresh.generate(ImageRequest("a dog", 1)).tobytes() == one.tobytes()


@DRAWING
@pytest.mark.usefixtures("exact")
def test_the_prompt_decides_the_image(checkpoint: Checkpoint, kind: str, options: str) -> None:
    generator = open_pipeline(checkpoint(kind), SMALL + options)
    dog, cat = (generator.generate(ImageRequest(text, 1)) for text in ("a dog", "a cat"))
    assert dog.tobytes() != cat.tobytes()


def test_pixels_are_those_of_the_pipeline_itself(checkpoint: Checkpoint) -> None:
    import torch
    from diffusers import DiffusionPipeline

    pipeline: Any = DiffusionPipeline.from_pretrained(checkpoint("sd15"))
    pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator("cpu").manual_seed(5)
    size = {"height": 64, "width": 64}
    made = pipeline("a dog", num_inference_steps=2, generator=generator, **size).images[0]
    ours = open_pipeline(checkpoint("sd15")).generate(ImageRequest("a dog", 5))
    assert ours.tobytes() == made.tobytes()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("pix2pix", "device=cpu&steps=2"),
        ("flux-kontext", SMALL + "&max_sequence_length=32&max_area=4096&_auto_resize=false"),
        ("qwen-image-edit", "device=cpu&steps=2&negative_prompt= "),
    ],
)
@pytest.mark.usefixtures("exact")
def test_source_and_instruction_decide_an_edit(
    checkpoint: Checkpoint, kind: str, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "qwen-image-edit":  # it always works on one megapixel
        import diffusers.pipelines.qwenimage.pipeline_qwenimage_edit as module

        real = module.calculate_dimensions
        monkeypatch.setattr(
            module, "calculate_dimensions", lambda area, ratio: real(64 * 64, ratio)
        )
    generator = open_pipeline(checkpoint(kind), options)
    source = noise(1)
    asked = [
        ImageRequest("a dog", 1, source),
        ImageRequest("a dog", 1, source),
        ImageRequest("a dog", 1, noise(2)),
        ImageRequest("a cat", 1, source),
        ImageRequest("a dog", 2, source),
    ]
    made, again, *others = (generator.generate(request).tobytes() for request in asked)
    assert made == again and made not in others


def test_a_pipeline_that_only_draws_says_so_of_an_edit(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    with pytest.raises(GeneratorError, match="draws from a text and can't edit") as caught:
        generator.generate(ImageRequest("a dog", 1, noise(1)))
    assert caught.value.status == "error"


def test_an_edit_without_source_is_an_error_of_its_own(checkpoint: Checkpoint) -> None:
    with pytest.raises(GeneratorError, match="image"):
        open_pipeline(checkpoint("pix2pix"), "device=cpu&steps=2").generate(ImageRequest("x", 1))


def test_a_hidden_image_is_refused(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    monkeypatch.setattr(
        generator.pipeline, "run_safety_checker", lambda image, *rest: (image, [True])
    )
    with pytest.raises(GeneratorError, match="safety checker") as caught:
        generator.generate(ImageRequest("a dog", 1))
    assert caught.value.status == "refused"


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")
def test_an_image_of_no_numbers_is_an_error(checkpoint: Checkpoint) -> None:
    # With one step the scheduler of Qwen-Image divides by zero.
    generator = open_pipeline(checkpoint("qwen-image"), "device=cpu&steps=1&height=64&width=64")
    with pytest.raises(GeneratorError, match="numbers that are none"):
        generator.generate(ImageRequest("a dog", 1))


def test_options_reach_the_call_and_the_identity(checkpoint: Checkpoint) -> None:
    plain = open_pipeline(checkpoint("sd15"))
    guided = open_pipeline(checkpoint("sd15"), SMALL + "&guidance=9&eta=0.5&negative_prompt=7")
    request = ImageRequest("a dog", 1)
    assert plain.generate(request).tobytes() != guided.generate(request).tobytes()
    identity = guided.identity()
    assert identity["guidance_scale"] == "9.0" and identity["num_inference_steps"] == "2"
    assert identity["negative_prompt"] == "7" and identity["width"] == "64"
    assert identity["pipeline"] == "StableDiffusionPipeline"
    assert identity["model"] == "checkpoint-sd15" and identity["revision"].startswith("sha256:")
    assert {"diffusers", "torch", "dtype", "device"} <= set(identity)
    assert all(isinstance(value, str) for value in identity.values())
    assert identity["eta"] == "0.5"


def test_bfloat16_is_an_option(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("flux"), SMALL + "&dtype=bfloat16&max_sequence_length=32")
    assert generator.generate(ImageRequest("a dog", 1)).size == (64, 64)
    assert generator.identity()["dtype"] == "bfloat16"
    assert str(generator.pipeline.dtype) == "torch.bfloat16"


def test_files_that_cannot_be_loaded_end_the_run(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = tmp_path / "torn"
    shutil.copytree(checkpoint("sd15"), folder)
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(LoadError, match="torn can't be loaded"):
        open_pipeline(folder).generate(ImageRequest("a dog", 1))


def test_nothing_is_loaded_before_an_image_is_wanted(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    generator.identity()
    assert "pipeline" not in vars(generator)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("diffusers:", "name a model"),
        ("diffusers:nobody/nothing", "neither a folder nor readable on the Hub"),
        ("diffusers:{empty}", "holds no model_index.json"),
        ("diffusers:{sd15}?revision=v1", "has no revision 'v1'"),
        ("diffusers:{sd15}?colour=red", "StableDiffusionPipeline has no option 'colour'.*eta"),
        ("diffusers:{sd15}?prompt=x", "no option 'prompt'"),
        ("diffusers:{sd15}?num_images_per_prompt=4", "no option 'num_images_per_prompt'"),
        ("diffusers:{sd15}?sigmas=1", "no option 'sigmas'"),
        ("diffusers:{sd15}?steps=few", "steps must be int, not 'few'"),
        ("diffusers:{sd15}?steps=2.5", "steps must be int, not '2.5'"),
        ("diffusers:{sd15}?guidance=high", "guidance must be float"),
        ("diffusers:{sd15}?offload=maybe", "offload must be true or false"),
        ("diffusers:{sd15}?dtype=int8", "dtype 'int8'"),
        ("diffusers:{sd15}?device=cuda:9", "device 'cuda:9' is not there"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    checkpoint: Checkpoint, tmp_path: Path, spec: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        open_generator(spec.format(sd15=checkpoint("sd15"), empty=tmp_path))


@pytest.mark.parametrize("name", ["MyPipeline", "AutoencoderKL", None, ["module", "MyPipeline"]])
def test_code_that_comes_with_a_model_is_not_run(
    checkpoint: Checkpoint, tmp_path: Path, name: Any
) -> None:
    index = json.loads((checkpoint("sd15") / "model_index.json").read_text())
    (tmp_path / "model_index.json").write_text(json.dumps(index | {"_class_name": name}))
    with pytest.raises(ValueError, match=r"no pipeline .* is not run"):
        open_generator(f"diffusers:{tmp_path}")


@pytest.mark.filterwarnings("ignore:The `local_dir_use_symlinks` argument")  # diffusers' own
def test_a_repository_is_pinned_to_a_commit(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants as hub

    old, new = "1a" * 20, "2b" * 20
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(checkpoint("sd15"), repository / "snapshots" / old)
    shutil.copytree(checkpoint("flux"), repository / "snapshots" / new)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(new)
    (repository / "refs" / "v1").write_text(old)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    tagged = open_generator(f"diffusers:someone/tiny?revision=v1&{SMALL}")
    identity = tagged.identity()
    assert identity["model"] == "someone/tiny" and identity["revision"] == old
    assert open_generator("diffusers:someone/tiny?device=cpu").identity()["revision"] == new
    local = open_pipeline(checkpoint("sd15"))
    request = ImageRequest("a dog", 3)
    assert tagged.generate(request).tobytes() == local.generate(request).tobytes()
