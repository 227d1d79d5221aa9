"""`clipscore`: CLIPScore (Hessel et al. 2021), 100 max(cos, 0) unless told otherwise.

``clipscore:MODEL?scale=2.5&prefix=A photo depicts `` is the paper's own form; papers on generators
mostly print the default one, of the bare prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...errors import UsageError
from ..checkpoints.placement import Checkpoint, Placement
from .contrastive import ContrastiveScorer

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


class ClipScore(ContrastiveScorer):
    """``scale * max(cos, 0)`` of image and ``prefix + prompt``."""

    KIND = "clipscore"
    MODEL = "openai/clip-vit-large-patch14"
    OPTIONS = ("scale", "prefix")

    def __init__(
        self, checkpoint: Checkpoint, placement: Placement, batch: int, options: Mapping[str, str]
    ) -> None:
        super().__init__(checkpoint, placement, batch, options)
        self.prefix = options.get("prefix", "")
        try:
            self.scale = float(options.get("scale", "100"))
        except ValueError:
            raise UsageError(
                f"clipscore: scale is a number, not {options['scale']!r}", code="not-a-number"
            ) from None

    def identity(self) -> dict[str, str]:
        return {**super().identity(), "scale": f"{self.scale:g}", "prefix": self.prefix}

    def _scores(self, prompts: Sequence[str], images: Sequence[Image]) -> torch.Tensor:
        cosines = self.cosines([self.prefix + prompt for prompt in prompts], images)
        return self.scale * cosines.clamp(min=0)
