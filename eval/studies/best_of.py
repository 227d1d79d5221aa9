"""`best-of-curve`: gain of N seeds, by the judge that chose among them and by independent ones.

The candidates of one run of ``best-of:N`` are enough: the first 2, 4, 8 ... of each case are what a
smaller N would have made. The selecting judge's own score of its choices is too good (the winner's
curse): the largest of N noisy scores is partly the largest noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from ..report.plots import CurvePoint, curve_plot, inline
from ..report.single_page import figure_page
from ..stats.bootstrap import Array
from ..stats.clusters import cluster_interval
from ..stats.estimate import Estimate

RESULT = "best_of.json"
PLOT = "best_of.html"


@dataclass(frozen=True)
class BestOfN:
    """Scores of the best of the first N candidates of each case."""

    candidates: int
    """N, candidates per case from which the best is chosen."""
    chosen: Estimate
    """Mean score by the choosing judge, in its own unit, over cases with a scored candidate;
    without an interval if its scores are unbounded."""
    independent: Mapping[str, Estimate]
    """Judge -> mean of the same images by a judge that did not choose, in [0, 1]; images without a
    verdict are excluded as `unjudged`."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; NaN as None."""
        plain: dict[str, Any] = without_nan(
            {
                "n": self.candidates,
                "chosen": self.chosen.value,
                "chosen_interval": self.chosen.interval,
                "others": {name: mean.value for name, mean in self.independent.items()},
                "other_intervals": {name: mean.interval for name, mean in self.independent.items()},
                "cases": self.chosen.n,
                "unjudged": {
                    name: mean.excluded["unjudged"] for name, mean in self.independent.items()
                },
            }
        )
        return plain


def best_of_curve(
    root: Path,
    judges: Sequence[str],
    cost: Cost | None = None,
    progress: Progress = silent,
    rows: Rows | None = None,
) -> dict[str, Any]:
    """Computes scores over N of a run of ``best-of:`` and writes them there as JSON and as a plot.

    judges: specs of judges that did not choose; they see every image that some N chooses, once.
    Raises RunFailed for a run without candidates, BudgetError where a cap ends it.
    """
    candidates = read_candidates(root)
    if not candidates:
        raise RunFailed(
            f"{root} has no candidates: make a run with --method best-of:16?by=JUDGE",
            code="nothing-to-do",
        )
    with (cost or Cost()).plan(root) as plan, Evaluation.open(root, rows=rows) as evaluation:
        opened_judges = [as_judge(judge, plan) for judge in judges]
        judge_names = [describe(judge.identity()) for judge in opened_judges]
        count_images(plan, evaluation.run)
        chosen = _chosen(candidates, {case.id: case for case in evaluation.cases})
        rated: dict[tuple[str, str, int], float] = {}
        work = sorted(
            {(c.case, c.number): (case, c) for row in chosen.values() for case, c in row}.items()
        )
        for number, (_, (case, candidate)) in enumerate(work):
            progress("chosen", number, len(work))
            image = _open(root, candidate)
            for name, judge in zip(judge_names, opened_judges, strict=True):
                rated[name, case.id, candidate.number] = evaluation.grade(case, image, judge)
        progress("chosen", len(work), len(work))
    curve = [_best_of(n, row, judge_names, rated) for n, row in chosen.items()]
    result = {
        "run": str(root),
        "generator": dict(evaluation.run.header.generator),
        "curve": [prefix.to_json() for prefix in curve],
    }
    write_json(root / RESULT, result)
    title = "Score of the best of N seeds"
    write_whole(root / PLOT, figure_page({"by N": _plot(curve, judge_names, title)}, title))
    return result


def _open(root: Path, candidate: Candidate) -> Image.Image:
    """A candidate's image with its metadata, which its digest covers."""
    with Image.open(candidate_path(root, candidate)) as image:
        image.load()
        return image


def _chosen(
    candidates: Sequence[Candidate], cases: Mapping[str, Case]
) -> dict[int, list[tuple[Case, Candidate]]]:
    """N = 1, 2, 4, ... and all -> the best of each case's first N candidates."""
    of_case: dict[str, list[Candidate]] = {}
    for candidate in {(c.case, c.number): c for c in candidates}.values():
        of_case.setdefault(candidate.case, []).append(candidate)
    most = max(c.number for c in candidates) + 1
    sizes = sorted({*(2**k for k in range(most.bit_length()) if 2**k <= most), most})
    choices = {}
    for n in sizes:
        best = {
            name: best_of(sorted((c for c in row if c.number < n), key=lambda c: c.number))
            for name, row in sorted(of_case.items())
        }
        choices[n] = [
            (cases[name], candidate) for name, candidate in best.items() if candidate is not None
        ]
    return choices


def _best_of(
    n: int,
    row: Sequence[tuple[Case, Candidate]],
    judge_names: Sequence[str],
    rated: Mapping[tuple[str, str, int], float],
) -> BestOfN:
    clusters = [case.clusters[0] for case, _ in row]
    chooser_scores = np.array([candidate.score for _, candidate in row])
    chosen = Estimate(float(chooser_scores.mean()) if len(chooser_scores) else math.nan, n=len(row))
    if len(chooser_scores) and ((chooser_scores >= 0) & (chooser_scores <= 1)).all():
        chosen = replace(chosen, interval=_mean(chooser_scores, clusters).interval)
    independent = {
        name: _mean(np.array([rated[name, c.case, c.number] for _, c in row]), clusters)
        for name in judge_names
    }
    return BestOfN(n, chosen, independent)


def _mean(values: Array, clusters: Sequence[str]) -> Estimate:
    """The mean of values in [0, 1], shape (n,); NaN is excluded as `unjudged`."""
    judged = ~np.isnan(values)
    mean = Estimate(math.nan)
    if judged.any():
        members = [name for name, is_judged in zip(clusters, judged, strict=True) if is_judged]
        (mean,) = cluster_interval(values[judged], members, (0.0, 1.0))
    return replace(mean, excluded={"unjudged": int((~judged).sum())})


def _plot(curve: Sequence[BestOfN], judge_names: Sequence[str], title: str) -> Any:
    series = {"who chose it": [CurvePoint(p.candidates, p.chosen) for p in curve]}
    for name in judge_names:
        series[name] = [CurvePoint(p.candidates, p.independent[name]) for p in curve]
    return inline(curve_plot(series, "N", logarithmic=True), title)
