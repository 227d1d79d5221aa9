"""PoS: how likely a random pixel of A lies further along a vector than one of B, and what follows
from it: any direction, distance, between, inside (PSE paper, Eq. 1-4, 8 and 9).

With X, Y the places of the two pixels along the vector, PoS = P(X > Y + gap). Masks are weights, as
in `pse`. All of it is exact: equal to a count over pairs (or triples) of pixels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..stats.bootstrap import Array
from .boxes import Convention, check_convention

Axis = Literal["x", "y"]
Vector = tuple[float, float]
"""Right and down, in pixels; its length does not matter."""
VECTORS: dict[str, Vector] = {
    "left_of": (-1, 0),
    "right_of": (1, 0),
    "above": (0, -1),
    "below": (0, 1),
    "upper_left": (-1, -1),
    "upper_right": (1, -1),
    "lower_left": (-1, 1),
    "lower_right": (1, 1),
}
"""Relation -> the vector along which A lies further than B."""
GAP = 5 / 16
"""Distance from which pixels are far apart, share of the longer side: 5 positions of the paper's
maps of 16 x 16."""


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


def share_of_pairs(total: Array, p: Array, q: Array) -> Array:
    """A sum over pairs of weights as a share of all pairs; 0 where there are none.

    Divided last: sums of whole pixels are exact, so that what is wholly apart scores exactly 1.
    """
    sums = p.sum(axis=-1), q.sum(axis=-1)
    some = (sums[0] > 0) & (sums[1] > 0)
    first, second = (np.where(some, total_weight, 1.0) for total_weight in sums)
    return np.asarray(np.where(some, total / first / second, 0.0))


def pos(
    a: ArrayLike, b: ArrayLike, vector: Vector, gap: float = 0, convention: Convention = "paper"
) -> Array:
    """P(X > Y + gap) along a vector for masks of shape (..., H, W); shape (...), in [0, 1].

    gap: pixels. paper leaves ties out (Eq. 2); authors counts them, as their program. 0 where a
    mask is empty. Raises ValueError for a vector without length, a negative gap, negative weights,
    and masks of different size.
    """
    check_convention(convention)
    if gap < 0:
        raise ValueError(f"gap {gap:g} is negative")
    p, q, places = _along(a, b, vector)
    return share_of_pairs((p * _below(q, places, gap, convention == "authors")).sum(-1), p, q)


def pse_vector(a: ArrayLike, b: ArrayLike, vector: Vector) -> Array:
    """PSE of "A lies towards the vector from B": PoS along it less PoS against it, at least 0."""
    reverse = (-vector[0], -vector[1])
    return np.maximum(0.0, pos(a, b, vector) - pos(a, b, reverse))


def separation(a: ArrayLike, b: ArrayLike, gap: float) -> Array:
    """PoS of distance: P(X > Y + gap) summed over the four sides (Eq. 8, 9); in [0, 2].

    An axis adds at most 1; things that are far apart both ways have 2. Falls as the gap grows.
    """
    total: Array = sum((pos(a, b, VECTORS[side], gap) for side in _SIDES), np.zeros(()))
    return total


_SIDES = ("left_of", "right_of", "above", "below")


def far(a: ArrayLike, b: ArrayLike, gap: float | None = None) -> Array:
    """How surely two random pixels are more than `gap` apart (by default `GAP` of the longer side):
    `separation`, at most 1. Shape (...)."""
    height, width = np.asarray(a).shape[-2:]
    return np.minimum(1.0, separation(a, b, GAP * max(height, width) if gap is None else gap))


def between(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> float:
    """How surely a random pixel of A lies between random pixels of B and C, in [0, 1].

    masks of shape (H, W). Along the vector from B's center to C's, the probability of the order
    B, A, C less that of C, A, B, at least 0; 0 where a mask is empty or the centers are the same.
    """
    first, last = _center(b), _center(c)
    if first is None or last is None or first == last:
        return 0.0
    vector = (last[0] - first[0], last[1] - first[1])
    p, q, places = _along(a, b, vector)
    _, r, _ = _along(a, c, vector)
    if not p.sum():
        return 0.0
    b_below, c_below = (_below(w, places, 0, False) / w.sum() for w in (q, r))
    b_above, c_above = (1 - _below(w, places, 0, True) / w.sum() for w in (q, r))
    signed = float((p * (b_below * c_above - c_below * b_above)).sum() / p.sum())
    return max(0.0, signed)


def inside(a: ArrayLike, b: ArrayLike) -> Array:
    """How surely A lies inside B, for masks of shape (..., H, W); shape (...), in [0, 1].

    On each axis, the probability that a pixel of A lies between two pixels of B less that of the
    reverse, as a share of the most there can be; the smaller axis counts. So it is 0 for things
    beside each other and for equal masks, and `inside(b, a)` is how surely A surrounds B.
    """
    signed = []
    for vector in (VECTORS["right_of"], VECTORS["below"]):
        p, q, places = _along(a, b, vector)
        signed.append(2 * (_flanked(p, q, places) - _flanked(q, p, places)))
    return np.maximum(0.0, np.minimum(*signed))


def _flanked(p: Array, q: Array, places: Array) -> Array:
    """Probability that a place of p lies between two of q, in [0, 1/2]."""
    total = q.sum(-1, keepdims=True)
    share = np.divide(q, total, out=np.zeros_like(q), where=total > 0)
    below = _below(share, places, 0, False)
    above = share.sum(-1, keepdims=True) - _below(share, places, 0, True)
    return share_of_pairs((p * 2 * below * above).sum(-1), p, share)


def _below(weights: Array, places: Array, gap: float, ties: bool) -> Array:
    """For every place, the weight that lies more than `gap` before it, or as much with `ties`."""
    sums = np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, -1)], -1)
    return np.asarray(sums[..., places_before(places, gap, ties)])


def places_before(places: Array, gap: float, ties: bool = False) -> NDArray[np.intp]:
    """For every place, how many lie more than `gap` before it; with `ties`, also just as far."""
    side = "right" if ties else "left"
    return np.searchsorted(places, np.round(places - gap, 9), side=side)  # type: ignore[call-overload,no-any-return]


def _along(a: ArrayLike, b: ArrayLike, vector: Vector) -> tuple[Array, Array, Array]:
    """Weights of two masks by place along a vector, shape (..., n), and the places in pixels."""
    first, second = np.asarray(a), np.asarray(b)
    if first.shape[-2:] != second.shape[-2:]:
        raise ValueError(f"masks of {first.shape[-2:]} and {second.shape[-2:]} pixels do not fit")
    if vector[0] and vector[1]:
        for mask in (first, second):
            projections(mask, "x")  # refuses bad weights
        index, places = places_along(*first.shape[-2:], vector)
        weights = [_by_place(mask, index, len(places)) for mask in (first, second)]
        return weights[0], weights[1], places
    if not any(vector):
        raise ValueError(f"the vector {vector} has no length")
    backward = min(vector) < 0
    projected = [projections(mask, "x" if vector[0] else "y") for mask in (first, second)]
    x, y = (weights[..., ::-1] if backward else weights for weights in projected)
    return x, y, np.arange(x.shape[-1], dtype=float)


@lru_cache(maxsize=8)
def places_along(height: int, width: int, vector: Vector) -> tuple[NDArray[np.intp], Array]:
    """Number of each pixel's place along a vector, shape (height * width,), and the places, sorted,
    in pixels. Raises ValueError for a vector without length."""
    length = float(np.hypot(*vector))
    if not 0 < length < np.inf:
        raise ValueError(f"the vector {vector} has no length")
    x, y = vector
    # Rounded, so that places that are equal differ in no last bit.
    place = np.round(np.add.outer(np.arange(height) * y, np.arange(width) * x) / length, 9)
    places, index = np.unique(place, return_inverse=True)
    return index.ravel(), places


def _by_place(mask: NDArray[np.generic], index: NDArray[np.intp], count: int) -> Array:
    flat = mask.reshape(-1, index.size).astype(float)
    rows = [np.bincount(index, weights=row, minlength=count) for row in flat]
    return np.array(rows, dtype=float).reshape(*mask.shape[:-2], count)


def _center(mask: ArrayLike) -> Vector | None:
    """Mean place of a mask's pixels, right and down; None for an empty mask."""
    columns, rows = projections(mask, "x"), projections(mask, "y")
    if not columns.sum():
        return None
    return tuple(float(np.average(np.arange(len(w)), weights=w)) for w in (columns, rows))  # type: ignore[return-value]
