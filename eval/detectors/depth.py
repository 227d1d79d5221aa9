"""Depth Anything: how near every pixel is, for PSE in depth and T2I-CompBench's 3D score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...specs import Spec
from . import DetectorError
from .loading import DetectorSettings


class DepthAnything:
    """``depth-anything:MODEL?revision=COMMIT``, a relative model: larger is nearer."""

    def __init__(self, settings: DetectorSettings) -> None:
        self._settings = settings
        self._model, self._processor, self._device = settings.load(
            "AutoModelForDepthEstimation", "AutoImageProcessor"
        )

    @classmethod
    def open(cls, text: str) -> DepthAnything:
        """From a spec. Raises DetectorError for another kind."""
        spec = Spec.parse(text)
        if spec.kind != "depth-anything":
            raise DetectorError(f"no depth estimator {spec.kind!r}: write depth-anything:MODEL")
        return cls(DetectorSettings.from_spec(spec))

    def identity(self) -> dict[str, str]:
        return self._settings.identity("depth-anything", self._processor)

    def nearness(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One map of shape (H, W) an image, of its size; no unit, comparable within an image."""
        import torch

        maps = []
        for image in images:
            inputs = self._processor(images=image, return_tensors="pt").to(self._device)
            with torch.inference_mode():
                outputs = self._model(**inputs)
            sized = self._processor.post_process_depth_estimation(
                outputs, target_sizes=[(image.height, image.width)]
            )
            maps.append(np.asarray(sized[0]["predicted_depth"].cpu(), dtype=np.float32))
        return maps
