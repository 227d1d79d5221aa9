"""GenEval: the relations that hold between two boxes, given their sizes (Ghosh et al. 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .boxes import RELATIONS, Convention, Relation, boxes, centers
from .detections import MISSING, Measurement, Sighting

SLACK = 0.1
"""Share of the two sizes by which centers must differ."""
_LEAST = 1e-3


def relations(a: ArrayLike, b: ArrayLike) -> set[Relation]:
    """Every relation that "A is … B" fulfills, for one box each, shape (4,).

    The offset of the centers, less a tenth of the summed sizes on each axis, is divided by the
    length of the whole offset and must exceed 0.5; a diagonal offset fulfills two relations or
    none. Paper and program agree.
    """
    first, second = boxes(a), boxes(b)
    offset = centers(first) - centers(second)
    sizes = (first[2:] - first[:2]) + (second[2:] - second[:2])
    revised = np.maximum(abs(offset) - SLACK * sizes, 0) * np.sign(offset)
    if (abs(revised) < _LEAST).all():
        return set()
    dx, dy = revised / np.linalg.norm(offset)
    held = (dx < -0.5, dx > 0.5, dy < -0.5, dy > 0.5)
    return {relation for relation, holds in zip(RELATIONS, held, strict=True) if holds}


def measure(sighting: Sighting, relation: Relation, convention: Convention) -> Measurement:
    """1 or 0, by the best box of each subject; a missing subject scores 0."""
    if not sighting.has_both:
        return MISSING
    held = relation in relations(*sighting.boxes)
    return Measurement(held, float(held))
