"""`best-of-curve`: what N seeds gain, by who chose among them and by a judge who did not.

The candidates of one run of ``best-of:N`` are enough: the first 2, 4, 8 ... of each case are what a
smaller N would have made. The selecting judge's own score of its choices is too good (the winner's
curse): the largest of N noisy scores is partly the largest noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ...errors import RunFailed
from ...progress import Progress, silent
from ...storage import write_json, write_whole
from ..core import Case, describe, without_nan
from ..engine.costs import Cost, count_images
from ..engine.data import Rows
from ..engine.evaluation import Evaluation
from ..judges import as_judge
from ..methods.candidates import Candidate, best_of, candidate_path, read_candidates
from ..report.plots import CurvePoint, curve_plot, figure_page, inline
from ..stats.clusters import cluster_interval
from ..stats.intervals import NOTHING, Interval

RESULT = "best_of.json"
PLOT = "best_of.html"


@dataclass(frozen=True)
class BestOfN:
    """What the best of the first `n` candidates scores."""

    n: int
    """Candidates to choose from."""
    chosen: float
    """Mean score by who chose, in its own unit."""
    chosen_interval: Interval
    """95 %, over clusters of cases; nothing where scores have no ends."""
    others: Mapping[str, float]
    """Judge -> mean of the same images by a judge who did not choose, in [0, 1]."""
    other_intervals: Mapping[str, Interval]
    """95 %, over clusters of cases."""
    cases: int
    """With a scored candidate."""
    unjudged: Mapping[str, int]
    """Judge -> chosen images of which it could not tell; they are left out of its mean."""


def best_of_curve(
    root: Path,
    judges: Sequence[str],
    cost: Cost | None = None,
    progress: Progress = silent,
    found: Rows | None = None,
) -> dict[str, Any]:
    """Scores over N of a run of ``best-of:``; written into the run as JSON and as a plot.

    judges: specs of judges who did not choose; they see every image that some N chooses, once.
    Raises RunFailed for a run without candidates, BudgetError where a cap ends it.
    """
    candidates = read_candidates(root)
    if not candidates:
        raise RunFailed(
            f"{root} has no candidates: make a run with --method best-of:16?by=JUDGE",
            code="nothing-to-do",
        )
    plan = (cost or Cost()).plan(root)
    opened = [as_judge(judge, plan) for judge in judges]
    names = [describe(judge.identity()) for judge in opened]
    with Evaluation.open(root, found=found) as evaluation:
        count_images(plan, evaluation.run)
        chosen = _chosen(candidates, {case.id: case for case in evaluation.cases})
        rated: dict[tuple[str, str], float] = {}
        work = sorted(
            {(c.case, c.number): (case, c) for row in chosen.values() for case, c in row}.items()
        )
        for number, (_, (case, candidate)) in enumerate(work):
            progress("chosen", number, len(work))
            image = _open(root, candidate)
            for name, judge in zip(names, opened, strict=True):
                rated[name, candidate.sha256] = evaluation.grade(case, image, judge)
        progress("chosen", len(work), len(work))
    curve = [_best_of(n, row, names, rated) for n, row in chosen.items()]
    result = {
        "run": str(root),
        "generator": dict(evaluation.run.header.generator),
        "curve": [without_nan(asdict(point)) for point in curve],
    }
    write_json(root / RESULT, result)
    title = "Score of the best of N seeds"
    write_whole(root / PLOT, figure_page({"by N": _plot(curve, names, title)}, title))
    return result


def _open(root: Path, candidate: Candidate) -> Image.Image:
    """A candidate's image with its metadata, which its digest covers."""
    with Image.open(candidate_path(root, candidate)) as image:
        image.load()
        return image


def _chosen(
    candidates: Sequence[Candidate], cases: Mapping[str, Case]
) -> dict[int, list[tuple[Case, Candidate]]]:
    """For N = 1, 2, 4, ... and all: the best of each case's first N candidates."""
    of_case: dict[str, list[Candidate]] = {}
    for candidate in {(c.case, c.number): c for c in candidates}.values():
        of_case.setdefault(candidate.case, []).append(candidate)
    most = max(c.number for c in candidates) + 1
    sizes = sorted({*(2**k for k in range(most.bit_length()) if 2**k <= most), most})
    found = {}
    for n in sizes:
        best = {
            name: best_of(sorted((c for c in row if c.number < n), key=lambda c: c.number))
            for name, row in sorted(of_case.items())
        }
        found[n] = [(cases[name], one) for name, one in best.items() if one is not None]
    return found


def _best_of(
    n: int,
    row: Sequence[tuple[Case, Candidate]],
    names: Sequence[str],
    rated: Mapping[tuple[str, str], float],
) -> BestOfN:
    clusters = [case.clusters[0] for case, _ in row]
    own = np.array([candidate.score for _, candidate in row])
    inside = len(own) > 0 and bool(((own >= 0) & (own <= 1)).all())
    others, intervals, unjudged = {}, {}, {}
    for name in names:
        said = np.array([rated[name, candidate.sha256] for _, candidate in row])
        others[name], intervals[name] = _mean(said, clusters)
        unjudged[name] = int(np.isnan(said).sum())
    return BestOfN(
        n=n,
        chosen=float(own.mean()) if len(own) else math.nan,
        chosen_interval=_mean(own, clusters)[1] if inside else NOTHING,
        others=others,
        other_intervals=intervals,
        cases=len(row),
        unjudged=unjudged,
    )


def _mean(values: Any, clusters: Sequence[str]) -> tuple[float, Interval]:
    known = ~np.isnan(values)
    if not known.any():
        return math.nan, NOTHING
    kept = [name for name, is_known in zip(clusters, known, strict=True) if is_known]
    (found,) = cluster_interval(values[known], kept, (0.0, 1.0))
    return float(found.value), found.interval


def _plot(curve: Sequence[BestOfN], names: Sequence[str], title: str) -> Any:
    series = {"who chose it": [CurvePoint(p.n, p.chosen, p.chosen_interval) for p in curve]}
    for name in names:
        series[name] = [CurvePoint(p.n, p.others[name], p.other_intervals[name]) for p in curve]
    return inline(curve_plot(series, "N", logarithmic=True), title)
