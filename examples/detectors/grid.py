"""Detections of models that score a grid of boxes, many of which answer to one thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from counterprior.eval.detectors import Detection, inside, ranked
from counterprior.eval.geometry.boxes import Size, iou
from counterprior.eval.stats.bootstrap import Array

ALIKE = 0.5
"""Overlap from which two boxes of a label are one thing."""


def grid_detections(
    classes_of: Mapping[str, Iterable[int]],
    size: Size,
    boxes: Array,
    scores: Array,
    threshold: float,
) -> list[Detection]:
    """Distinct detections of each query, best first.

    classes_of: query -> the classes that answer it. boxes: (n, 4), left, top, right, bottom as
    shares of the image. scores: (n, classes).
    """
    detections = []
    for query, classes in classes_of.items():
        best = scores[:, list(classes)].max(axis=1)
        for index in np.flatnonzero(best >= threshold):
            box = inside(boxes[index] * (*size, *size), size)
            if box is not None:
                detections.append(Detection(query, float(best[index]), box))
    return distinct(detections)


def distinct(detections: Sequence[Detection]) -> list[Detection]:
    """Best first, without those that overlap a better one of their label."""
    best: list[Detection] = []
    for detection in ranked(detections):
        if all(
            detection.label != other.label or iou(detection.box, other.box) < ALIKE
            for other in best
        ):
            best.append(detection)
    return best
