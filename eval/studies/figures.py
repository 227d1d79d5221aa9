"""Figures beside a table, as SVG: those of papers whose numbers the table repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..judges.checker.analyze import analyze
from ..report.plots import as_file, difference_plot, risk_plot
from ..results.risk import Curve
from ..results.selection import score_differences
from ..stats.abstention import RiskCoverage
from .scores import bandit, checker
from .scores.scope import LabeledRun

ByJudge = Mapping[str, Mapping[str, LabeledRun]]
"""Judge -> suite and generator -> cell."""


def pulls(cells_by_judge: ByJudge, title: str) -> str:
    """Draws a bandit's pulls and regret under the first judge; empty if nothing can be pulled."""
    for cells in cells_by_judge.values():
        return bandit.figure({name.partition(" ")[2]: cell for name, cell in cells.items()})
    return ""


def differences(cells_by_judge: ByJudge, title: str) -> str:
    """Draws a histogram of each judge's scores less human ones; empty without labels."""
    gaps_by_judge = {}
    for judge, cells in cells_by_judge.items():
        labels = {cell.judged.result.folder: cell.labels for cell in cells.values()}
        gaps = score_differences([cell.judged for cell in cells.values()], labels)
        if gaps is not None:
            gaps_by_judge[judge] = gaps
    return as_file(difference_plot(gaps_by_judge), title) if gaps_by_judge else ""


def risk(cells_by_judge: ByJudge, title: str) -> str:
    """Draws each checker's risk against its coverage, over all generators and for each; empty
    without labels.

    Images that human annotators can't decide are left out of the risk, or counted as errors.
    """
    curves: list[Curve] = []
    for judge, cells in cells_by_judge.items():
        labeled = {c.judged.name: checker.labeled_verdicts(c) for c in cells.values()}
        rows = [row for of_cell, _ in labeled.values() for row in of_cell]
        labels = [label for _, of_cell in labeled.values() for label in of_cell]
        groups = {"all": (rows, labels)} | (labeled if len(labeled) > 1 else {})
        for name, (group_rows, group_labels) in groups.items():
            if not group_labels:
                continue
            for rule, curve in analyze(group_rows, group_labels)["risk_coverage"].items():
                points = [p for p in curve["points"] if p["risk"] is not None]
                columns = (
                    np.array([p[key] for p in points]) for key in ("tau", "coverage", "risk")
                )
                curve_name = f"{judge}, {name}, {rule.replace('_', ' ')}"
                drawn = RiskCoverage(*columns)
                curves.append(Curve(curve_name, len(curves), drawn, len(group_labels)))
    return as_file(risk_plot(curves, legend=True), title) if curves else ""


FIGURES: dict[str, Callable[[ByJudge, str], str]] = {
    "pulls": pulls,
    "differences": differences,
    "risk": risk,
}
"""Name in a layout -> function that draws it."""
