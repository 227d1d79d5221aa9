"""`counterprior audit calibrate`: the L1 threshold that best matches human acceptance.

CF-World counts a group only if its L1 score (the plain scene) is at least 0.5. Here human
annotators accept or reject images as drawings of the plain scene. Every threshold of a grid is
compared with their labels: which agrees best, with its interval, and on laws held out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...human_labels import check_labels, draw_note, labels_of_images, read_labels, single_labels
from ..core import Outcome, without_nan
from ..engine.evaluation import outcomes
from ..engine.run import Run, RunError
from ..stats.bootstrap import Array, cluster_bootstrap
from ..suites import SUITES
from ..suites.worlds import (
    ACCEPTANCE,
    ACCEPTED,
    GATE,
    LEVELS,
    gated,
    image_score,
    premise_ratio,
    score_table,
)
from .checker_settings import REPEATS, fold_rounds

GRID = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""Thresholds that are tried, 0.05 to 0.95."""
_NEAREST = np.array(sorted(range(len(GRID)), key=lambda place: abs(GRID[place] - GATE)))
"""Places of the grid, those nearest to the published gate first."""
FEW = 10
"""Accepted or rejected images below which the choice depends on single labels."""


class GateSample(NamedTuple):
    """The L1 images that have both a judge's score and a human label."""

    scores: Array
    """Shape (n,): S in [0, 1]."""
    accepted: NDArray[np.bool_]
    """Shape (n,): whether the annotators accept the image."""
    laws: NDArray[np.str_]
    """Shape (n,): the law of its group; images of one law stay together."""


def calibrate_run(
    folder: Path, labels: Path, question: str = ACCEPTED, folds: int = 5
) -> dict[str, Any]:
    """Returns judge -> best threshold with its statistics; undefined numbers are None.

    folder: a judged run of a suite with a gate; labels: human `yes` or `no` for some of its L1
    images, under the name of the question. Raises RunError for a run of another suite or an
    unjudged one, DataError for labels that no threshold can be compared with.
    """
    run = Run.open(folder)
    gated_suites = [name for name, suite in SUITES.items() if suite.has_gate]
    if run.header.suite not in gated_suites:
        raise RunError(
            f"{folder} is of {run.header.suite}: only {gated_suites[0]} has a gate",
            code="wrong-suite",
        )
    images = {case: image.sha256 for case, image in run.images().items()}
    of_run = labels_of_images(read_labels(labels), images)
    of_question = [label for label in of_run if label.question in ("", question)]
    if not of_question:
        raise DataError(f"{labels}: no label of the question {question!r}", code="nothing-to-do")
    checked = check_labels(of_question, {case.id for case in run.cases()}, {question: ACCEPTANCE})
    accepted = {case: label for (case, _), label in single_labels(checked).items()}
    by_judge = {}
    for judge in run.chosen_judges(()):
        judged = outcomes(run, judge)
        labeled, left_out = labeled_images(judged, accepted)
        best = calibrate(labeled, folds)
        if note := draw_note(labels):
            best["warnings"].append(note)
        gates = {"published": GATE, "chosen": best["chosen"]["threshold"]}
        prr = {name: _prr(judged, gate) for name, gate in gates.items()}
        by_judge[judge.name] = {**best, "left_out": left_out, "prr": prr}
    return dict(without_nan(by_judge))


def labeled_images(
    judged: Sequence[Outcome], labels: Mapping[str, str]
) -> tuple[GateSample, dict[str, int]]:
    """Returns the images to calibrate on, and how many labels can't be used, by reason.

    labels: case -> `yes`, `no` or another answer to whether the image is acceptable.
    """
    usable: list[tuple[float, bool, str]] = []
    left_out: Counter[str] = Counter()
    for outcome in sorted(judged, key=lambda outcome: outcome.case.id):
        label = labels.get(outcome.case.id)
        if label is None:
            continue
        score = image_score(outcome)
        if outcome.case.variant != LEVELS[0]:
            left_out["of another level"] += 1
        elif label not in ("yes", "no"):
            left_out["neither yes nor no"] += 1
        elif np.isnan(score):
            left_out["without a score"] += 1
        else:
            usable.append((score, label == "yes", outcome.case.clusters[0]))
    scores, accepted, laws = zip(*usable, strict=True) if usable else ((), (), ())
    return GateSample(np.array(scores), np.array(accepted, dtype=bool), np.array(laws)), dict(
        sorted(left_out.items())
    )


def calibrate(labeled: GateSample, folds: int = 5, seed: int = 0) -> dict[str, Any]:
    """The threshold with the highest kappa, its interval, and its kappa on laws held out.

    Among equally good ones, the threshold nearest to the published gate is chosen. Raises DataError
    where all images are accepted or none, UsageError for fewer laws than folds.
    """
    n, accepted = len(labeled.scores), int(labeled.accepted.sum())
    if not 0 < accepted < n:
        raise DataError(
            f"annotators accept {accepted} of {n} labeled L1 images, so no threshold is better "
            f"than another",
            "label good and bad images",
            code="too-few-items",
        )
    cells = _cells(labeled)
    drawn = cluster_bootstrap(
        cells.reshape(n, -1),
        labeled.laws,
        lambda means: _kappas(means.reshape(*means.shape[:-1], len(GRID), 4)),
    )
    kappas = drawn.estimate
    best = int(_best(kappas))
    plateau = [t for t, kappa in zip(GRID, kappas, strict=True) if kappa == kappas[best]]
    picks = np.array(GRID)[_best(drawn.draws)]
    held_out, chosen_in_folds = _cross_validate(cells, labeled.laws, folds, seed)
    grid = [
        {
            "threshold": threshold,
            "kappa": float(kappas[place]),
            "kappa_95": list(drawn.interval(place)),
            "agreement": float(cells[:, place, [0, 3]].sum() / n),
        }
        for place, threshold in enumerate(GRID)
    ]
    return {
        "labeled": n,
        "accepted": accepted,
        "chosen": grid[best] | {"threshold_95": list(np.quantile(picks, (0.025, 0.975)))},
        "plateau": [plateau[0], plateau[-1]],
        "published": grid[GRID.index(GATE)],
        "cross_validated": {
            "kappa": held_out,
            "optimism": float(kappas[best]) - held_out,
            "folds": folds,
            "repeats": REPEATS,
            "chosen_share": {
                str(GRID[place]): count / (folds * REPEATS)
                for place, count in sorted(chosen_in_folds.items())
            },
        },
        "warnings": _warnings(GRID[best], accepted, n - accepted),
        "grid": grid,
    }


def _cells(labeled: GateSample) -> Array:
    """Shape (n, T, 4): the cell of the 2 x 2 table for each image and threshold.

    The cells are accepted by both, by the gate alone, by the annotators alone, by neither.
    """
    passes = labeled.scores[:, None] >= np.array(GRID)
    humans = labeled.accepted[:, None]
    cells = [passes & humans, passes & ~humans, ~passes & humans, ~passes & ~humans]
    return np.stack(cells, axis=-1).astype(float)


def _kappas(tables: Array) -> Array:
    """Cohen's kappa of 2 x 2 tables of shape (..., 4), counts or shares; NaN where undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = tables / tables.sum(axis=-1, keepdims=True)
        agreed, gate, humans, neither = np.moveaxis(share, -1, 0)
        chance = (agreed + gate) * (agreed + humans) + (neither + gate) * (neither + humans)
        return np.where(chance < 1, (agreed + neither - chance) / (1 - chance), np.nan)


def _best(kappas: Array) -> NDArray[np.intp]:
    """Places, shape (...), of the highest of kappas of shape (..., T).

    Of equally high ones it is the one nearest to the published gate.
    """
    finite = np.where(np.isnan(kappas), -np.inf, kappas)
    return np.asarray(_NEAREST[np.argmax(finite[..., _NEAREST], axis=-1)])


def _cross_validate(
    cells: Array, laws: NDArray[np.str_], folds: int, seed: int
) -> tuple[float, Counter[int]]:
    """Mean kappa of decisions by a threshold that was chosen on other laws, and the choices."""
    kappas, picks = [], Counter[int]()
    of = "the labeled images of {} laws"
    for fold_of in fold_rounds(laws.tolist(), folds, REPEATS, seed, of):
        fold = np.array([fold_of[law] for law in laws.tolist()])
        table = np.zeros(4)
        for number in range(folds):
            place = int(_best(_kappas(cells[fold != number].sum(axis=0))))
            picks[place] += 1
            table += cells[fold == number, place].sum(axis=0)
        kappas.append(float(_kappas(table)))
    return float(np.mean(kappas)), picks


def _prr(judged: Sequence[Outcome], gate: float) -> float:
    table = gated(score_table(judged, LEVELS)[1], gate)
    with np.errstate(invalid="ignore"):
        means = np.nansum(table, axis=0) / (~np.isnan(table)).sum(axis=0)
    return float(premise_ratio(means[0], means[1]))


def _warnings(chosen: float, accepted: int, rejected: int) -> list[str]:
    """Limits of the calibration: the edge of the grid, too few labels."""
    warnings = []
    if chosen in (GRID[0], GRID[-1]):
        end = "smallest" if chosen == GRID[0] else "largest"
        warnings.append(f"{chosen} is the {end} of the grid: the best threshold may lie beyond it")
    for kind, count in (("accepted", accepted), ("rejected", rejected)):
        if count < FEW:
            warnings.append(f"only {count} {kind} images: the choice depends on single labels")
    return warnings
