"""`gate:`: how often a threshold of the plain scene's score decides as people do (CF-World)."""

from __future__ import annotations

import numpy as np

from ...core import Score
from ...people.gate import GRID, GateSample, labeled_images
from ...stats.bootstrap import Array
from ...stats.clusters import cluster_interval
from ...suites import open_suite
from ...suites.worlds import ACCEPTED
from .scope import ScoreInputs

F1 = "f1:"
BORDERLINE = "borderline:"
BORDER = (0.3, 0.7)
"""Lowest and highest score of a borderline image, both included, as in CF-World's Table 4."""
NAMES = tuple(
    f"{images}{kind}{threshold:g}"
    for images in ("", BORDERLINE)
    for kind in ("", F1)
    for threshold in GRID
)


def find(name: str, scope: ScoreInputs) -> Score | None:
    """Computes the percentage of labeled images that a threshold and people decide alike; of a name
    with `f1:`, F1 of passing what people accept; of one with `borderline:`, of images that score
    within `BORDER` alone.

    None where no such image is labeled or F1 is undefined, without labels `accept`, and on suites
    that have no gate.
    """
    kind = name.removeprefix(BORDERLINE)
    threshold = float(kind.removeprefix(F1))
    decided: list[tuple[float, float, float]] = []
    laws: list[str] = []
    excluded: dict[str, int] = {}
    for cell in scope.cells:
        if not open_suite(cell.suite).has_gate:
            continue
        labels = {
            case: label for (case, question), label in cell.labels.items() if question == ACCEPTED
        }
        labeled, lost = labeled_images(cell.outcomes, labels)
        if kind != name:
            within = (labeled.scores >= BORDER[0]) & (labeled.scores <= BORDER[1])
            scores, accepted, of_laws = labeled
            labeled = GateSample(scores[within], accepted[within], of_laws[within])
            if far := int((~within).sum()):
                lost["not borderline"] = far
        passed = labeled.scores >= threshold
        alike = passed == labeled.accepted
        decided += zip(alike, passed & labeled.accepted, ~alike, strict=True)
        laws += labeled.laws.tolist()
        for reason, count in lost.items():
            excluded[reason] = excluded.get(reason, 0) + count
    columns = np.array(decided, dtype=float).reshape(-1, 3)
    is_f1 = kind.startswith(F1)
    if not columns[:, is_f1:].any():  # nothing is labeled; for F1, all is rejected alike
        return None
    chosen, statistic = (columns[:, 1:], _f1) if is_f1 else (columns[:, 0], None)
    (share,) = cluster_interval(chosen, laws, (0.0, 1.0), statistic)
    return Score.of(share.scaled(100), name=f"gate:{name}", unit="%", excluded=excluded)


def _f1(means: Array) -> Array:
    """F1 of shape (..., 1) from shares of true passes and of wrong decisions, shape (..., 2); 0
    without either, which resampling may draw."""
    right, wrong = 2 * means[..., 0], means[..., 1]
    return np.asarray((right / np.maximum(right + wrong, 1e-12))[..., None])
