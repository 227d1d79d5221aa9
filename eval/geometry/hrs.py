"""HRS-Bench: spatial relations by the edges of boxes (Bakr et al. 2023)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .boxes import BETWEEN, RELATIONS, Convention, Relation, boxes, check_convention, check_relation
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


def between_holds(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, convention: Convention = "paper"
) -> NDArray[np.bool_]:
    """Whether boxes (..., 4) of a lie between those of b and c, shape (...).

    As in the authors' program: from side to side or from top to bottom, a has one relation to b and
    the reverse to c. Raises UsageError for an unknown convention.
    """
    sides = {
        relation: [relation_holds(a, other, relation, convention) for other in (b, c)]
        for relation in RELATIONS
    }
    pairs: tuple[tuple[Relation, Relation], ...] = (("left_of", "right_of"), ("above", "below"))
    across, along = (
        sides[first][0] & sides[second][1] | sides[second][0] & sides[first][1]
        for first, second in pairs
    )
    return np.asarray(across | along)


def measure(sighting: Sighting, relation: Any, convention: Convention) -> Measurement:
    """1 or 0, by the best box of each subject; a missing subject scores 0.

    relation: of `RELATIONS`, or `between`.
    """
    if not sighting.has_both:
        return MISSING
    if relation == BETWEEN:
        held = bool(between_holds(*sighting.boxes, sighting.c[0].box, convention))
        return Measurement(held, float(held))
    held = bool(relation_holds(*sighting.boxes, relation, convention))
    return Measurement(held, float(held))
