"""`dinov2`: features of a DINOv2, ``dinov2:facebook/dinov2-large`` (ViT-L/14) by default."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import PositiveFloat

from ...specs import Options, Spec
from .local import LocalModel, LocalModelOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..stats.bootstrap import Array


class DinoOptions(LocalModelOptions):
    """Options of `dinov2`."""

    bandwidth: PositiveFloat = 25
    """Standard deviation of RKE's Gaussian kernel; changes no recorded feature."""


class DinoFeatures(LocalModel):
    """The class token after the last norm, of the image as the model's own processor prepares it.

    Published processors scale the shorter side to 256 and take the middle 224 x 224.
    """

    KIND = "dinov2"
    MODEL = "facebook/dinov2-large"
    options: ClassVar[type[Options]] = DinoOptions
    distances: ClassVar[tuple[str, ...]] = ("fd", "kid", "precision", "recall", "rke")

    def __init__(self, model: str, options: DinoOptions) -> None:
        super().__init__(model, options)
        self.bandwidth = options.bandwidth

    @classmethod
    def from_spec(cls, spec: Spec, options: DinoOptions) -> Self:
        """Raises UsageError for a model that isn't there."""
        return cls(spec.argument, options)

    @cached_property
    def processor(self) -> Any:
        from transformers import AutoImageProcessor

        with self.loading():
            return self.checkpoint.load(AutoImageProcessor)

    @cached_property
    def model(self) -> Any:
        from transformers import Dinov2Model

        with self.loading():
            return self.placed(self.checkpoint.load(Dinov2Model))

    def identity(self) -> dict[str, str]:
        # The Pillow and torchvision forms of an image processor differ in the last digits.
        return {**super().identity(), "image_processor": type(self.processor).__name__}

    def features(self, images: Sequence[Image]) -> Array:
        import torch

        with torch.inference_mode():
            prepared = self.processor(
                images=[image.convert("RGB") for image in images], return_tensors="pt"
            )["pixel_values"]
            placed = prepared.to(self.placement.device, self.placement.torch_dtype)
            output = self.model(pixel_values=placed).pooler_output
        features: Array = output.double().cpu().numpy()
        return features
