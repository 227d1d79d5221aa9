"""Faster R-CNN of torchvision, SpatialBench-UC's primary detector; where torchvision is there."""

from __future__ import annotations

import hashlib
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from ..geometry.boxes import Size
from . import Detection, DetectorError, Request, from_tensors
from .loading import FileDetector, class_numbers, install_torchvision


class FasterRcnn(FileDetector):
    """``faster-rcnn:WEIGHTS.pth?threshold=0.5``: ResNet-50-FPN v2 with COCO's classes."""

    KIND = "faster-rcnn"
    THRESHOLD = 0.5
    """As the published evaluation set it."""

    def read_weights(self, path: Path) -> str:
        import torch

        try:
            import torchvision
            from torchvision.models import detection
        except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
            raise DetectorError(
                f"faster-rcnn needs a torchvision that fits torch ({error}): "
                f"{install_torchvision(torch.__version__)}",
                code="missing-library",
            ) from None
        published = detection.FasterRCNN_ResNet50_FPN_V2_Weights.COCO_V1
        if not path.is_file():
            raise DetectorError(
                f"faster-rcnn: {path} is not a file of weights: get {published.url}",
                code="no-such-file",
            )
        model = detection.fasterrcnn_resnet50_fpn_v2(weights=None, weights_backbone=None)
        try:
            model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        except (RuntimeError, TypeError, EOFError, UnpicklingError) as error:
            reason = str(error).strip().splitlines()[0]
            raise DetectorError(
                f"faster-rcnn: {path} does not fit the model ({reason}): get {published.url}",
                code="wrong-model",
            ) from None
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = model.to(self._device).eval()
        self._names = dict(enumerate(published.meta["categories"]))
        self._torchvision = str(torchvision.__version__)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def identity(self) -> dict[str, str]:
        return super().identity() | {"torchvision": self._torchvision}

    def detect_image(self, request: Request) -> list[Detection]:
        import torch

        wanted = class_numbers(self._names, request.queries)
        pixels: Any = np.asarray(request.image.convert("RGB"), dtype=np.float32) / 255
        tensor = torch.from_numpy(pixels).permute(2, 0, 1).to(self._device)
        with torch.inference_mode():
            (result,) = self._model([tensor])
        return from_tensors(result, wanted, Size(*request.image.size), self._threshold)
