"""SAM on the boxes of another detector: masks for its detections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...specs import Spec
from . import Detection, Detector, DetectorError, Request, open_detector
from .loading import DetectorSettings


class SamOnBoxes:
    """``sam:MODEL?revision=COMMIT&boxes=SPEC``, with `?`, `&` and `=` of SPEC percent-encoded."""

    def __init__(self, settings: DetectorSettings, boxes: Detector) -> None:
        self._settings, self._boxes = settings, boxes
        self._model, self._processor, self._device = settings.load("SamModel", "SamProcessor")

    @classmethod
    def from_spec(cls, spec: Spec) -> SamOnBoxes:
        if "boxes" not in spec.options:
            raise DetectorError("sam: say whose boxes, e.g. sam:MODEL?boxes=grounding-dino:MODEL")
        settings = DetectorSettings.from_spec(spec, own=("boxes",))
        return cls(settings, open_detector(spec.options["boxes"]))

    def identity(self) -> dict[str, str]:
        own = self._settings.identity("sam", self._processor)
        return own | {f"boxes_{name}": value for name, value in self._boxes.identity().items()}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        boxes = self._boxes.detect(requests)
        return [self._masked(r, found) for r, found in zip(requests, boxes, strict=True)]

    def _masked(self, request: Request, found: list[Detection]) -> list[Detection]:
        """The detections with the mask of which SAM is surest."""
        import torch

        if not found:
            return []
        inputs = self._processor(
            request.image, input_boxes=[[list(one.box) for one in found]], return_tensors="pt"
        ).to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        masks = self._processor.image_processor.post_process_masks(
            outputs.pred_masks.cpu(),
            inputs["original_sizes"].cpu(),
            inputs["reshaped_input_sizes"].cpu(),
        )[0]
        best = outputs.iou_scores[0].argmax(dim=-1).tolist()
        return [
            replace(one, mask=np.asarray(masks[row, choice], dtype=bool))
            for row, (one, choice) in enumerate(zip(found, best, strict=True))
        ]
