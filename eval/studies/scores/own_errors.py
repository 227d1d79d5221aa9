"""`own_errors:`: what a judge gets wrong without any round trip, as a share of what it counts.

A judge errs about the given image or caption itself. So many of the answers that count as wrong
after a round trip say nothing about the trip.
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
    """The runs that it needs besides its own."""
    return ["image", "text"]


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Percent: wrong answers about the given image (or caption) per wrong answer about what came
    back, paired by row and question.

    Of a criterion whose questions are also asked of the start. Above 100 where the trip mends more
    than it breaks. None without a run of the start itself under the same judge.
    """
    (own,) = scope.own
    ends = {route_of(outcome.case.variant)[0].end for outcome in own.outcomes}
    given = scope.rivals.get(next(iter(ends))) if len(ends) == 1 else None
    if given is None:
        return None
    there = answers_of(given.outcomes, "given")
    known = dict(zip(_places(there.rows), (1 - there.right).tolist(), strict=True))
    back = answers_of(own.outcomes, name)
    if not len(back.right):
        return None
    wrong = np.array([known.get(place, np.nan) for place in _places(back.rows)]) + 0 * back.right
    kept = 1 - back.right + 0 * wrong
    (score,) = statistics(
        (f"own_errors:{name}",),
        np.stack([wrong, kept], axis=1),
        back.rows,
        ends=(0, 1),
        statistic=lambda means: share_of(means[..., :1], means[..., 1:]),
        counts=[int(np.nansum(kept))],
        excluded=back.excluded,
    )
    return score


def _places(rows: NDArray[np.str_]) -> list[tuple[str, int]]:
    """Row and question of each place; the questions of a row follow one another, seed by seed."""
    seen: dict[str, int] = {}
    places = []
    for row in rows.tolist():
        seen[row] = seen.get(row, -1) + 1
        places.append((row, seen[row] % TEN))
    return places
