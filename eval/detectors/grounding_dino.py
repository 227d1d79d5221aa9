"""Grounding DINO: boxes for free text.

Every query is scored by the surest of its own tokens. The model's own labels run neighboring
phrases together ("fire cat"), which loses detections (see its issues 63, 85, 421).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..rules.boxes import Size
from . import Detection, DetectorError, Request, inside, ranked
from .loading import CheckpointDetector

if TYPE_CHECKING:
    from torch import Tensor


class GroundingDino(CheckpointDetector):
    """``grounding-dino:MODEL?revision=COMMIT&threshold=0.35``."""

    KIND = "grounding-dino"
    THRESHOLD = 0.35
    """As SpatialBench-UC and PSE use it."""
    MODEL = "AutoModelForZeroShotObjectDetection"
    PROCESSOR = "AutoProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        import torch

        texts = [caption(request.queries) for request in batch]
        inputs = self._processor(
            images=[request.image for request in batch],
            text=[text for text, _ in texts],
            return_tensors="pt",
            padding=True,
        ).to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        scores = outputs.logits.float().sigmoid().cpu()
        boxes = outputs.pred_boxes.float().cpu()
        return [
            self._found(request, text, spans, scores[row], boxes[row].tolist())
            for row, (request, (text, spans)) in enumerate(zip(batch, texts, strict=True))
        ]

    def _found(
        self,
        request: Request,
        text: str,
        spans: Sequence[tuple[int, int]],
        scores: Tensor,
        boxes: Sequence[Sequence[float]],
    ) -> list[Detection]:
        """scores: (boxes, tokens); boxes: center and size, as shares of the image."""
        offsets = self._processor.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
        size = Size(*request.image.size)
        found = []
        for query, (start, end) in zip(request.queries, spans, strict=True):
            tokens = [i for i, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
            if not tokens:
                raise DetectorError(f"grounding-dino: the tokenizer drops the query {query!r}")
            best = scores[:, tokens].max(dim=-1).values.tolist()
            for score, (cx, cy, width, height) in zip(best, boxes, strict=True):
                ends = (cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2)
                pixels = [e * (size.width, size.height)[i % 2] for i, e in enumerate(ends)]
                box = inside(pixels, size)
                if score >= self._settings.threshold and box is not None:
                    found.append(Detection(query, score, box))
        return ranked(found)


def caption(queries: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text that the model reads, and where in it each query stands.

    >>> caption(["cat", "Fire hydrant"])
    ('cat. fire hydrant.', [(0, 3), (5, 17)])
    """
    text, spans = "", []
    for query in queries:
        start = len(text) + bool(text)
        text += f"{' ' if text else ''}{query.lower()}."
        spans.append((start, len(text) - 1))
    return text, spans
