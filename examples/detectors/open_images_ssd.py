"""SSD-MobileNetV2 on 23 classes of Open Images v4: real weights that a package registry holds.

The file `objectron_solution_packed_assets.data` of npm's `@mediapipe/objectron` (Apache-2.0) is the
list of labels followed by the model; it runs on `ai-edge-litert`, without torch, in some 10 ms an
image. Small, but real: it is what tries the whole chain on images that nobody rendered.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from grid import grid_detections

from counterprior.eval.detectors import Detection, DetectorError, Request
from counterprior.eval.detectors.loading import FileDetector, ThresholdOptions, class_numbers
from counterprior.eval.geometry.boxes import Size
from counterprior.eval.stats.bootstrap import Array
from counterprior.specs import Spec

SIDE = 300
_LABELS = 184
"""Bytes of the labels before the model."""
_GRIDS = (19, 10, 5, 3, 2, 1)
"""Cells a side of the six feature maps."""
_SCALES = (*np.linspace(0.2, 0.95, 6), 1.0)
_ASPECTS = (1.0, 2.0, 0.5, 3.0, 1 / 3)

MEANS = {
    "cow": ("cattle",),
    "cup": ("mug", "coffee cup"),
    "mouse": ("computer mouse",),
    "tv": ("computer monitor",),
    "dining table": ("table",),
}
"""Classes that answer a query of another name: the same thing, never a wider class (`vehicle`)."""


class OpenImagesSsd(FileDetector):
    """Boxes of 23 classes; others are refused."""

    KIND = "open-images-ssd"
    THRESHOLD = 0.3

    def read_weights(self, path: Path) -> str:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise DetectorError(
                f"open-images-ssd needs ai-edge-litert ({error})", code="missing-library"
            ) from None
        if not path.is_file():
            raise DetectorError(
                f"open-images-ssd: {path} is not a file of weights", code="no-such-file"
            )
        data = path.read_bytes()
        names = data[:_LABELS].decode("utf-8", "replace").split("\n")
        if names[:2] != ["???", "Bicycle"]:
            raise DetectorError(
                f"open-images-ssd: {path} does not begin with its labels", code="wrong-model"
            )
        self._names = {index: name for index, name in enumerate(names) if index and name}
        self._model: Any = Interpreter(model_content=data[_LABELS:])
        self._model.allocate_tensors()
        self._anchors = anchors()
        return hashlib.sha256(data).hexdigest()

    def detect_image(self, request: Request) -> list[Detection]:
        classes_of = {
            query: class_numbers(self._names, MEANS.get(query.lower(), (query,)))
            for query in request.queries
        }
        size = Size(*request.image.size)
        return grid_detections(classes_of, size, *self._run(request), self._threshold)

    def _run(self, request: Request) -> tuple[Array, Array]:
        """Boxes (1917, 4) as shares of the image, and scores (1917, 24); class 0 is nothing."""
        small = request.image.convert("RGB").resize((SIDE, SIDE))
        pixels = np.asarray(small, dtype=np.float32) / 127.5 - 1
        self._model.set_tensor(self._model.get_input_details()[0]["index"], pixels[None])
        self._model.invoke()
        found = {
            output["name"]: self._model.get_tensor(output["index"])[0].astype(float)
            for output in self._model.get_output_details()
        }
        logits = found["raw_outputs/class_predictions"]
        return decode(found["raw_outputs/box_encodings"], self._anchors), 1 / (1 + np.exp(-logits))


def open_ssd(weights: str, **options: str) -> OpenImagesSsd:
    """Opens ``python:open_images_ssd:open_ssd?weights=FILE&threshold=0.3``."""
    spec = Spec(OpenImagesSsd.KIND, weights, options)
    return OpenImagesSsd.from_spec(spec, ThresholdOptions.read(spec))


def anchors() -> Array:
    """Center x, center y, width and height of the 1,917 anchors, as shares of the image."""
    found = []
    for layer, cells in enumerate(_GRIDS):
        scale, following = _SCALES[layer], _SCALES[layer + 1]
        shapes = [(scale, aspect) for aspect in _ASPECTS] + [((scale * following) ** 0.5, 1.0)]
        if layer == 0:
            shapes = [(0.1, 1.0), (scale, 2.0), (scale, 0.5)]
        for row, column in np.ndindex(cells, cells):
            center = (column + 0.5) / cells, (row + 0.5) / cells
            found += [(*center, side * a**0.5, side / a**0.5) for side, a in shapes]
    return np.array(found)


def decode(encoded: Array, around: Array) -> Array:
    """Left, top, right, bottom from the model's offsets (y, x, height, width) to the anchors."""
    cy = encoded[:, 0] / 10 * around[:, 3] + around[:, 1]
    cx = encoded[:, 1] / 10 * around[:, 2] + around[:, 0]
    height = np.exp(encoded[:, 2] / 5) * around[:, 3]
    width = np.exp(encoded[:, 3] / 5) * around[:, 2]
    return np.stack([cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2], axis=1)
