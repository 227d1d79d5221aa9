"""OWL-ViT and OWLv2: boxes for free text, as VISOR asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from ..rules.boxes import Size
from . import Detection, Request, from_tensors
from .loading import CheckpointDetector

TEMPLATE = "a photo of a {}"
"""VISOR's question."""


class Owl(CheckpointDetector):
    """``owl:MODEL?revision=COMMIT&threshold=0.1``; OWL-ViT or OWLv2, as the checkpoint says."""

    KIND = "owl"
    THRESHOLD = 0.1
    """VISOR's."""
    MODEL = "AutoModelForZeroShotObjectDetection"
    PROCESSOR = "AutoProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        import torch

        inputs = self._processor(
            images=[request.image for request in batch],
            text=[[TEMPLATE.format(query) for query in request.queries] for request in batch],
            return_tensors="pt",
        ).to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        sizes = [Size(*request.image.size) for request in batch]
        results = self._processor.post_process_grounded_object_detection(
            outputs,
            threshold=self._settings.threshold,
            target_sizes=[(size.height, size.width) for size in sizes],
        )
        return [
            from_tensors(result, dict(enumerate(request.queries)), size)
            for result, request, size in zip(results, batch, sizes, strict=True)
        ]
