"""Mask2Former: masks of a closed set of classes, as GenEval uses it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import Detection, Request, mask_box, ranked
from .classes import class_numbers
from .loading import CheckpointDetector


class Mask2Former(CheckpointDetector):
    """``mask2former:MODEL?revision=COMMIT&threshold=0.3``, an instance segmentation checkpoint."""

    KIND = "mask2former"
    THRESHOLD = 0.3
    """GenEval's."""
    MODEL = "AutoModelForUniversalSegmentation"
    PROCESSOR = "AutoImageProcessor"

    def _run(self, batch: Sequence[Request]) -> list[list[Detection]]:
        import torch

        classes = [class_numbers(self._model.config.id2label, r.queries) for r in batch]
        images = [request.image for request in batch]
        inputs = self._processor(images=images, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        results = self._processor.post_process_instance_segmentation(
            outputs,
            threshold=self._settings.threshold,
            target_sizes=[(image.height, image.width) for image in images],
            return_binary_maps=True,
        )
        return [_instances(result, wanted) for wanted, result in zip(classes, results, strict=True)]


def _instances(result: dict[str, object], wanted: dict[int, str]) -> list[Detection]:
    found = []
    maps, segments = result["segmentation"], result["segments_info"]
    for one in segments:  # type: ignore[attr-defined]
        if one["label_id"] not in wanted:
            continue
        mask = np.asarray(maps[one["id"]].cpu()) > 0  # type: ignore[index]
        if (box := mask_box(mask)) is not None:
            found.append(Detection(wanted[one["label_id"]], one["score"], box, mask))
    return ranked(found)
