"""What scorers of CLIP's family share: directions of image and text in one space."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .local import LocalScorer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class ContrastiveScorer(LocalScorer):
    """A CLIP model. It reads as many tokens of a prompt as it was trained with, mostly 77."""

    def identity(self) -> dict[str, str]:
        # The Pillow and torchvision forms of an image processor differ in the last digits.
        name = type(self.processor.image_processor).__name__
        return {**super().identity(), "image_processor": name}

    @cached_property
    def processor(self) -> Any:
        from transformers import AutoProcessor

        with self.loading():
            return self.checkpoint.load(AutoProcessor)

    @cached_property
    def model(self) -> Any:
        from transformers import CLIPModel

        with self.loading():
            return self.placed(self.checkpoint.load(CLIPModel))

    def cosines(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        """Shape (n,), in [-1, 1]: of the angle between each image and its prompt."""
        seen = self.model.get_image_features(pixel_values=self._placed(self.pixels(images)))
        read = self.model.get_text_features(**self.tokens(prompts))
        image, text = (_unit(found.pooler_output) for found in (seen, read))
        cosines: torch.Tensor = (image * text).sum(dim=-1)
        return cosines

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        """Shape (n, 3, side, side)."""
        found: torch.Tensor = self.processor.image_processor(
            images=list(images), return_tensors="pt"
        )["pixel_values"]
        return found

    def tokens(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """Of the text encoder, padded to its length and cut there."""
        found = self.tokenizer(
            list(prompts),
            padding="max_length",
            truncation=True,
            max_length=self.model.config.text_config.max_position_embeddings,
            return_tensors="pt",
        )
        return {
            name: found[name].to(self.placement.device) for name in ("input_ids", "attention_mask")
        }

    @cached_property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    def _placed(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.to(self.placement.device, self.placement.torch_dtype)


def _unit(features: torch.Tensor) -> torch.Tensor:
    length: torch.Tensor = features.norm(dim=-1, keepdim=True)
    return features / length
