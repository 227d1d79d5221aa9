"""CLIPSeg: one mask a query, from text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...specs import Spec
from . import Detection, Request, mask_box, ranked
from .loading import Checkpoint

THRESHOLD = 0.5


class ClipSeg:
    """``clipseg:MODEL?revision=COMMIT&threshold=0.5``; all instances of a query are one mask."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._model, self._processor, self._device = checkpoint.load(
            "CLIPSegForImageSegmentation", "CLIPSegProcessor"
        )

    @classmethod
    def from_spec(cls, spec: Spec) -> ClipSeg:
        return cls(Checkpoint.from_spec(spec, THRESHOLD))

    def identity(self) -> dict[str, str]:
        return self._checkpoint.identity("clipseg", self._processor)

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        return [self._found(request) for request in requests]

    def _found(self, request: Request) -> list[Detection]:
        """All queries of a picture in one batch."""
        import torch

        inputs = self._processor(
            text=list(request.queries),
            images=[request.image] * len(request.queries),
            padding=True,
            return_tensors="pt",
        ).to(self._device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits.float()
        maps = torch.nn.functional.interpolate(
            logits.reshape(len(request.queries), 1, *logits.shape[-2:]),
            size=(request.image.height, request.image.width),
            mode="bilinear",
            align_corners=False,
        )[:, 0]
        shares = maps.sigmoid().cpu().numpy()
        found = []
        for query, share in zip(request.queries, shares, strict=True):
            mask = np.asarray(share >= self._checkpoint.threshold)
            if (box := mask_box(mask)) is not None:
                found.append(Detection(query, float(share.max()), box, mask))
        return ranked(found)
