"""Latents of images and arguments of captions for training, computed once and cached."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from ....storage import write_whole
from ..denoising import Arguments, first_arguments

if TYPE_CHECKING:
    from torch import Tensor

REPLACED = ("sample", "hidden_states", "timestep", "return_dict")
"""Arguments of a denoiser that change from step to step."""


class Encoder:
    """Latents and conditioning of a pipeline, cached in a folder."""

    def __init__(self, pipeline: Any, folder: Path, guidance: float, version: str) -> None:
        """version: identifies what results depend on besides image and caption, e.g. the model."""
        self._pipeline = pipeline
        self._folder = folder
        self._guidance = guidance
        self._version = version

    def latents(self, image: Image.Image) -> Tensor:
        """Normalized latents in the shape that the denoiser takes, (1, ...), on the CPU.

        The image is flipped before it is encoded, never its latents: no VAE is symmetric.
        """
        latents: Tensor = self._cached(
            ("latents", image.size, image.tobytes()), lambda: _encode(self._pipeline, image).cpu()
        )
        return latents

    def arguments(self, caption: str, width: int, height: int) -> Arguments:
        """Returns the denoiser's arguments for a caption but `REPLACED`; tensors on the CPU.

        `time_scale` is the factor from time in [0, num_train_timesteps] to its `timestep`.
        """
        arguments: Arguments = self._cached(
            ("caption", caption, width, height, self._guidance),
            lambda: self._captured(caption, width, height),
        )
        return arguments

    def _captured(self, caption: str, width: int, height: int) -> Arguments:
        import torch

        pipeline = self._pipeline
        # A guidance of 1 also turns classifier-free guidance off, where the model knows it.
        arguments = first_arguments(
            pipeline,
            lambda: pipeline(
                prompt=caption,
                width=width,
                height=height,
                num_inference_steps=2,
                guidance_scale=self._guidance,
                output_type="latent",
                generator=torch.Generator("cpu").manual_seed(0),
            ),
        )
        first = float(torch.as_tensor(arguments["timestep"]).flatten()[0])
        scale = first / float(pipeline.scheduler.timesteps[0])
        fixed = {name: _on(v, "cpu") for name, v in arguments.items() if name not in REPLACED}
        return {"time_scale": scale, "arguments": fixed}

    def _cached(self, key: tuple[Any, ...], compute: Any) -> Any:
        import torch

        digest = hashlib.sha256(repr((self._version, *key)).encode()).hexdigest()[:24]
        path = self._folder / f"{key[0]}-{digest}.pt"
        if not path.exists():
            buffer = io.BytesIO()
            with torch.no_grad():
                torch.save(compute(), buffer)
            write_whole(path, buffer.getvalue())
        return torch.load(path, weights_only=True)


def to_device(arguments: Mapping[str, Any], device: Any) -> Arguments:
    """Returns the arguments with their tensors on a device."""
    moved: Arguments = _on(dict(arguments), device)
    return moved


def _on(value: Any, device: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to(device)
    if isinstance(value, dict):
        return {name: _on(item, device) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_on(item, device) for item in value)
    return value


def _encode(pipeline: Any, image: Image.Image) -> Tensor:
    import torch

    vae, config = pipeline.vae, pipeline.vae.config
    pixels = pipeline.image_processor.preprocess(image, height=image.height, width=image.width)
    pixels = pixels.to(vae.device, vae.dtype)
    latents: Tensor
    if getattr(config, "z_dim", None):  # Qwen-Image: a VAE of videos, here of one frame
        coded = vae.encode(pixels.unsqueeze(2)).latent_dist.mode()
        shape = (1, -1, 1, 1, 1)
        mean, sd = (
            torch.tensor(numbers).view(shape).to(coded)
            for numbers in (config.latents_mean, config.latents_std)
        )
        latents = ((coded - mean) / sd)[:, :, 0]
    else:
        encoded = vae.encode(pixels)
        # A tiny autoencoder (TAESD) has no distribution.
        coded = encoded.latents if "latents" in encoded else encoded.latent_dist.mode()
        shift = getattr(config, "shift_factor", None) or 0.0
        latents = (coded - shift) * config.scaling_factor
    if hasattr(pipeline, "_pack_latents"):
        latents = pipeline._pack_latents(latents, *latents.shape)
    return latents.float()
