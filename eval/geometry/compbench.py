"""T2I-CompBench(++): spatial scores from boxes, and from boxes with depth (Huang et al. 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..stats.bootstrap import Array
from .boxes import SIDEWAYS, Convention, boxes, centers, check_convention, check_relation, ious
from .detections import Measurement, Sighting

CompBenchRelation = Literal["left_of", "right_of", "above", "below", "near", "on_top_of"]
COMPBENCH_RELATIONS = ("left_of", "right_of", "above", "below", "near", "on_top_of")
CompBenchDepthRelation = Literal["in_front_of", "behind", "hidden_by"]
COMPBENCH_DEPTH_RELATIONS = ("in_front_of", "behind", "hidden_by")
NEAR = 150.0
"""Pixels, in images 512 wide as in the paper, within which objects are near."""
OVERLAP = 0.1
"""IoU above which two boxes beside each other lose score."""
DEPTH_OVERLAP = 0.5
"""IoU from which one object before another scores fully."""
HOLDS = 0.5
"""Least score of a relation that holds: below it the program writes 0."""


def position(
    a: ArrayLike, b: ArrayLike, relation: CompBenchRelation, convention: Convention = "paper"
) -> Array:
    """Score of the placement of boxes (..., 4), in [0, 1], shape (...).

    The offset must point the asked way and be longer along its axis than across it; overlap lowers
    the score. on_top_of: as above (paper); 0 in the authors' program, which has no branch for it.
    Raises UsageError for an unknown relation or convention.
    """
    check_convention(convention)
    check_relation(relation, COMPBENCH_RELATIONS)
    first, second = boxes(a), boxes(b)
    delta = centers(second) - centers(first)
    dx, dy = delta[..., 0], delta[..., 1]
    if relation == "near":
        distance = np.maximum(abs(dx), abs(dy))
        close = np.minimum(abs(dx), abs(dy)) < NEAR
        return np.where(close, 1.0, NEAR / np.maximum(distance, NEAR))
    if relation == "on_top_of" and convention == "authors":
        return np.zeros(dx.shape)
    along, across = (dx, dy) if relation in SIDEWAYS else (dy, dx)
    forward = -along if relation in ("right_of", "below") else along
    overlap = ious(first, second)
    score = np.where(overlap < OVERLAP, 1.0, OVERLAP / np.maximum(overlap, OVERLAP))
    return np.where((forward > 0) & (forward > abs(across)), score, 0.0)


def score_2d(score_a: ArrayLike, score_b: ArrayLike, placed: ArrayLike) -> Array:
    """A quarter of each detection score (0 for a missing object) plus half the position.

    Totals below 0.5 become 0. All arrays have shape (...); the result is in [0, 1].
    """
    total = score_3d(score_a, score_b, placed)
    return np.where(total < 0.5, 0.0, total)


def score_3d(score_a: ArrayLike, score_b: ArrayLike, placed: ArrayLike) -> Array:
    """As `score_2d`, but totals below 0.5 are kept."""
    terms = [np.asarray(term, dtype=float) for term in (score_a, score_b, placed)]
    if any(not ((term >= 0) & (term <= 1)).all() for term in terms):
        raise ValueError("scores and positions must be in [0, 1]; a missing object scores 0")
    # Half of the position counts only where both objects are there.
    has_both = (terms[0] > 0) & (terms[1] > 0)
    return np.asarray(0.25 * terms[0] + 0.25 * terms[1] + np.where(has_both, 0.5 * terms[2], 0.0))


def depth_position(
    a: Sequence[float],
    b: Sequence[float],
    nearness: ArrayLike,
    relation: CompBenchDepthRelation,
    convention: Convention = "paper",
) -> float:
    """Score of one box in front of another in a depth map (H, W), larger nearer; in [0, 1].

    The mean depths in the boxes decide the order; where it is as asked, the overlap scores: fully
    from 0.5 IoU, in proportion below. authors: the program slices the map as [x, y], i.e.
    transposed, and gives 0 at exactly 0.5. An empty slice scores 0.
    """
    check_convention(convention)
    check_relation(relation, COMPBENCH_DEPTH_RELATIONS)
    depth = np.asarray(nearness, dtype=float)
    if depth.ndim != 2 or not np.isfinite(depth).all():
        raise ValueError(f"a depth map of shape {depth.shape}: a finite one (H, W) is needed")
    first, second = boxes(a), boxes(b)
    ahead = _mean_depth(depth, first, convention) - _mean_depth(depth, second, convention)
    if not (ahead > 0 if relation == "in_front_of" else ahead < 0):
        return 0.0
    overlap = float(ious(first, second))
    if convention == "authors" and overlap == DEPTH_OVERLAP:
        return 0.0
    return min(1.0, overlap / DEPTH_OVERLAP)


def _mean_depth(depth: Array, box: Array, convention: str) -> float:
    x1, y1, x2, y2 = (max(0, int(side)) for side in box)
    inside = depth[x1:x2, y1:y2] if convention == "authors" else depth[y1:y2, x1:x2]
    return float(inside.mean()) if inside.size else math.nan


def measure(
    sighting: Sighting,
    relation: CompBenchRelation | CompBenchDepthRelation,
    convention: Convention,
) -> Measurement:
    """A quarter of each detection score and half of the position, of the best boxes.

    A missing subject leaves the quarter of the other, which is below one half: 0 in the plane. The
    relation holds if the position scores and the sum reaches `HOLDS`.
    """
    first, second = (group[0].score if group else 0.0 for group in (sighting.a, sighting.b))
    placed, score = 0.0, score_3d if relation in COMPBENCH_DEPTH_RELATIONS else score_2d
    if not sighting.has_both:
        return Measurement(None, float(score(first, second, placed)), "missing")
    if relation in COMPBENCH_DEPTH_RELATIONS:
        placed = depth_position(*sighting.boxes, sighting.nearness, relation, convention)  # type: ignore[arg-type]
    else:
        placed = float(position(*sighting.boxes, relation, convention))  # type: ignore[arg-type]
    number = float(score(first, second, placed))
    return Measurement(placed > 0 and number >= HOLDS, number, f"position {placed:.3f}")
