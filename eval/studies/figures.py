"""Figures beside a table, as SVG: those of papers whose numbers the table repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..report.plots import as_file, difference_plot
from ..results.selection import score_differences
from .scores import bandit
from .scores.scope import LabeledRun

ByJudge = Mapping[str, Mapping[str, LabeledRun]]
"""Judge -> suite and generator -> cell."""


def pulls(cells_by_judge: ByJudge, title: str) -> str:
    """Draws a bandit's pulls and regret under the first judge; empty if nothing can be pulled."""
    for cells in cells_by_judge.values():
        return bandit.figure({name.partition(" ")[2]: cell for name, cell in cells.items()})
    return ""


def differences(cells_by_judge: ByJudge, title: str) -> str:
    """Draws a histogram of human scores less those of each judge; empty without labels."""
    gaps_by_judge = {}
    for judge, cells in cells_by_judge.items():
        labels = {cell.judged.result.folder: cell.labels for cell in cells.values()}
        gaps = score_differences([cell.judged for cell in cells.values()], labels)
        if gaps is not None:
            gaps_by_judge[judge] = gaps
    return as_file(difference_plot(gaps_by_judge), title) if gaps_by_judge else ""


FIGURES: dict[str, Callable[[ByJudge, str], str]] = {"pulls": pulls, "differences": differences}
"""Name in a layout -> function that draws it."""
