"""Shared code of CLIP's family of scorers: directions of image and text in one space."""

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
        """Cosines of the angles between each image and its prompt, shape (n,), in [-1, 1]."""
        image_output = self.model.get_image_features(pixel_values=self._placed(self.pixels(images)))
        text_output = self.model.get_text_features(**self.tokens(prompts))
        image, text = (_unit(output.pooler_output) for output in (image_output, text_output))
        cosines: torch.Tensor = (image * text).sum(dim=-1)
        return cosines

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        """Shape (n, 3, side, side)."""
        values: torch.Tensor = self.processor.image_processor(
            images=list(images), return_tensors="pt"
        )["pixel_values"]
        return values

    def tokens(self, prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        """Tokens for the text encoder, padded and cut to its length."""
        encoded = self.tokenizer(
            list(prompts),
            padding="max_length",
            truncation=True,
            max_length=self.model.config.text_config.max_position_embeddings,
            return_tensors="pt",
        )
        return {
            name: encoded[name].to(self.placement.device)
            for name in ("input_ids", "attention_mask")
        }

    @cached_property
    def tokenizer(self) -> Any:
        return self.processor.tokenizer

    def _placed(self, pixels: torch.Tensor) -> torch.Tensor:
        return pixels.to(self.placement.device, self.placement.torch_dtype)


def _unit(features: torch.Tensor) -> torch.Tensor:
    length: torch.Tensor = features.norm(dim=-1, keepdim=True)
    return features / length
