"""`clipscore`: CLIPScore (Hessel et al. 2021), 100 max(cos, 0) unless told otherwise.

``clipscore:MODEL?scale=2.5&prefix=A photo depicts `` is the paper's own form; papers on generators
mostly print the default one, of the bare prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .contrastive import ContrastiveScorer
from .local import LocalScorerOptions

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class ClipScoreOptions(LocalScorerOptions):
    """Options of `clipscore`."""

    scale: float = 100
    """Factor of the cosine; 2.5 in the paper."""
    prefix: str = ""
    """Text before every prompt; `A photo depicts ` in the paper."""


class ClipScore(ContrastiveScorer):
    """``scale * max(cos, 0)`` of image and ``prefix + prompt``."""

    KIND = "clipscore"
    MODEL = "openai/clip-vit-large-patch14"
    options = ClipScoreOptions

    def __init__(self, model: str, options: ClipScoreOptions) -> None:
        super().__init__(model, options)
        self.prefix = options.prefix
        self.scale = options.scale

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "scale": f"{self.scale:g}", "prefix": self.prefix}

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        cosines = self.cosines([self.prefix + prompt for prompt in prompts], images)
        return self.scale * cosines.clamp(min=0)
