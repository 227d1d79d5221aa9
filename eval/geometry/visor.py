"""VISOR: does the relation of two objects hold? (Gokhale et al. 2022)

What follows from it for many images (OA, cond, uncond, VISOR 1 to 4) are scores of a suite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .boxes import FORWARD, SIDEWAYS, Convention, Relation, boxes, centers, check_relation
from .detections import MISSING, Measurement, Sighting


def relation_holds(a: ArrayLike, b: ArrayLike, relation: Relation) -> bool:
    """Whether any instance of A (n, 4) is on the asked side of any of B (m, 4), by box centers.

    Strict; False where either has no instance. Raises UsageError for an unknown relation.
    """
    check_relation(relation)
    first, second = (boxes(np.asarray(values, float).reshape(-1, 4)) for values in (a, b))
    axis = 0 if relation in SIDEWAYS else 1
    offsets = centers(first)[:, None, axis] - centers(second)[None, :, axis]
    return bool(((offsets < 0) if relation in FORWARD else (offsets > 0)).any())


def measure(sighting: Sighting, relation: Relation, convention: Convention) -> Measurement:
    """1 or 0, by all boxes of each subject; without both, the image lacks object accuracy."""
    if not sighting.has_both:
        return MISSING
    a, b = ([d.box for d in detections] for detections in (sighting.a, sighting.b))
    held = relation_holds(a, b, relation)
    return Measurement(held, float(held))
