"""PSE: how surely a random pixel of A lies on the asked side of a random pixel of B.

With X, Y the places of the two pixels along a direction, PoS = P(X > Y) and
PSE = max(0, P(X > Y) - P(X < Y)), in [0, 1] (Eq. 2-5). That is 2 AUC - 1 of Mann and Whitney's U,
clipped at 0. Masks are weights: 0/1, or any non-negative map such as attention. A missing object
(an empty mask) scores 0 and stays in the mean, as published.

Where paper and program differ: Eq. 2 leaves ties out of PoS and Eq. 3 and the program count them
fully; they cancel in PSE. In depth the program loses the farthest pixels (`pse_3d`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..stats.bootstrap import Array
from .boxes import (
    BETWEEN,
    DIAGONALS,
    DISTANCES,
    ENCLOSURES,
    FORWARD,
    RELATIONS,
    SIDEWAYS,
    Convention,
    DepthRelation,
    Relation,
    check_convention,
    check_relation,
    intersection,
)
from .detections import MISSING, Measurement, Sighting
from .pos import VECTORS, Axis, between, far, inside, projections, pse_vector, share_of_pairs

THRESHOLD = {"paper": 0.5, "authors": 0.01}
"""Least PSE that counts as right: in the paper, and in the authors' `calculate_pse.py`."""
PLANE = (*RELATIONS, *DIAGONALS, *DISTANCES, *ENCLOSURES, BETWEEN)
"""The relations in the plane that are measured."""
DEPTH_BINS = 128
"""Steps into which the joint depth range is cut."""


def _advantage(p: Array, q: Array) -> Array:
    """P(X > Y) - P(X < Y) of weights (..., n), in [-1, 1]; 0 where either is empty."""
    if p.shape[-1:] != q.shape[-1:]:
        raise ValueError(f"weights over {p.shape[-1]} and {q.shape[-1]} places do not fit")
    below = np.cumsum(q, axis=-1)
    # What is above i is all less what is below i and what is at i.
    signed = (p * (2 * below - q - below[..., -1:])).sum(axis=-1)
    return np.clip(share_of_pairs(signed, p, q), -1.0, 1.0)


def pse(a: ArrayLike, b: ArrayLike, relation: Relation) -> Array:
    """PSE of "A is `relation` of B" for masks of shape (..., H, W); shape (...), in [0, 1].

    O(pixels). Raises UsageError for an unknown relation, ValueError for masks of different size.
    """
    check_relation(relation)
    axis: Axis = "x" if relation in SIDEWAYS else "y"
    signed = _advantage(projections(a, axis), projections(b, axis))
    return np.maximum(0.0, -signed if relation in FORWARD else signed)


def pse_binary(scores: ArrayLike, convention: Convention = "paper") -> NDArray[np.bool_]:
    """Whether scores count as right: at least 0.5 (paper), or above 0.01 (the authors' program)."""
    check_convention(convention)
    values, limit = np.asarray(scores, dtype=float), THRESHOLD[convention]
    return values >= limit if convention == "paper" else values > limit


def pse_3d(
    a: ArrayLike,
    b: ArrayLike,
    nearness: ArrayLike,
    relation: DepthRelation,
    convention: Convention = "paper",
) -> Array:
    """PSE in depth for masks and maps of shape (..., H, W); shape (...), in [0, 1].

    nearness: larger is nearer, as Depth Anything's inverse depth. The joint range over both
        objects is cut into `DEPTH_BINS` steps. Where it is a single value, nobody is in front: 0.

    The authors' program takes the background for depth 0 and so loses pixels of true depth 0 and
    those at the joint minimum: `authors` does as it does. Raises ValueError for non-finite depth.
    """
    check_convention(convention)
    check_relation(relation, ("in_front_of", "behind"))
    masks = [np.asarray(mask).astype(float) for mask in (a, b)]
    depth = np.asarray(nearness, dtype=float)
    if not np.isfinite(depth).all():
        raise ValueError("the depth map is not finite")
    shape = np.broadcast_shapes(masks[0].shape, masks[1].shape, depth.shape)
    flat = [np.broadcast_to(m, shape).reshape(-1, shape[-2] * shape[-1]) for m in (*masks, depth)]
    signed = [_depth_advantage(p, q, d, convention) for p, q, d in zip(*flat, strict=True)]
    advantage: Array = np.array(signed, dtype=float).reshape(shape[:-2])
    return np.maximum(0.0, advantage if relation == "in_front_of" else -advantage)


def _depth_advantage(a: Array, b: Array, depth: Array, convention: str) -> float:
    covered = (a > 0) | (b > 0)
    if convention == "authors":
        covered &= depth > 0
    if not covered.any():
        return 0.0
    low, high = float(depth[covered].min()), float(depth[covered].max())
    if high <= low:
        return 0.0
    step = (depth[covered] - low) / (high - low) * DEPTH_BINS
    if convention == "authors":
        # np.digitize(right=True) - 1: a bin excludes its lower edge, so the minimum is in none.
        index = np.ceil(step).astype(np.intp) - 1
        in_bins = index >= 0
    else:
        index = np.minimum(step.astype(np.intp), DEPTH_BINS - 1)
        in_bins = np.ones(len(index), bool)
    p, q = (
        np.bincount(index[in_bins], weights[covered][in_bins], DEPTH_BINS).astype(float)
        for weights in (a, b)
    )
    return float(_advantage(p, q))


def measure(
    sighting: Sighting,
    relation: str,
    convention: Convention,
) -> Measurement:
    """PSE as the number, PSE(.5) as the verdict; a missing subject scores 0, as published.

    relation: of `PLANE`, of depth, or `hidden_by`.
    """
    if not sighting.has_both:
        return MISSING
    number = _measure_pse(sighting, relation, convention)
    return Measurement(bool(pse_binary(number, convention)), number)


def _measure_pse(sighting: Sighting, relation: str, convention: Convention) -> float:
    """In the plane all instances of a subject count together. Near is 1 less `far`. In depth
    `authors` takes the best one alone, as their program does. Hidden by: behind it and the boxes
    touch (the paper states no rule for it; this is our reading)."""
    if relation in PLANE:
        a, b = (sighting.mask(detections) for detections in (sighting.a, sighting.b))
        if relation == BETWEEN:
            return between(a, b, sighting.mask(sighting.c))
        if relation in RELATIONS:
            return float(pse(a, b, relation))
        if relation in DIAGONALS:
            return float(pse_vector(a, b, VECTORS[relation]))
        if relation in DISTANCES:
            apart = float(far(a, b))
            return apart if relation == "far" else 1 - apart
        return float(inside(a, b) if relation == "inside" else inside(b, a))
    if relation == "hidden_by" and not intersection(*sighting.boxes):
        return 0.0
    last = 1 if convention == "authors" else None
    a, b = (sighting.mask(detections[:last]) for detections in (sighting.a, sighting.b))
    direction: DepthRelation = "in_front_of" if relation == "in_front_of" else "behind"
    return float(pse_3d(a, b, sighting.nearness, direction, convention))
