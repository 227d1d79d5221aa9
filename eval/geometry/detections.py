"""Detections, the two subjects of a relation in one image, and a metric's answer about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from .boxes import Box, Size

if TYPE_CHECKING:
    from PIL.Image import Image

Mask = NDArray[np.bool_]
"""Shape (H, W)."""
Nearness = NDArray[np.float32]
"""Depth map, shape (H, W), larger is nearer; without a unit, comparable within an image."""


@dataclass(frozen=True, eq=False)
class Detection:
    """A thing that a detector found in an image."""

    label: str
    """The query that it answers."""
    score: float
    """In [0, 1]."""
    box: Box
    """Pixels, within the image."""
    mask: Mask | None = None
    """Shape (H, W); None if the detector has no masks."""

    def to_row(self) -> dict[str, Any]:
        """The detection as published files hold it, without the mask."""
        return {"label": self.label, "score": self.score, "box_xyxy": list(self.box)}


@dataclass(frozen=True)
class Sighting:
    """The detections of two subjects in one image."""

    image: Image
    """RGB."""
    a: Sequence[Detection]
    """Detections of the first subject, best first."""
    b: Sequence[Detection]
    """Detections of the second subject, best first."""
    c: Sequence[Detection] = ()
    """Detections of the third thing, for a subject between two; best first."""
    estimate_depth: Callable[[Image, Sequence[Detection]], Nearness] | None = None
    """Depth map of an image with these detections, for relations in depth."""
    names: tuple[str, ...] = ("", "")
    """Names of the subjects, of two or three."""
    case: str = ""
    """Id of the case."""
    digest: str = ""
    """SHA-256 of the image's file; empty if unknown."""

    @property
    def has_both(self) -> bool:
        """Whether all subjects were found."""
        return bool(self.a and self.b and (self.c or len(self.names) < 3))

    @property
    def boxes(self) -> tuple[Box, Box]:
        """Boxes of the best detection of the first two subjects."""
        return self.a[0].box, self.b[0].box

    def swapped(self) -> Sighting:
        """The same with the subjects exchanged."""
        return replace(self, a=self.b, b=self.a, names=self.names[::-1])

    @cached_property
    def nearness(self) -> Nearness:
        """Depth map (H, W), larger is nearer. Raises UsageError without an estimator."""
        if self.estimate_depth is None:
            problem = "a relation in depth needs an estimator"
            raise UsageError(problem, "add rule.depth=SPEC", code="missing-option")
        return self.estimate_depth(self.image, [*self.a, *self.b])

    def mask(self, detections: Sequence[Detection]) -> Mask:
        """Union of the detections' masks, shape (H, W); one without a mask counts as its box."""
        size = Size(*self.image.size)
        masks = [_box_mask(d.box, size) if d.mask is None else d.mask for d in detections]
        return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)


def _box_mask(box: Box, size: Size) -> Mask:
    mask = np.zeros((size.height, size.width), bool)
    x1, y1, x2, y2 = (round(side) for side in box)
    mask[y1 : max(y2, y1 + 1), x1 : max(x2, x1 + 1)] = True
    return mask


class Measurement(NamedTuple):
    """A metric's answer about one stated relation."""

    holds: bool | None
    """Whether the relation holds; None if the metric abstains."""
    number: float
    """Degree to which it holds, in [0, 1]."""
    why: str = ""
    """The reason in a few words, if the number does not say it."""


MISSING = Measurement(None, 0.0, "missing")
"""Measurement of an image in which a subject was not found."""
