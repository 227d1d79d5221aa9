"""GenEval: the relations that hold between two boxes, given their sizes (Ghosh et al. 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .boxes import boxes, centres
from .pse import Relation

SLACK = 0.1
"""Share of the two sizes by which centres must differ."""
_LEAST = 1e-3


def relations(a: ArrayLike, b: ArrayLike) -> set[Relation]:
    """Every relation that "A is … B" fulfils, for one box each, shape (4,).

    The offset of the centres, less a tenth of the summed sizes on each axis, over the length of the
    whole offset, must exceed 0.5: a diagonal has two relations or none. Paper and program agree.
    """
    first, second = boxes(a), boxes(b)
    offset = centres(first) - centres(second)
    sizes = (first[2:] - first[:2]) + (second[2:] - second[:2])
    revised = np.maximum(abs(offset) - SLACK * sizes, 0) * np.sign(offset)
    if (abs(revised) < _LEAST).all():
        return set()
    dx, dy = revised / np.linalg.norm(offset)
    named: list[tuple[Relation, bool]] = [
        ("left_of", dx < -0.5),
        ("right_of", dx > 0.5),
        ("above", dy < -0.5),
        ("below", dy > 0.5),
    ]
    return {name for name, holds in named if holds}
