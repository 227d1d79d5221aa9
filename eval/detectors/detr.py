"""DETR and RT-DETR: boxes of a closed set of classes."""

from __future__ import annotations

from collections.abc import Sequence

from ..rules.boxes import Size
from . import Detection, Request, from_tensors
from .classes import class_numbers
from .loading import CheckpointDetector


class Detr(CheckpointDetector):
    """``detr:MODEL?revision=COMMIT&threshold=0.3``; RT-DETR, which needs no timm, is preferred."""

    KIND = "detr"
    THRESHOLD = 0.3
    MODEL = "AutoModelForObjectDetection"
    PROCESSOR = "AutoImageProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        import torch

        classes = [class_numbers(self._model.config.id2label, r.queries) for r in batch]
        images = [request.image for request in batch]
        inputs = self._processor(images=images, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        sizes = [Size(*image.size) for image in images]
        results = self._processor.post_process_object_detection(
            outputs,
            threshold=self._settings.threshold,
            target_sizes=[(size.height, size.width) for size in sizes],
        )
        return [
            from_tensors(result, wanted, size)
            for result, wanted, size in zip(results, classes, sizes, strict=True)
        ]
