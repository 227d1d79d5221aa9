"""DETR and RT-DETR: boxes of a closed set of classes."""

from __future__ import annotations

from collections.abc import Sequence

from ...specs import Spec
from ..checker.boxes import Size
from . import Detection, Request, in_batches, inside, ranked
from .classes import class_numbers
from .loading import Checkpoint

THRESHOLD = 0.3


class Detr:
    """``detr:MODEL?revision=COMMIT&threshold=0.3``; RT-DETR, which needs no timm, is preferred."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._model, self._processor, self._device = checkpoint.load(
            "AutoModelForObjectDetection", "AutoImageProcessor"
        )

    @classmethod
    def from_spec(cls, spec: Spec) -> Detr:
        return cls(Checkpoint.from_spec(spec, THRESHOLD))

    def identity(self) -> dict[str, str]:
        return self._checkpoint.identity("detr", self._processor)

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        found: list[list[Detection]] = []
        for batch in in_batches(requests, self._checkpoint.batch):
            found += self._run(batch)
        return found

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
            threshold=self._checkpoint.threshold,
            target_sizes=[(size.height, size.width) for size in sizes],
        )
        return [
            ranked(
                [
                    Detection(wanted[label], score, cut)
                    for label, score, box in zip(
                        result["labels"].tolist(),
                        result["scores"].tolist(),
                        result["boxes"].tolist(),
                        strict=True,
                    )
                    if label in wanted and (cut := inside(box, size)) is not None
                ]
            )
            for wanted, size, result in zip(classes, sizes, results, strict=True)
        ]
