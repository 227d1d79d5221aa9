"""`own_errors:`: errors of a judge without any round trip, as a share of those that it counts.

A judge also errs about the original image or caption. That many of the wrong answers after a round
trip say nothing about the trip.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core import Score
from ...roundtrips.criteria import share_of
from ...roundtrips.routes import route_of
from ...suites.consistency import TEN, answers_of
from ...suites.scoring import statistics
from .scope import ScoreInputs

NAMES = ("cyclic",)


def reads(name: str, generator: str) -> list[str]:
    """Names of the runs that it needs besides its own."""
    return ["image", "text"]


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes wrong answers about the original image (or caption) per wrong answer about the
    returned one, paired by row and question; percent.

    For a criterion whose questions are also asked about the start. Above 100 if the trip mends more
    than it breaks. None without a run of the start itself under the same judge.
    """
    (cell,) = scope.cells
    ends = {route_of(outcome.case.variant)[0].end for outcome in cell.outcomes}
    start = scope.rivals.get(next(iter(ends))) if len(ends) == 1 else None
    if start is None:
        return None
    before = answers_of(start.outcomes, "given")
    errors = dict(zip(_places(before.rows), (1 - before.right).tolist(), strict=True))
    after = answers_of(cell.outcomes, name)
    if not len(after.right):
        return None
    wrong = np.array([errors.get(place, np.nan) for place in _places(after.rows)]) + 0 * after.right
    counted = 1 - after.right + 0 * wrong
    (score,) = statistics(
        (f"own_errors:{name}",),
        np.stack([wrong, counted], axis=1),
        after.rows,
        ends=(0, 1),
        statistic=lambda means: share_of(means[..., :1], means[..., 1:]),
        counts=[int(np.nansum(counted))],
        excluded=after.excluded,
    )
    return score


def _places(rows: NDArray[np.str_]) -> list[tuple[str, int]]:
    """Row and question number of each answer; a row's questions follow one another by seed."""
    last_number: dict[str, int] = {}
    places = []
    for row in rows.tolist():
        last_number[row] = last_number.get(row, -1) + 1
        places.append((row, last_number[row] % TEN))
    return places
