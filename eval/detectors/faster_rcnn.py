"""Faster R-CNN of torchvision, SpatialBench-UC's primary detector; where torchvision is there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...specs import Spec
from ..checker.boxes import Size
from . import Detection, DetectorError, Request, inside, ranked
from .classes import class_numbers
from .loading import number

THRESHOLD = 0.5
"""As the published evaluation set it."""


class FasterRcnn:
    """``faster-rcnn:WEIGHTS.pth?threshold=0.5``: ResNet-50-FPN with COCO's classes."""

    def __init__(self, weights: Path, threshold: float) -> None:
        """Raises DetectorError where torchvision or the weights can't be read."""
        import torch

        try:
            from torchvision.models import detection
        except (ImportError, RuntimeError) as error:
            raise DetectorError(
                f"faster-rcnn needs a torchvision that fits torch ({error}); `detr:` does not"
            ) from None
        if not weights.is_file():
            raise DetectorError(f"faster-rcnn: {weights} is no file of weights")
        self._threshold = threshold
        self._digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        self._model = detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
        self._model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        self._model.eval()
        names = detection.FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta["categories"]
        self._names = dict(enumerate(names))

    @classmethod
    def from_spec(cls, spec: Spec) -> FasterRcnn:
        if unknown := sorted(set(spec.options) - {"threshold"}):
            raise DetectorError(f"faster-rcnn: no option {unknown[0]!r}: there is threshold")
        return cls(Path(spec.argument), number(spec, "threshold", THRESHOLD, 0, 1))

    def identity(self) -> dict[str, str]:
        return {
            "kind": "faster-rcnn",
            "weights_sha256": self._digest,
            "threshold": f"{self._threshold:g}",
        }

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        return [self._found(request) for request in requests]

    def _found(self, request: Request) -> list[Detection]:
        import numpy as np
        import torch

        wanted = class_numbers(self._names, request.queries)
        pixels: Any = np.asarray(request.image.convert("RGB"), dtype=np.float32) / 255
        with torch.inference_mode():
            (result,) = self._model([torch.from_numpy(pixels).permute(2, 0, 1)])
        size = Size(*request.image.size)
        found = zip(
            result["labels"].tolist(), result["scores"].tolist(), result["boxes"].tolist(),
            strict=True,
        )  # fmt: skip
        return ranked(
            [
                Detection(wanted[label], score, cut)
                for label, score, box in found
                if label in wanted
                and score >= self._threshold
                and (cut := inside(box, size)) is not None
            ]
        )
