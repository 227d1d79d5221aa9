"""CLIPSeg: one mask a query, from text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import Detection, Request, mask_box, ranked
from .loading import CheckpointDetector


class ClipSeg(CheckpointDetector):
    """``clipseg:MODEL?revision=COMMIT&threshold=0.5``; all instances of a query are one mask."""

    KIND = "clipseg"
    THRESHOLD = 0.5
    MODEL = "CLIPSegForImageSegmentation"
    PROCESSOR = "CLIPSegProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        return [self._found(request) for request in batch]

    def _found(self, request: Request) -> list[Detection]:
        """All queries of an image in one batch."""
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
            mask = np.asarray(share >= self._settings.threshold)
            if (box := mask_box(mask)) is not None:
                found.append(Detection(query, float(share.max()), box, mask))
        return ranked(found)
