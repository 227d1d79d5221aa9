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
from refusals import raises

from counterprior.errors import UsageError
from counterprior.eval.checkpoints.placement import LoadError
from counterprior.eval.core import Case, GeneratorError, ImageRequest
from counterprior.eval.generators import REPORT, open_generator
from counterprior.eval.generators.diffusion import DiffusersGenerator, MeasuredBatch

Checkpoint = Callable[[str], Path]
SMALL = "device=cpu&steps=2&height=64&width=64"
HALF = "device=cpu&steps=4&height=64&width=64&strength=0.5"
DRAWING = pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("sd15", ""),
        ("flux", "&max_sequence_length=32"),
        # `test_images_of_a_batch_are_the_single_ones` and the schedulers draw with some of these.
        pytest.param("sd3", "&guidance=4.5", marks=pytest.mark.lane),
        pytest.param("qwen-image", "&negative_prompt= &true_cfg_scale=4", marks=pytest.mark.lane),
        pytest.param("sdxl", "", marks=pytest.mark.lane),
        ("modular-flux", ""),
        pytest.param("modular-sdxl", "", marks=pytest.mark.lane),
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
        ("sdxl", "pipeline=StableDiffusionXLImg2ImgPipeline&device=cpu&steps=4&strength=0.5"),
        # More of both: an edit's own checkpoint, and a checkpoint in a pipeline of edits.
        *(
            pytest.param(kind, options, marks=pytest.mark.lane)
            for kind, options in (
                ("qwen-image-edit", "device=cpu&steps=2&negative_prompt= "),
                ("sd3", f"pipeline=StableDiffusion3Img2ImgPipeline&{HALF}&guidance=4"),
                ("flux", f"pipeline=FluxImg2ImgPipeline&{HALF}"),
                (
                    "flux",
                    f"pipeline=FluxKontextPipeline&{SMALL}&max_area=4096&_auto_resize=false",
                ),
            )
        ),
        ("modular-sdxl", "device=cpu&steps=4&strength=0.5&height=64&width=64"),
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


def test_refuses_edit_by_pipeline_that_only_draws(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    with raises("cannot-edit", "StableDiffusionPipeline", error=GeneratorError) as caught:
        generator.generate(ImageRequest("a dog", 1, noise(1)))
    assert caught.value.status == "error"


def test_edits_that_a_pipeline_cannot_make_are_refused_before_the_first(
    checkpoint: Checkpoint,
) -> None:
    edit = Case("r", "edit", 1, 0, "a dog", ("c",), source="sources/x.png")
    for kind, name in (
        ("sdxl", "StableDiffusionXLImg2ImgPipeline"),
        ("sd3", "StableDiffusion3Img2ImgPipeline"),
        ("flux", "FluxImg2ImgPipeline"),
        ("qwen-image", "QwenImageImg2ImgPipeline"),
    ):
        generator = open_pipeline(checkpoint(kind))
        with raises("cannot-edit", f"pipeline={name}", error=UsageError):
            generator.check([edit])
        generator.check([Case("r", "plain", 1, 0, "a dog", ("c",))])
    for kind in ("pix2pix", "modular-flux"):
        open_pipeline(checkpoint(kind), "device=cpu").check([edit])


def test_an_edit_with_two_sources_is_an_error(checkpoint: Checkpoint) -> None:
    with raises(
        "several-sources",
        "StableDiffusionInstructPix2PixPipeline",
        "one source",
        error=GeneratorError,
    ):
        open_pipeline(checkpoint("pix2pix"), "device=cpu").generate(
            ImageRequest("a dog", 1, noise(1), references=(noise(2),))
        )


def test_a_modular_pipeline_draws_what_the_classic_one_draws(checkpoint: Checkpoint) -> None:
    options = f"{SMALL}&guidance=3.5"
    classic = open_pipeline(checkpoint("flux"), f"{options}&max_sequence_length=512")
    modular = open_pipeline(checkpoint("modular-flux"), options)
    one, other = (np.asarray(g.generate(ImageRequest("a dog", 1))) for g in (classic, modular))
    assert np.abs(one.astype(int) - other).max() <= 1
    identity = modular.identity()
    assert identity["pipeline"] == "FluxModularPipeline"
    assert identity["model"] == "checkpoint-modular-flux"


@pytest.mark.parametrize("change", ["code", "blocks", "base", "class"])
def test_code_of_modular_blocks_is_not_run(
    checkpoint: Checkpoint, tmp_path: Path, change: str
) -> None:
    index = json.loads((checkpoint("modular-flux") / "modular_model_index.json").read_text())
    if change == "code":
        (tmp_path / "modular_config.json").write_text('{"auto_map": {}}')
    names = {"blocks": "MyBlocks", "base": "SequentialPipelineBlocks"}
    index["_blocks_class_name"] = names.get(change, index["_blocks_class_name"])
    if change == "class":
        index["_class_name"] = "MyPipeline"
    (tmp_path / "modular_model_index.json").write_text(json.dumps(index))
    with raises("remote-code", "code", error=UsageError):
        open_generator(f"diffusers:{tmp_path}")


def test_a_modular_pipeline_without_a_part_ends_the_run(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    folder = tmp_path / "torn"
    shutil.copytree(checkpoint("modular-flux"), folder)
    weights = folder / "vae" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with raises("load-failed", "torn: vae", error=LoadError):
        open_pipeline(folder).generate(ImageRequest("a dog", 1))


@pytest.mark.parametrize(("kind", "part"), [("sd15", "text_encoder"), ("flux", "text_encoder")])
def test_four_seeds_encode_their_prompt_once(checkpoint: Checkpoint, kind: str, part: str) -> None:
    import torch
    from diffusers import DiffusionPipeline

    generator = open_pipeline(checkpoint(kind))
    encoded: list[int] = []
    encoder = getattr(generator.pipeline, part)
    inner = next(layer for layer in encoder.modules() if not [*layer.children()])
    inner.register_forward_hook(lambda *_: encoded.append(1))
    made, counts = [], []
    for seed in range(4):
        made.append(generator.generate(ImageRequest("a dog", seed)).tobytes())
        counts.append(len(encoded))
    generator.generate(ImageRequest("a cat", 0))
    assert 0 < counts[0] == counts[3] < len(encoded)
    plain: Any = DiffusionPipeline.from_pretrained(checkpoint(kind))
    plain.set_progress_bar_config(disable=True)
    for seed, image in enumerate(made):
        noise = torch.Generator("cpu").manual_seed(seed)
        size = {"height": 64, "width": 64}
        again = plain("a dog", num_inference_steps=2, generator=noise, **size).images[0]
        assert again.tobytes() == image


@pytest.fixture(scope="session")
def lora(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with low-rank weights for the tiny FLUX, large enough to be seen."""
    import torch
    from diffusers import FluxPipeline
    from peft import LoraConfig, get_peft_model_state_dict

    torch.manual_seed(0)
    pipeline: Any = FluxPipeline.from_pretrained(checkpoint("flux"))
    config = LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False)
    pipeline.transformer.add_adapter(config)
    layers = {n: 20 * t for n, t in get_peft_model_state_dict(pipeline.transformer).items()}
    folder = tmp_path_factory.mktemp("lora")
    FluxPipeline.save_lora_weights(folder, transformer_lora_layers=layers)
    return folder


def test_a_lora_changes_the_image_by_its_scale(checkpoint: Checkpoint, lora: Path) -> None:
    request = ImageRequest("a dog", 1)
    options = f"{SMALL}&lora={lora}"
    plain, with_it, without, half = (
        open_pipeline(checkpoint("flux"), o)
        for o in (SMALL, options, f"{options}&lora_scale=0", f"{options}&lora_scale=0.5")
    )
    images = [g.generate(request).tobytes() for g in (plain, with_it, without, half)]
    assert images[0] == images[2] and len(set(images)) == 3
    identity = with_it.identity()
    assert identity["lora"] == "pytorch_lora_weights.safetensors"
    assert identity["lora_revision"].startswith("sha256:") and "lora_scale" not in identity
    assert half.identity()["lora_scale"] == "0.5" and "lora" not in plain.identity()
    file = lora / "pytorch_lora_weights.safetensors"
    assert open_pipeline(checkpoint("flux"), f"{SMALL}&lora={file}").identity() == identity


@pytest.mark.filterwarnings("ignore:Already found a `peft_config`")
def test_a_lora_of_another_model_ends_the_run(
    checkpoint: Checkpoint, lora: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(lora / "pytorch_lora_weights.safetensors")
    other = {name.replace("to_q", "to_nothing"): value for name, value in weights.items()}
    save_file(other, tmp_path / "other.safetensors")
    for kind, file in (("sd15", lora), ("flux", tmp_path / "other.safetensors")):
        generator = open_pipeline(checkpoint(kind), f"{SMALL}&lora={file}")
        with raises("wrong-model", "LoRA", error=LoadError):
            generator.generate(ImageRequest("a dog", 1))


REQUESTS = [
    ImageRequest("a dog", 5),
    ImageRequest("a cat on the left of a dog and a woman, and a man on the right", 6),
    ImageRequest("a cat", 7),
]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("sd15", "&negative_prompt=a cat"),
        pytest.param("sdxl", "", marks=pytest.mark.lane),  # two encoders, as the modular one below
        ("flux", "&max_sequence_length=32"),
        pytest.param("sd3", "&guidance=4.5", marks=pytest.mark.lane),  # the same
        ("qwen-image", "&negative_prompt=a cat&true_cfg_scale=4"),
        ("modular-flux", ""),
    ],
)
@pytest.mark.usefixtures("exact")
def test_images_of_a_batch_are_the_single_ones(
    checkpoint: Checkpoint, kind: str, options: str
) -> None:
    generator = open_pipeline(checkpoint(kind), f"{SMALL}{options}&batch=3")
    assert generator.batch_size == 3 and generator.identity()["batch"] == "3"
    together = generator.generate_batch(REQUESTS)
    assert generator._batches == {False: MeasuredBatch(3)}
    for request, image in zip(REQUESTS, together, strict=True):
        assert isinstance(image, Image.Image) and json.loads(image.info[REPORT]) == {"batch": 3}
        single = generator.generate(request)
        assert np.abs(numbers(image) - numbers(single)).max() < 1e-4


def numbers(image: Image.Image) -> Any:
    return np.frombuffer(image.tobytes(), dtype=np.float32)


def test_edits_are_drawn_in_batches_too(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("pix2pix"), "device=cpu&steps=2&batch=2")
    requests = [ImageRequest("a dog", 1, noise(1)), ImageRequest("a cat and a dog", 2, noise(2))]
    for image, request in zip(generator.generate_batch(requests), requests, strict=True):
        assert isinstance(image, Image.Image)
        single = np.asarray(generator.generate(request)).astype(int)
        assert np.abs(np.asarray(image) - single).max() <= 1
    assert generator._batches == {True: MeasuredBatch(2)}


@pytest.mark.slow
def test_turns_batching_off_if_it_changes_images(
    checkpoint: Checkpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    values = DiffusersGenerator._values

    def spoiled(self: DiffusersGenerator, requests: Any) -> Any:
        made, hidden = values(self, requests)
        return (np.clip(made + 0.1, 0, 1) if len(requests) > 1 else made), hidden

    monkeypatch.setattr(DiffusersGenerator, "_values", spoiled)
    generator = open_pipeline(checkpoint("sd15"), f"{SMALL}&batch=3")
    made = generator.generate_batch(REQUESTS)
    alone = open_pipeline(checkpoint("sd15"))
    for image, request in zip(made, REQUESTS, strict=True):
        assert isinstance(image, Image.Image)
        assert image.tobytes() == alone.generate(request).tobytes()
        said = json.loads(image.info[REPORT])
        assert said["batch"] == 1 and said["note"].startswith("batch=3 is off: it changes images")
    assert "batch=3 is off: it changes images by 0.1 of 1, more than 0.0078" in caplog.text
    loose = open_pipeline(checkpoint("sd15"), f"{SMALL}&batch=3&batch_bound=0.2")
    assert "note" not in json.loads(loose.generate_batch(REQUESTS)[0].info[REPORT])  # type: ignore[union-attr]
    assert loose.identity()["batch_bound"] == "0.2"


def test_one_bad_image_of_a_batch_spoils_no_other(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = open_pipeline(checkpoint("sd15"), f"{SMALL}&batch=3")
    hidden = [False, False, False]
    monkeypatch.setattr(
        generator.pipeline, "run_safety_checker", lambda image, *_: (image, hidden[: len(image)])
    )
    generator.generate_batch(REQUESTS)
    hidden[1] = True
    first, second, third = generator.generate_batch(REQUESTS)
    assert isinstance(first, Image.Image) and isinstance(third, Image.Image)
    assert isinstance(second, GeneratorError) and second.status == "refused"
    hidden[1] = False
    failing = generator.pipeline.unet.forward
    calls: list[int] = []

    def out_of_memory(sample: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(len(sample))
        if len(sample) > 2:
            raise RuntimeError("out of memory")
        return failing(sample, *args, **kwargs)

    generator.pipeline.unet.forward = out_of_memory
    assert all(isinstance(made, Image.Image) for made in generator.generate_batch(REQUESTS))
    assert calls[0] == 6 and set(calls[1:]) == {2}


def test_compile_and_offload_are_asked_of_the_pipeline(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from diffusers import StableDiffusionPipeline

    compiled = open_pipeline(checkpoint("sd15"), f"{SMALL}&compile=true")
    parts: list[str] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: parts.append(type(self).__name__))
    assert compiled.pipeline is not None and parts == ["UNet2DConditionModel"]
    assert compiled.identity()["compile"] == "true"
    for option, method in (
        ("true", "enable_model_cpu_offload"),
        ("sequential", "enable_sequential_cpu_offload"),
    ):
        asked: list[str] = []
        monkeypatch.setattr(
            StableDiffusionPipeline, method, lambda self, device, asked=asked: asked.append(device)
        )
        offloaded = open_pipeline(checkpoint("sd15"), f"{SMALL}&offload={option}")
        offloaded.generate(ImageRequest("a dog", 1))
        assert (
            asked == ["cpu"]
            and offloaded.identity() == open_pipeline(checkpoint("sd15")).identity()
        )


def test_an_edit_without_source_is_an_error_of_its_own(checkpoint: Checkpoint) -> None:
    with raises("generator-failed", "`image`", error=GeneratorError):
        open_pipeline(checkpoint("pix2pix"), "device=cpu&steps=2").generate(ImageRequest("x", 1))


def test_a_hidden_image_is_refused(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    monkeypatch.setattr(
        generator.pipeline, "run_safety_checker", lambda image, *rest: (image, [True])
    )
    with raises("declined", "safety checker", error=GeneratorError) as caught:
        generator.generate(ImageRequest("a dog", 1))
    assert caught.value.status == "refused"


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")
def test_image_of_nan_is_an_error(checkpoint: Checkpoint) -> None:
    # With one step the scheduler of Qwen-Image divides by zero.
    generator = open_pipeline(checkpoint("qwen-image"), "device=cpu&steps=1&height=64&width=64")
    with raises("bad-answer", "NaN", error=GeneratorError):
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
    with raises("load-failed", "torn", error=LoadError):
        open_pipeline(folder).generate(ImageRequest("a dog", 1))


@pytest.mark.slow
def test_scheduler_and_shift_replace_those_of_the_checkpoint(checkpoint: Checkpoint) -> None:
    import torch
    from diffusers import DiffusionPipeline, UniPCMultistepScheduler

    request = ImageRequest("a dog", 5)
    pipeline: Any = DiffusionPipeline.from_pretrained(checkpoint("sd15"))
    pipeline.set_progress_bar_config(disable=True)
    pipeline.scheduler = UniPCMultistepScheduler.from_config(pipeline.scheduler.config)
    size = {"height": 64, "width": 64, "num_inference_steps": 2}
    expected = pipeline("a dog", generator=torch.Generator("cpu").manual_seed(5), **size).images[0]

    own = open_pipeline(checkpoint("sd15"))
    same = open_pipeline(checkpoint("sd15"), SMALL + "&scheduler=DDIMScheduler")
    other = open_pipeline(checkpoint("sd15"), SMALL + "&scheduler=UniPCMultistep")
    assert "scheduler" not in own.identity()
    assert other.identity()["scheduler"] == "UniPCMultistepScheduler"
    assert same.generate(request).tobytes() == own.generate(request).tobytes()
    assert other.generate(request).tobytes() == expected.tobytes()
    assert expected.tobytes() != own.generate(request).tobytes()

    steps = "device=cpu&steps=4&height=64&width=64"
    flow = [
        open_pipeline(checkpoint("sd3"), steps + more)
        for more in ("", "&shift=3", "&shift=9", "&shift=3&scheduler=UniPCMultistep")
    ]
    images = [generator.generate(request).tobytes() for generator in flow]
    assert images[0] == images[1] and len({*images}) == 3
    assert flow[2].identity()["shift"] == "9"
    assert flow[3].pipeline.scheduler.config.prediction_type == "flow_prediction"
    dynamic = open_pipeline(checkpoint("flux"), SMALL + "&shift=3&max_sequence_length=32")
    assert dynamic.generate(request) and not dynamic.pipeline.scheduler.config.use_dynamic_shifting


@pytest.mark.parametrize(
    ("kind", "options", "reason"),
    [
        ("sd15", "&shift=3", ("DDIMScheduler", "no shift")),
        ("sd15", "&scheduler=FlowMatchEulerDiscrete", ("flow matching", "predicts noise")),
        ("sd3", "&scheduler=DDIM", ("DDIMScheduler", "flow matching", "UniPCMultistep")),
    ],
)
def test_a_scheduler_of_another_kind_of_model_ends_the_run(
    checkpoint: Checkpoint, kind: str, options: str, reason: tuple[str, ...]
) -> None:
    with raises("unsupported", *reason, error=LoadError):
        open_pipeline(checkpoint(kind), SMALL + options).generate(ImageRequest("a dog", 1))


def test_nothing_is_loaded_before_an_image_is_wanted(checkpoint: Checkpoint) -> None:
    generator = open_pipeline(checkpoint("sd15"))
    generator.identity()
    assert "pipeline" not in vars(generator)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("diffusers:", ("missing-option", "diffusers:PATH_OR_REPO")),
        ("diffusers:nobody/nothing", ("wrong-model", "nobody/nothing", "Hub")),
        ("diffusers:{empty}", ("no-such-file", "model_index.json")),
        ("diffusers:{sd15}?revision=v1", ("no-revision", "'v1'")),
        (
            "diffusers:{sd15}?colour=red",
            ("unknown-option", "StableDiffusionPipeline", "'colour'", "eta"),
        ),
        ("diffusers:{sd15}?prompt=x", ("unknown-option", "prompt")),
        ("diffusers:{sd15}?num_images_per_prompt=4", ("unknown-option", "num_images_per_prompt")),
        ("diffusers:{sd15}?sigmas=1", ("unknown-option", "sigmas")),
        ("diffusers:{sd15}?steps=few", ("bad-option", "steps", "'few'")),
        ("diffusers:{sd15}?steps=2.5", ("bad-option", "steps", "'2.5'")),
        ("diffusers:{sd15}?guidance=high", ("bad-option", "guidance", "'high'")),
        ("diffusers:{sd15}?offload=maybe", ("bad-option", "offload must", "sequential", "'maybe'")),
        ("diffusers:{sd15}?compile=max", ("bad-option", "compile", "'max'")),
        ("diffusers:{sd15}?batch=0", ("bad-option", "batch must", "1 to 999", "'0'")),
        ("diffusers:{sd15}?batch=2.5", ("bad-option", "batch must", "'2.5'")),
        ("diffusers:{sd15}?batch_bound=nan", ("bad-option", "batch_bound", "'nan'")),
        ("diffusers:{sd15}?pipeline=NoSuchPipeline", ("remote-code", "NoSuchPipeline")),
        ("diffusers:{sd15}?pipeline=AutoencoderKL", ("remote-code", "AutoencoderKL")),
        ("diffusers:{sd15}?lora_scale=2", ("missing-option", "lora_scale", "lora=")),
        (
            "diffusers:{sd15}?lora={empty}",
            ("no-such-file", "pytorch_lora_weights.safetensors", "lora_file="),
        ),
        ("diffusers:{sd15}?lora={empty}&lora_revision=v1", ("no-revision", "'v1'")),
        ("diffusers:{sd15}?lora=nobody/nothing", ("wrong-model", "nobody/nothing", "Hub")),
        ("diffusers:{sd15}?lora={empty}&lora_scale=much", ("bad-option", "lora_scale", "'much'")),
        (
            "diffusers:{sd15}?scheduler=UniPCMultistepp",
            ("unknown-name", "'UniPCMultistepp'", "do you mean UniPCMultistepScheduler"),
        ),
        ("diffusers:{sd15}?shift=0", ("bad-option", "shift", "'0'")),
        ("diffusers:{sd15}?dtype=int8", ("bad-option", "dtype", "'int8'")),
        ("diffusers:{sd15}?device=cuda:9", ("no-device", "cuda:9")),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    checkpoint: Checkpoint, tmp_path: Path, spec: str, reason: tuple[str, ...]
) -> None:
    with raises(*reason):
        open_generator(spec.format(sd15=checkpoint("sd15"), empty=tmp_path))


@pytest.mark.parametrize("name", ["MyPipeline", "AutoencoderKL", None, ["module", "MyPipeline"]])
def test_code_that_comes_with_a_model_is_not_run(
    checkpoint: Checkpoint, tmp_path: Path, name: Any
) -> None:
    index = json.loads((checkpoint("sd15") / "model_index.json").read_text())
    (tmp_path / "model_index.json").write_text(json.dumps(index | {"_class_name": name}))
    with raises("remote-code", "has no pipeline"):
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
