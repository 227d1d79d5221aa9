"""`pickscore`: PickScore (Kirstain et al. 2023), the logit of a CLIP tuned on people's choices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..checkpoints.placement import Checkpoint
from .contrastive import ContrastiveScorer
from .local import LocalScorerOptions

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

PROCESSOR = "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"
"""The checkpoint that PickScore was tuned from, and whose processor it takes."""


class PickScoreOptions(LocalScorerOptions):
    """Options of `pickscore`."""

    processor: str = PROCESSOR
    """Folder or repository of the processor of images and texts."""


class PickScore(ContrastiveScorer):
    """``exp(logit_scale) * cos``; two images of a prompt are compared by the softmax of theirs."""

    KIND = "pickscore"
    MODEL = "yuvalkirstain/PickScore_v1"
    options = PickScoreOptions

    def __init__(self, model: str, options: PickScoreOptions) -> None:
        super().__init__(model, options)
        self.source = Checkpoint.find(options.processor, None, "preprocessor_config.json")

    def identity(self) -> dict[str, str]:
        processor = f"{self.source.name} {self.source.version}"
        return {**super().identity(), "processor": processor}

    @cached_property
    def processor(self) -> Any:
        from transformers import AutoProcessor

        with self.loading():
            return self.source.load(AutoProcessor)

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        scores: torch.Tensor = self.model.logit_scale.exp() * self.cosines(prompts, images)
        return scores
