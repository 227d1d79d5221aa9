"""How near every pixel of an image is: estimators of depth, one line in `DEPTHS` each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL.Image import Image

from ...storage import write_whole
from ..checkpoints.registry import Registry
from ..geometry.detections import Detection, Nearness
from .cache import pixels_digest


class DepthEstimator(Protocol):
    """Estimates how near things are."""

    def nearness(self, image: Image, detections: Sequence[Detection]) -> Nearness:
        """Returns a map of an RGB image with these detections."""
        ...

    def identity(self) -> dict[str, str]:
        """Kind, model and revision; part of every record."""
        ...


class GroundDepth:
    """``ground``: each thing is as near as its foot is low, as on level ground seen from above.

    Needs no model. It holds for rendered scenes, whose figures all stand on one ground, and for
    photographs without anything that hangs or flies.
    """

    def identity(self) -> dict[str, str]:
        return {"kind": "ground", "version": "1"}

    def nearness(self, image: Image, detections: Sequence[Detection]) -> Nearness:
        depth = np.zeros((image.height, image.width), np.float32)
        for detection in sorted(
            detections, key=lambda detection: detection.box.y2
        ):  # near things cover far ones
            foot = np.float32(detection.box.y2 / image.height)
            if detection.mask is not None:
                depth[detection.mask] = foot
            else:
                x1, y1, x2, y2 = (round(side) for side in detection.box)
                depth[y1:y2, x1:x2] = foot
        return depth


class CachedDepth:
    """An estimator whose maps lie in a folder, one file an image; as `cache.Cached`."""

    def __init__(self, inner: DepthEstimator, folder: Path | None) -> None:
        """folder: None for no cache."""
        self._inner, self._folder = inner, folder
        self._identity = json.dumps(inner.identity(), sort_keys=True)

    def identity(self) -> dict[str, str]:
        return self._inner.identity()

    def nearness(self, image: Image, detections: Sequence[Detection]) -> Nearness:
        if self._folder is None:
            return self._inner.nearness(image, detections)
        key = hashlib.sha256(f"{pixels_digest(image)} {self._identity}".encode()).hexdigest()
        path = self._folder / key[:2] / f"{key}.npz"
        try:
            # In memory: of a damaged file NumPy would leave the handle open.
            with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as data:
                return np.asarray(data["depth"], np.float32)
        except (OSError, ValueError, KeyError, EOFError):
            depth = self._inner.nearness(image, detections)
        buffer = BytesIO()
        np.savez_compressed(buffer, depth=depth)
        write_whole(path, buffer.getvalue())
        return depth


DEPTHS: Registry[DepthEstimator] = Registry(
    "depth estimator",
    {
        "depth-anything": f"{__package__}.checkpoint_models:DepthAnything",
        "ground": f"{__name__}:GroundDepth",
    },
)


def open_depth(text: str, folder: Path | None = None) -> DepthEstimator:
    """The estimator that a spec names; its maps are kept in a folder where a model made them.

    Raises as `Registry.open`.
    """
    estimator = DEPTHS.open(text)
    # What stands where depends on what was found too, and costs nothing.
    return estimator if isinstance(estimator, GroundDepth) else CachedDepth(estimator, folder)
