"""Boxes and relations: one box as a named tuple, many as arrays of shape (..., 4).

A box is left, top, right, bottom; y grows downward. Units are pixels unless a caller says
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import UsageError
from ..stats.bootstrap import Array

Relation = Literal["left_of", "right_of", "above", "below"]
"""Position of A, seen from B."""
RELATIONS: tuple[Relation, ...] = ("left_of", "right_of", "above", "below")
SIDEWAYS = ("left_of", "right_of")
"""The relations along x; the others are along y."""
FORWARD = ("left_of", "above")
"""The relations in which A has the smaller coordinate."""
DIAGONALS = ("upper_left", "upper_right", "lower_left", "lower_right")
"""Relations along a diagonal of the image."""
DISTANCES = ("near", "far")
"""Relations of distance; both things may be exchanged."""
ENCLOSURES = ("inside", "surrounding")
"""Relations of a thing and what is around it."""
BETWEEN = "between"
"""Relation of a thing to two others."""
DepthRelation = Literal["in_front_of", "behind"]

Convention = Literal["paper", "authors"]
"""The source that applies if a paper and its authors' program differ."""
CONVENTIONS = ("paper", "authors")


def check_convention(convention: str) -> None:
    """Raises UsageError unless it is one of `CONVENTIONS`."""
    check_relation(convention, CONVENTIONS, "convention")


def check_relation(value: str, allowed: Sequence[str] = RELATIONS, noun: str = "relation") -> None:
    """Raises UsageError unless the relation is allowed."""
    if value not in allowed:
        raise UsageError(
            f"no {noun} {value!r}: choose from {', '.join(allowed)}", code="unknown-name"
        )


LEAST_ACROSS = 0.05
"""Horizontal distance of the centers, share of the width, below which nothing is left of anything.
"""
MOST_SHARED = 0.5
"""Shared area, share of the smaller box, from which two things are not apart."""


class Box(NamedTuple):
    """Left, top, right, bottom."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def area(self) -> float:
        return (self.x2 - self.x1) * (self.y2 - self.y1)

    @property
    def center(self) -> tuple[float, float]:
        return (self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2


class Size(NamedTuple):
    """Width and height of an image, pixels."""

    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """From ``WIDTHxHEIGHT``. Raises UsageError for any other text.

        >>> Size.parse("512x384")
        Size(width=512, height=384)
        """
        width, _, height = text.partition("x")
        if not (width.isdecimal() and height.isdecimal() and int(width) and int(height)):
            raise UsageError(
                f"size {text!r}: write WIDTHxHEIGHT in pixels, e.g. 512x512", code="bad-option"
            )
        return cls(int(width), int(height))


def intersection(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    width = max(0.0, min(a.x2, b.x2) - max(a.x1, b.x1))
    height = max(0.0, min(a.y2, b.y2) - max(a.y1, b.y1))
    return width * height


def iou(a: Box, b: Box) -> float:
    """Intersection over union, in [0, 1]; 0 for two boxes without area."""
    shared = intersection(a, b)
    union = a.area + b.area - shared
    return shared / union if union > 0 else 0.0


def is_beside(a: Box, b: Box) -> bool:
    """Whether two boxes, shares of an image's width and height, lie rather side by side than above
    each other, their centers `LEAST_ACROSS` apart or more."""
    across, down = (abs(a.center[axis] - b.center[axis]) for axis in (0, 1))
    return across >= LEAST_ACROSS and across >= down


def is_apart(a: Box, b: Box) -> bool:
    """Whether two boxes share less than `MOST_SHARED` of the smaller one."""
    smaller = min(a.area, b.area)
    return not smaller or intersection(a, b) / smaller < MOST_SHARED


def offset(a: Box, b: Box, relation: Relation, size: Size) -> float:
    """Signed distance of the centers as a share of the side: negative where a is left or above."""
    axis = 0 if relation in SIDEWAYS else 1
    return (a.center[axis] - b.center[axis]) / size[axis]


def boxes(values: ArrayLike) -> Array:
    """Checked boxes, shape (..., 4).

    Raises ValueError for another shape, a number that is not finite, and a right or bottom edge
    before the left or top one.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim < 1 or array.shape[-1] != 4:
        raise ValueError(f"boxes of shape {array.shape}: the last axis holds x1, y1, x2, y2")
    if not np.isfinite(array).all():
        raise ValueError("a box is not finite")
    if (array[..., 2:] < array[..., :2]).any():
        raise ValueError("a box ends before it begins: write left, top, right, bottom")
    return array


def centers(values: Array) -> Array:
    """Middles of boxes (..., 4), shape (..., 2)."""
    return (values[..., :2] + values[..., 2:]) / 2


def ious(a: Array, b: Array) -> Array:
    """Intersection over union of boxes that broadcast, shape (...); 0 where neither has area."""
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    shared = np.maximum(high - low, 0).prod(axis=-1)
    areas = [(corners[..., 2:] - corners[..., :2]).prod(axis=-1) for corners in (a, b)]
    union = areas[0] + areas[1] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros(union.shape), where=union > 0))
