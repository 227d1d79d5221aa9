"""PSE: how surely a random pixel of A lies on the asked side of a random pixel of B.

With X, Y the places of the two pixels along a direction, PoS = P(X > Y) and
PSE = max(0, P(X > Y) - P(X < Y)), in [0, 1] (Eq. 2-5). That is 2 AUC - 1 of Mann and Whitney's U,
clipped at 0. Masks are weights: 0/1, or any non-negative map such as attention. A missing object
(an empty mask) scores 0 and stays in the mean, as published.

Where paper and program differ: Eq. 2 leaves ties out of PoS and Eq. 3 and the program count them
fully; they cancel in PSE. In depth the program loses the farthest pixels (`pse_3d`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..stats.bootstrap import Array
from .boxes import (
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

if TYPE_CHECKING:
    from torch import Tensor

Axis = Literal["x", "y"]

THRESHOLD = {"paper": 0.5, "authors": 0.01}
"""Least PSE that counts as right: in the paper, and in the authors' `calculate_pse.py`."""
DEPTH_BINS = 128
"""Steps into which the joint depth range is cut."""


def projections(masks: ArrayLike, axis: Axis) -> Array:
    """Pixel weights by column (x) or row (y): masks (..., H, W) -> (..., W) or (..., H).

    Raises ValueError for fewer than two axes, and for negative or non-finite weights.
    """
    array = np.asarray(masks)
    if array.ndim < 2:
        raise ValueError(f"a mask of shape {array.shape} has no rows and columns")
    along = -2 if axis == "x" else -1
    if array.dtype == np.bool_ or array.dtype == np.uint8:
        # Sums of 8-bit values in 16 bits are four times as fast as NumPy's default of 64.
        length, most = array.shape[along], 1 if array.dtype == np.bool_ else 255
        counter = np.uint16 if length * most < 2**16 else np.uint32
        return np.asarray(array.view(np.uint8).sum(axis=along, dtype=counter), dtype=float)
    sums = np.asarray(array.sum(axis=along, dtype=float))
    if not np.isfinite(sums).all() or (array < 0).any():
        raise ValueError("a mask holds negative or non-finite weights")
    return sums


def _share(total: Array, p: Array, q: Array) -> Array:
    """A sum over pairs of weights as a share of all pairs; 0 where there are none.

    Divided last: sums of whole pixels are exact, so that what is wholly apart scores exactly 1.
    """
    sums = p.sum(axis=-1), q.sum(axis=-1)
    some = (sums[0] > 0) & (sums[1] > 0)
    first, second = (np.where(some, total_weight, 1.0) for total_weight in sums)
    return np.asarray(np.where(some, total / first / second, 0.0))


def _advantage(p: Array, q: Array) -> Array:
    """P(X > Y) - P(X < Y) of weights (..., n), in [-1, 1]; 0 where either is empty."""
    if p.shape[-1:] != q.shape[-1:]:
        raise ValueError(f"weights over {p.shape[-1]} and {q.shape[-1]} places do not fit")
    below = np.cumsum(q, axis=-1)
    # What is above i is all less what is below i and what is at i.
    signed = (p * (2 * below - q - below[..., -1:])).sum(axis=-1)
    return np.clip(_share(signed, p, q), -1.0, 1.0)


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
    relation: Relation | DepthRelation | Literal["hidden_by"],
    convention: Convention,
) -> Measurement:
    """PSE as the number, PSE(.5) as the verdict; a missing subject scores 0, as published."""
    if not sighting.has_both:
        return MISSING
    number = _measure_pse(sighting, relation, convention)
    return Measurement(bool(pse_binary(number, convention)), number)


def _measure_pse(sighting: Sighting, relation: str, convention: Convention) -> float:
    """In the plane all instances of a subject count together. In depth `authors` takes the best one
    alone, as their program does. Hidden by: behind it and the boxes touch (the paper states no rule
    for it; this is our reading)."""
    if relation in RELATIONS:
        return float(pse(sighting.mask(sighting.a), sighting.mask(sighting.b), relation))
    if relation == "hidden_by" and not intersection(*sighting.boxes):
        return 0.0
    last = 1 if convention == "authors" else None
    a, b = (sighting.mask(detections[:last]) for detections in (sighting.a, sighting.b))
    direction: DepthRelation = "in_front_of" if relation == "in_front_of" else "behind"
    return float(pse_3d(a, b, sighting.nearness, direction, convention))


def _pos_tensor(a: Tensor, b: Tensor) -> Tensor:
    """P(X >= Y) of non-negative weights (..., n); 0, not NaN, where one is empty."""
    p, q = (weights / weights.sum(-1, keepdim=True).clamp(min=1e-12) for weights in (a, b))
    return (p * q.cumsum(-1)).sum(-1)


def _sides(a: Tensor, b: Tensor, relation: Relation) -> tuple[Tensor, Tensor]:
    """PoS the asked way and the wrong way round, ties counted, of maps (..., H, W)."""
    check_relation(relation)
    axis = -2 if relation in SIDEWAYS else -1
    p, q = a.sum(axis), b.sum(axis)
    first, second = (p, q) if relation in FORWARD else (q, p)
    return _pos_tensor(second, first), _pos_tensor(first, second)


def pos_tensor(a: Tensor, b: Tensor, relation: Relation) -> Tensor:
    """PoS of "A is `relation` of B" of maps (..., H, W), ties counted: shape (...), in [0, 1]."""
    return _sides(a, b, relation)[0]


def pse_tensor(a: Tensor, b: Tensor, relation: Relation) -> Tensor:
    """PSE of maps (..., H, W), shape (...), with gradients; equals `pse`."""
    right, wrong = _sides(a, b, relation)
    return (right - wrong).clamp(min=0)


def guidance_loss(
    a: Tensor, b: Tensor, relation: Relation, convention: Convention = "paper"
) -> Tensor:
    """The loss that PSG minimizes, for attention maps (..., H, W): shape (...).

    paper: -PoS² of the asked order; authors: PoS² of the wrong order. Not the same gradient.
    """
    check_convention(convention)
    right, wrong = _sides(a, b, relation)
    return -right.square() if convention == "paper" else wrong.square()
