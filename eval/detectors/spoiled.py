"""`spoiled`: the masks of another detector, spoiled on purpose, to see what a metric makes of them.

``spoiled:grounded-sam:?dropout=0.3`` drops a pixel of each mask with probability 0.3, ``jitter=20``
moves a mask by up to 20 pixels, ``opening=5`` opens it with a square of 11 x 11 pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import NonNegativeInt

from ...specs import Options, Share, Spec, Unit
from . import Detection, Detector, DetectorError, Mask, Request, mask_box, open_detector
from .cache import pixels_digest


class Spoiling(Options, extra="allow"):
    """Options of `spoiled`, applied in the order jitter, opening, dropout."""

    undeclared: ClassVar[str] = "options of the other detector"

    jitter: Annotated[NonNegativeInt, Unit("pixels")] = 0
    """Largest shift of a mask, horizontally and vertically. Parts that leave the image are lost."""
    opening: Annotated[NonNegativeInt, Unit("pixels")] = 0
    """Radius r of a square of side 2 r + 1. Parts of a mask that are thinner than this square
    vanish."""
    dropout: Share = 0
    """Probability that a pixel of a mask is dropped."""
    seed: NonNegativeInt = 0
    """Seed of shifts and dropped pixels."""


class SpoiledDetector:
    """A detector with masks that are spoiled by a known amount; with none, that detector."""

    argument: ClassVar[str] = "DETECTOR"
    options: ClassVar[type[Options]] = Spoiling

    def __init__(self, inner: Detector, spoiling: Spoiling) -> None:
        self.inner = inner
        self.spoiling = spoiling

    @classmethod
    def from_spec(cls, spec: Spec, options: Spoiling) -> SpoiledDetector:
        """Raises the errors of opening the other detector."""
        inner = replace(Spec.parse(spec.argument), options=options.rest)
        return cls(open_detector(str(inner)), options)

    @property
    def batch_size(self) -> int:
        return getattr(self.inner, "batch_size", 1)

    def identity(self) -> dict[str, str]:
        inner = {f"inner_{name}": value for name, value in self.inner.identity().items()}
        return {"kind": "spoiled", **inner, **self.spoiling.texts(changed=True)}

    def detect(self, requests: Sequence[Request]) -> list[list[Detection]]:
        """Returns the detections whose masks are not empty now, with the boxes of these masks.

        Raises DetectorError for a detection without a mask.
        """
        batches = self.inner.detect(requests)
        return [self._spoil(r, detections) for r, detections in zip(requests, batches, strict=True)]

    def _spoil(self, request: Request, detections: Sequence[Detection]) -> list[Detection]:
        spoiled = []
        for number, detection in enumerate(detections):
            if detection.mask is None:
                kind = self.inner.identity().get("kind", "the detector")
                raise DetectorError(
                    f"spoiled: {kind} finds boxes without masks",
                    "name a detector of masks, such as grounded-sam:",
                    code="unsupported",
                )
            # Drawn by image, thing and place among the detections, so that batches don't matter.
            image = request.digest or pixels_digest(request.image)
            key = f"spoiled/{self.spoiling.seed}/{image}/{detection.label}/{number}"
            digest = hashlib.sha256(key.encode()).digest()
            mask = spoiled_mask(detection.mask, self.spoiling, np.random.default_rng([*digest]))
            if mask is detection.mask:
                spoiled.append(detection)
            elif box := mask_box(mask):
                spoiled.append(replace(detection, box=box, mask=mask))
        return spoiled


def spoiled_mask(mask: Mask, spoiling: Spoiling, rng: np.random.Generator) -> Mask:
    """Returns a mask, shape (H, W), spoiled; the mask itself where nothing is to be done."""
    if spoiling.jitter:
        down, across = rng.integers(-spoiling.jitter, spoiling.jitter, 2, endpoint=True)
        mask = _moved(mask, int(down), int(across))
    if spoiling.opening:
        from scipy import ndimage

        side, outside = 2 * spoiling.opening + 1, {"mode": "constant", "cval": 0}
        eroded = ndimage.minimum_filter(mask, side, **outside)
        mask = np.asarray(ndimage.maximum_filter(eroded, side, **outside), dtype=bool)
    if spoiling.dropout:
        mask = mask & (rng.random(mask.shape) >= spoiling.dropout)
    return mask


def _moved(mask: Mask, down: int, across: int) -> Mask:
    """Returns a mask moved within its shape (H, W), without what leaves it."""
    moved = np.zeros_like(mask)
    rows, columns = np.nonzero(mask)
    rows, columns = rows + down, columns + across
    inside = (rows >= 0) & (rows < mask.shape[0]) & (columns >= 0) & (columns < mask.shape[1])
    moved[rows[inside], columns[inside]] = True
    return moved
