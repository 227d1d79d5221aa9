"""Whatever finds things in images; one line in `DETECTORS` each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from ...errors import UsageError
from ..checkpoints.registry import Registry
from ..geometry.boxes import Box, Size
from ..geometry.detections import Detection as Detection
from ..geometry.detections import Mask as Mask


@dataclass(frozen=True)
class Request:
    """Names of things to detect in one RGB image."""

    image: Image
    queries: tuple[str, ...]
    """Names of things, e.g. `potted plant`."""
    name: str = ""
    """Sample id or file name by which `recorded` finds the image; other detectors ignore it."""
    digest: str = ""
    """SHA-256 of the image's file; empty if unknown."""


class Detector(Protocol):
    """Finds things."""

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        """Returns the detections of every request, best first.

        Each is of one of the queries. A query outside a closed set of classes raises DetectorError:
        the thing isn't missing because the detector can't find it.
        """
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model, revision and settings; part of every record."""
        ...


class DetectorError(UsageError):
    """A detector can't be opened or used; the message says what to do."""


def in_batches(requests: Sequence[Request], size: int) -> Iterator[Sequence[Request]]:
    """Yields requests in order, at most `size` at a time, each batch with one number of queries."""
    for _, alike in groupby(requests, key=lambda request: len(request.queries)):
        batch = list(alike)
        yield from (batch[start : start + size] for start in range(0, len(batch), size))


def inside(box: Sequence[float] | NDArray[Any], size: Size) -> Box | None:
    """Returns the box cut to the image; None if it lies outside."""
    x1, x2 = (min(max(float(x), 0.0), float(size.width)) for x in box[::2])
    y1, y2 = (min(max(float(y), 0.0), float(size.height)) for y in box[1::2])
    return Box(x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None


def ranked(detections: Sequence[Detection]) -> list[Detection]:
    """Sorts detections, best first; ties stay in order."""
    return sorted(detections, key=lambda detection: -detection.score)


def from_tensors(
    result: Mapping[str, Any], class_names: Mapping[int, str], size: Size, threshold: float = 0.0
) -> list[Detection]:
    """Returns detections of one image, best first, from the tensors `labels`, `scores` and `boxes`.

    Transformers and torchvision return such tensors. Labels missing in `class_names`, scores below
    the threshold and boxes outside the image are left out.
    """
    detections = []
    for row in zip(*(result[name].tolist() for name in ("labels", "scores", "boxes")), strict=True):
        label, score, box = row
        if label in class_names and score >= threshold and (cut := inside(box, size)) is not None:
            detections.append(Detection(class_names[label], score, cut))
    return ranked(detections)


def mask_box(mask: Mask) -> Box | None:
    """Returns the smallest box around a mask; None for an empty mask."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


IN_EXAMPLES = (
    "where examples/detectors of the source is the current folder or on PYTHONPATH: "
    '"Bring your own detector" in docs/extend.md has the steps'
)
"""How to use a detector that moved from the package to its examples."""

DETECTORS: Registry[Detector] = Registry(
    "detector",
    {
        "pixels": f"{__name__}.pixels:PixelDetector",
        "scene": f"{__name__}.pixels:SceneDetector",
        "recorded": f"{__name__}.recorded:RecordedDetector",
        "grounding-dino": f"{__name__}.checkpoint_models:GroundingDino",
        "owl": f"{__name__}.checkpoint_models:Owl",
        "detr": f"{__name__}.checkpoint_models:Detr",
        "mask2former": f"{__name__}.checkpoint_models:Mask2Former",
        "sam": f"{__name__}.checkpoint_models:SamOnBoxes",
        "grounded-sam": f"{__name__}.checkpoint_models:GroundedSam",
        "clipseg": f"{__name__}.checkpoint_models:ClipSeg",
        "faster-rcnn": f"{__name__}.faster_rcnn:FasterRcnn",
        "spoiled": f"{__name__}.spoiled:SpoiledDetector",
    },
    removed={
        "open-images-ssd": f"write python:open_images_ssd:open_ssd?weights=FILE {IN_EXAMPLES}",
        "nanodet": f"write python:nanodet:open_nanodet?weights=nanodet.json {IN_EXAMPLES}",
    },
)
open_detector = DETECTORS.open
