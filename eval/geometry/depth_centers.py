"""Which of two objects is nearer, by the centers of their masks in depth (PSE, Table 7).

The center of a mask in depth is the mean of the depth map over its pixels. The paper names depth
centers, with a largest IoU of 0.2 and without one; that the IoU is of the boxes, as
T2I-CompBench's, and that an image beyond it is wrong is our reading.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .boxes import Convention, iou
from .detections import MISSING, Measurement, Sighting

LARGEST_IOU = 0.2
"""IoU of two boxes beyond which objects are not apart."""


def depth_center(mask: ArrayLike, nearness: ArrayLike) -> float:
    """Mean of a depth map (H, W), larger nearer, over a mask (H, W) that is not empty.

    Raises ValueError for an empty mask, unequal sizes or depth that is not finite.
    """
    inside, depth = np.asarray(mask, dtype=bool), np.asarray(nearness, dtype=float)
    if inside.shape != depth.shape or not inside.any() or not np.isfinite(depth).all():
        raise ValueError(
            f"a mask {inside.shape} and a depth map {depth.shape}: a mask with pixels and a finite "
            "map of its size are needed"
        )
    return float(depth[inside].mean())


def measure(sighting: Sighting, relation: str, convention: Convention) -> Measurement:
    """1 or 0, by the best detection of each subject; equal centers hold for no relation.

    hidden_by: as behind. A missing subject, or a mask without pixels, is missing.
    """
    if not sighting.has_both:
        return MISSING
    masks = [sighting.mask(group[:1]) for group in (sighting.a, sighting.b)]
    if not all(mask.any() for mask in masks):
        return MISSING
    first, second = (depth_center(mask, sighting.nearness) for mask in masks)
    held = first > second if relation == "in_front_of" else first < second
    return Measurement(held, float(held), "" if first != second else "equal depth")


def measure_apart(sighting: Sighting, relation: str, convention: Convention) -> Measurement:
    """As `measure`, but boxes of more than `LARGEST_IOU` are wrong."""
    measured = measure(sighting, relation, convention)
    if measured.holds is None or (overlap := iou(*sighting.boxes)) <= LARGEST_IOU:
        return measured
    return Measurement(False, 0.0, f"IoU {overlap:.3f}")
