"""HRS-Bench: spatial relations by the edges of boxes (Bakr et al. 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .boxes import Convention, Relation, boxes, check_convention, check_relation
from .detections import MISSING, Measurement, Sighting


def relation_holds(
    a: ArrayLike, b: ArrayLike, relation: Relation, convention: Convention = "paper"
) -> NDArray[np.bool_]:
    """Whether boxes (..., 4) are placed as asked, shape (...).

    authors: left compares left edges, right compares right edges; above holds where the top OR the
        bottom edge is higher, below is its mirror, so both can hold at once. paper: both edges
        must agree, so above and below exclude each other (the paper states no rule for edges; this
        is our reading). Raises UsageError for an unknown relation or convention.
    """
    check_convention(convention)
    check_relation(relation)
    first, second = boxes(a), boxes(b)
    if relation == "left_of":
        return np.asarray(first[..., 0] < second[..., 0])
    if relation == "right_of":
        return np.asarray(first[..., 2] > second[..., 2])
    sign = 1 if relation == "above" else -1
    edges = sign * first[..., 1::2] < sign * second[..., 1::2]
    return np.asarray(edges.any(axis=-1) if convention == "authors" else edges.all(axis=-1))


def measure(sighting: Sighting, relation: Relation, convention: Convention) -> Measurement:
    """1 or 0, by the best box of each subject; a missing subject scores 0."""
    if not sighting.has_both:
        return MISSING
    held = bool(relation_holds(*sighting.boxes, relation, convention))
    return Measurement(held, float(held))
