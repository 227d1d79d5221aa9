"""What methods cost against drawing without them: python benchmarks/methods.py flux --size full

Cost needs no trained weights. `--size full` is FLUX.1-dev or SDXL with denoiser and VAE at their
real sizes and random weights (24 and 5 GB in FOLDER), and text encoders of one or two layers, whose
share of an image is small; it wants a GPU. `--size tiny` runs anywhere and says that the command
works, nothing about cost. Prints seconds an image as a multiple of plain drawing, and on a GPU the
most memory, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterprior.eval.engine.data import Rows
from counterprior.eval.engine.evaluation import RunSettings
from counterprior.eval.engine.steps import generate
from counterprior.eval.generators import open_generator
from counterprior.eval.methods import apply_methods
from counterprior.eval.suites import open_suite
from counterprior.schema import Row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixtures"))
import tiny_diffusion as tiny

PLAIN, ORDER, STATED = "plain", "t2i_homogenization", "spatial_visor"


class Nothing:
    """A scorer that takes no time: what remains is the cost of the images."""

    batch = 1

    def score(self, pairs: Sequence[Any]) -> list[float]:
        return [0.0] * len(pairs)

    def identity(self) -> dict[str, str]:
        return {"kind": "nothing"}


METHODS = {
    PLAIN: (ORDER, ""),
    "switch": (ORDER, "switch:a2b?at=3"),
    "psg": (STATED, "psg:{preset}"),
    "best-of 4": (ORDER, f"best-of:4?by=python:{__name__}:Nothing"),
}
"""Name -> suite, and method."""


@dataclass(frozen=True)
class Model:
    """One of the models."""

    full: Callable[[str], Any]
    """Makes the pipeline at its real size, its weights on a device."""
    preset: str
    """Of `psg`."""
    call: str
    """How the real model is called."""


@contextmanager
def real_size(device: str) -> Iterator[None]:
    """Modules that are made meanwhile have their weights there, in 16 bits."""
    import torch

    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(usual)


def vae(latent: int, **more: Any) -> Any:
    """An autoencoder of the size that both models have."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        in_channels=3,
        out_channels=3,
        latent_channels=latent,
        block_out_channels=(128, 256, 512, 512),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=2,
        sample_size=1024,
        **more,
    )


def full_flux(device: str) -> Any:
    """FLUX.1-dev: 12 billion weights in the denoiser."""
    from diffusers import FluxTransformer2DModel

    small = tiny.flux()
    with real_size(device):
        parts = {
            "text_encoder": tiny.clip_text(small.tokenizer, width=768),
            "text_encoder_2": tiny.t5_encoder(small.tokenizer_2, 4096),
            "transformer": FluxTransformer2DModel(guidance_embeds=True),
            "vae": vae(16, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159),
        }
    return type(small)(**{**small.components, **parts})


def full_sdxl(device: str) -> Any:
    """SDXL: 2.6 billion weights in the denoiser."""
    from diffusers import UNet2DConditionModel

    small = tiny.stable_diffusion_xl()
    shape = {
        "sample_size": 128,
        "block_out_channels": (320, 640, 1280),
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        "attention_head_dim": (5, 10, 20),
        "transformer_layers_per_block": (1, 2, 10),
        "cross_attention_dim": 2048,
        "use_linear_projection": True,
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 256,
        "projection_class_embeddings_input_dim": 2816,
    }
    with real_size(device):
        parts = {
            "text_encoder": tiny.clip_text(small.tokenizer, width=768),
            "text_encoder_2": tiny.clip_text(small.tokenizer, project=True, width=1280),
            "unet": UNet2DConditionModel(**shape),
            "vae": vae(4),
        }
    return type(small)(**{**small.components, **parts})


MODELS = {
    "flux": Model(full_flux, "mmdit", "steps=28&guidance=3.5&height=1024&width=1024"),
    "sdxl": Model(full_sdxl, "sdxl", "steps=50&height=1024&width=1024"),
}
SMALL = "steps=6&height=64&width=64"


def saved(name: str, size: str, folder: Path, device: str) -> Path:
    """The folder of a pipeline, made where it is not there yet."""
    import torch

    path = folder / f"{name}-{size}"
    if not (path / "model_index.json").exists():
        torch.manual_seed(0)
        made = MODELS[name].full(device) if size == "full" else tiny.PIPELINES[name]()
        made.save_pretrained(path)
    return path


def rows_of(suite: str, count: int) -> list[Row]:
    """Rows about things that the self-test draws."""
    return list(next(open_suite(suite).trials()).rows)[:count]


def cost(generator: Any, suite: str, count: int, folder: Path, device: str) -> tuple[float, float]:
    """Seconds an image after the first, and the most memory, GiB."""
    import torch

    taken = 0.0
    for name, rows in (("warm", 1), ("run", count)):
        run = RunSettings(
            suite, "benchmark", folder / name, variants=open_suite(suite).variants[:1]
        )
        if device != "cpu":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        done = generate(run, generator, rows=Rows.of(rows_of(suite, rows)))
        taken = time.perf_counter() - start
        made = [image.status for image in done.run.images().values()]
        assert made == ["made"] * rows, [i.message for i in done.run.images().values()]
    most = 0.0 if device == "cpu" else torch.cuda.max_memory_allocated() / 2**30
    return taken / count, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--size", choices=("tiny", "full"), default="tiny")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument(
        "--device", default="", help="cuda, cpu, ...; else a GPU where there is one"
    )
    parser.add_argument("--folder", type=Path, help="where the weights stay; else nowhere")
    asked = parser.parse_args()

    import torch

    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    model, full = MODELS[asked.model], asked.size == "full"
    with tempfile.TemporaryDirectory() as scratch:
        path = saved(asked.model, asked.size, asked.folder or Path(scratch), device)
        call = model.call if full else SMALL + "&max_sequence_length=64" * (asked.model == "flux")
        generator = open_generator(
            f"diffusers:{path}?device={device}&dtype={'bfloat16' if full else 'float32'}&{call}"
        )
        print(f"{asked.model}, {asked.size}, {device}, {asked.images} images of each")
        plain = 0.0
        for name, (suite, method) in METHODS.items():
            preset = model.preset if full else f"{model.preset}?size=0&steps=3"
            methods = [method.format(preset=preset)] if method else []
            changed = apply_methods(generator, methods)
            out = Path(scratch) / name
            taken, most = cost(changed, suite, asked.images, out, device)
            plain = plain or taken
            memory = f", {most:.1f} GiB" if most else ""
            print(f"  {name}: {taken:.3f} s an image, {taken / plain:.2f} x plain{memory}")


if __name__ == "__main__":
    main()
