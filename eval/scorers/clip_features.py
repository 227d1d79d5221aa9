"""`clip`: the image embeddings of a CLIP, ``clip:openai/clip-vit-large-patch14-336`` for CMMD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from .contrastive import ContrastiveScorer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from ..stats.bootstrap import Array


class ClipFeatures(ContrastiveScorer):
    """The projected embedding of the image, not brought to length 1."""

    KIND = "clip"
    MODEL = "openai/clip-vit-large-patch14-336"
    distances: ClassVar[tuple[str, ...]] = ("fd", "kid", "cmmd", "precision", "recall")

    def features(self, images: Sequence[Image]) -> Array:
        import torch

        with torch.inference_mode():
            pixels = self.pixels([image.convert("RGB") for image in images])
            placed = pixels.to(self.placement.device, self.placement.torch_dtype)
            output = self.model.get_image_features(pixel_values=placed).pooler_output
        features: Array = output.double().cpu().numpy()
        return features

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        return self.cosines(prompts, images)
