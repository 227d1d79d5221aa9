"""`gate:`: how often a threshold of the plain scene's score decides as people do (CF-World)."""

from __future__ import annotations

import numpy as np

from ...core import Score
from ...people.gate import GRID, labeled_images
from ...stats.clusters import cluster_interval
from ...suites import open_suite
from ...suites.worlds import ACCEPTED
from .scope import ScoreInputs

NAMES = tuple(f"{threshold:g}" for threshold in GRID)


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the percentage of labeled images that a threshold and people decide alike.

    None without labels `accept`, and on suites that have no gate.
    """
    values: list[float] = []
    laws: list[str] = []
    excluded: dict[str, int] = {}
    for cell in scope.cells:
        if not open_suite(cell.suite).has_gate:
            continue
        labels = {
            case: label for (case, question), label in cell.labels.items() if question == ACCEPTED
        }
        labeled, lost = labeled_images(cell.outcomes, labels)
        values += ((labeled.scores >= float(name)) == labeled.accepted).astype(float).tolist()
        laws += labeled.laws.tolist()
        for reason, count in lost.items():
            excluded[reason] = excluded.get(reason, 0) + count
    if not values:
        return None
    (share,) = cluster_interval(np.array(values), laws, (0.0, 1.0))
    return Score.of(share.scaled(100), name=f"gate:{name}", unit="%", excluded=excluded)
