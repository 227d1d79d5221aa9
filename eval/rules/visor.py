"""VISOR: are both objects there, and if so, does their relation hold? (Gokhale et al. 2022)"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .boxes import (
    FORWARD,
    SIDEWAYS,
    Convention,
    Relation,
    boxes,
    centers,
    check_convention,
    check_relation,
)


class Visor(NamedTuple):
    """All in %; NaN where there is nothing to divide by."""

    oa: float
    """Object accuracy: images with both objects."""
    cond: float
    """Images whose relation holds, among those with both objects."""
    uncond: float
    """Images whose relation holds, among all; OA * cond / 100, and with four images a prompt
    the mean of VISOR_1..4."""
    n: tuple[float, ...]
    """VISOR_1 to VISOR_4: prompts of which at least so many images hold."""
    images: int
    prompts: int


def relation_holds(a: ArrayLike, b: ArrayLike, relation: Relation) -> bool:
    """Whether any instance of A (n, 4) is on the asked side of any of B (m, 4), by box centers.

    Strict; False where either has no instance. Raises UsageError for an unknown relation.
    """
    check_relation(relation)
    first, second = (boxes(np.asarray(one, float).reshape(-1, 4)) for one in (a, b))
    axis = 0 if relation in SIDEWAYS else 1
    offsets = centers(first)[:, None, axis] - centers(second)[None, :, axis]
    return bool(((offsets < 0) if relation in FORWARD else (offsets > 0)).any())


def visor(
    both: ArrayLike, holds: ArrayLike, prompts: ArrayLike, convention: Convention = "paper"
) -> Visor:
    """The metrics of images, all of shape (n,): both objects there, relation holds, prompt id.

    paper, and the authors' visor.py: VISOR_n among all prompts. authors: the notebook's variant,
    among prompts with at least one image of both objects, and with 1e-6 added to denominators.
    Raises ValueError for arrays of different length, or a relation without both objects.
    """
    check_convention(convention)
    there, right = np.asarray(both, bool), np.asarray(holds, bool)
    names = np.asarray(prompts)
    if not there.shape == right.shape == names.shape or there.ndim != 1:
        raise ValueError(f"shapes {there.shape}, {right.shape} and {names.shape} do not fit")
    if (right & ~there).any():
        raise ValueError("a relation cannot hold in an image without both objects")
    _, groups = np.unique(names, return_inverse=True)
    successes = np.bincount(groups, weights=right)
    counted = len(successes)
    extra = 0.0
    if convention == "authors":
        seen = np.bincount(groups, weights=there) > 0
        successes, counted, extra = successes[seen], int(seen.sum()), 1e-6
    return Visor(
        oa=_percent(int(there.sum()), len(there), 0.0),
        cond=_percent(int(right.sum()), int(there.sum()), extra),
        uncond=_percent(int(right.sum()), len(there), 0.0),
        n=tuple(_percent(int((successes >= k).sum()), counted, extra) for k in (1, 2, 3, 4)),
        images=len(there),
        prompts=counted,
    )


def _percent(part: int, whole: int, extra: float) -> float:
    return 100 * part / (whole + extra) if whole + extra else math.nan
