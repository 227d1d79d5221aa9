"""HRS-Bench: spatial relations by the edges of boxes (Bakr et al. 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .boxes import Convention, boxes, check_convention
from .pse import RELATIONS, Relation


def relation_holds(
    a: ArrayLike, b: ArrayLike, relation: Relation, convention: Convention = "paper"
) -> NDArray[np.bool_]:
    """Whether boxes (..., 4) stand as asked, shape (...).

    authors: left by left edges, right by right edges; above where the top OR the bottom edge is
    higher, below the mirror of it, so that both may hold. paper: by both edges, so that they
        exclude each other (the paper prints no rule for edges; this is our reading).
    """
    check_convention(convention)
    if relation not in RELATIONS:
        raise ValueError(f"no relation {relation!r}: choose from {', '.join(RELATIONS)}")
    first, second = boxes(a), boxes(b)
    if relation == "left_of":
        return np.asarray(first[..., 0] < second[..., 0])
    if relation == "right_of":
        return np.asarray(first[..., 2] > second[..., 2])
    sign = 1 if relation == "above" else -1
    edges = sign * first[..., 1::2] < sign * second[..., 1::2]
    return np.asarray(edges.any(axis=-1) if convention == "authors" else edges.all(axis=-1))
