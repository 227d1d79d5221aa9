"""What a table draws besides, as SVG: the figures of papers whose numbers are a table of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..report.plots import as_file, difference_plot
from ..results.selection import score_differences
from .scores import bandit
from .scores.scope import LabeledRun

ByJudge = Mapping[str, Mapping[str, LabeledRun]]
"""Judge -> suite and generator -> cell."""


def pulls(found: ByJudge, title: str) -> str:
    """A bandit's pulls and regret under the first judge; empty where there is nothing to pull."""
    for cells in found.values():
        return bandit.figure({name.partition(" ")[2]: cell for name, cell in cells.items()})
    return ""


def differences(found: ByJudge, title: str) -> str:
    """A histogram of people's scores less those of each judge; empty without labels."""
    shown = {}
    for judge, cells in found.items():
        labels = {cell.judged.result.folder: cell.labels for cell in cells.values()}
        gaps = score_differences([cell.judged for cell in cells.values()], labels)
        if gaps is not None:
            shown[judge] = gaps
    return as_file(difference_plot(shown), title) if shown else ""


FIGURES: dict[str, Callable[[ByJudge, str], str]] = {"pulls": pulls, "differences": differences}
"""Name in a layout -> what draws it."""
