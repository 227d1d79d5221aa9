"""OWL-ViT and OWLv2: boxes for free text, as VISOR asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from ...specs import Spec
from ..checker.boxes import Size
from . import Detection, Request, in_batches, inside, ranked
from .loading import Checkpoint

THRESHOLD = 0.1
"""VISOR's."""
TEMPLATE = "a photo of a {}"
"""VISOR's question."""


class Owl:
    """``owl:MODEL?revision=COMMIT&threshold=0.1``; OWL-ViT or OWLv2, as the checkpoint says."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._model, self._processor, self._device = checkpoint.load(
            "AutoModelForZeroShotObjectDetection", "AutoProcessor"
        )

    @classmethod
    def from_spec(cls, spec: Spec) -> Owl:
        return cls(Checkpoint.from_spec(spec, THRESHOLD))

    def identity(self) -> dict[str, str]:
        return self._checkpoint.identity("owl", self._processor)

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        found: list[list[Detection]] = []
        for batch in in_batches(requests, self._checkpoint.batch):
            found += self._run(batch)
        return found

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
            threshold=self._checkpoint.threshold,
            target_sizes=[(size.height, size.width) for size in sizes],
        )
        return [
            ranked(
                [
                    Detection(request.queries[label], score, cut)
                    for label, score, box in zip(
                        result["labels"].tolist(),
                        result["scores"].tolist(),
                        result["boxes"].tolist(),
                        strict=True,
                    )
                    if (cut := inside(box, size)) is not None
                ]
            )
            for request, size, result in zip(batch, sizes, results, strict=True)
        ]
