"""A detector of the squares: each query's color, and the box around it."""

import numpy as np

from counterprior.eval.detectors import Detection, Request
from counterprior.eval.detectors.loading import SingleImageDetector
from counterprior.eval.generators.squares import color
from counterprior.eval.geometry.boxes import Box


class Patches(SingleImageDetector):
    def identity(self) -> dict[str, str]:
        return {"kind": "patches", "version": "1"}

    def detect_image(self, request: Request) -> list[Detection]:
        pixels = np.asarray(request.image)
        detections = []
        for query in request.queries:
            rows, columns = np.nonzero((pixels == color(query)).all(axis=2))
            if len(rows):
                sides = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
                detections.append(Detection(query, 1.0, Box(*map(float, sides))))
        return detections


def open_patches() -> Patches:
    return Patches()
