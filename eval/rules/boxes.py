"""Boxes as arrays of shape (..., 4): left, top, right, bottom in pixels, y growing downward."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

Convention = Literal["paper", "authors"]
"""Which of the two counts where a paper and its authors' program differ."""

CONVENTIONS = ("paper", "authors")


def boxes(values: ArrayLike) -> Array:
    """Checked boxes. Raises ValueError for another shape, NaN, or a right end left of the left."""
    array = np.asarray(values, dtype=float)
    if array.ndim < 1 or array.shape[-1] != 4:
        raise ValueError(f"boxes of shape {array.shape}: the last axis holds x1, y1, x2, y2")
    if not np.isfinite(array).all():
        raise ValueError("a box is not finite")
    if (array[..., 2:] < array[..., :2]).any():
        raise ValueError("a box ends before it begins: write left, top, right, bottom")
    return array


def centres(values: Array) -> Array:
    """Middles of boxes, shape (..., 2)."""
    return (values[..., :2] + values[..., 2:]) / 2


def ious(a: Array, b: Array) -> Array:
    """Intersection over union of boxes that broadcast, shape (...); 0 where neither has area."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    shared = np.maximum(high - low, 0).prod(axis=-1)
    areas = [(one[..., 2:] - one[..., :2]).prod(axis=-1) for one in (a, b)]
    union = areas[0] + areas[1] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros(union.shape), where=union > 0))


def check_convention(convention: str) -> None:
    """Raises ValueError unless it is one of `CONVENTIONS`."""
    if convention not in CONVENTIONS:
        raise ValueError(f"no convention {convention!r}: choose from {', '.join(CONVENTIONS)}")
