"""Figures beside a table, as SVG: those of papers whose numbers the table repeats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from ..engine.run import Run
from ..judges.checker.analyze import analyze
from ..report.plots import (
    CurvePoint,
    as_file,
    curve_panels,
    difference_plot,
    guidance_plot,
    interval_plot,
    pair_plot,
    risk_plot,
    score_scatter,
)
from ..results.risk import Curve
from ..results.selection import OutcomesOfRun, score_differences
from ..stats.abstention import RiskCoverage
from .scores import bandit, checker
from .scores.categories import category_pairs
from .scores.scope import LabeledRun
from .table_lines import Heading, TableLine

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
        gaps = score_differences([OutcomesOfRun.of(cell.judged) for cell in cells.values()], labels)
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


def categories(cells_by_judge: ByJudge, title: str) -> str:
    """Draws the mean number of each pair of COCO's super-categories as a heat map, over all
    generators of the first judge (PSE, Fig. 14); empty without any."""
    for cells in cells_by_judge.values():
        numbers: dict[tuple[str, str], list[float]] = {}
        for cell in cells.values():
            for pair, of_cell in category_pairs(cell.outcomes).items():
                numbers.setdefault(pair, []).extend(of_cell)
        means = {pair: 100 * fmean(some) for pair, some in sorted(numbers.items())}
        return as_file(pair_plot(means, "mean, %"), title) if means else ""
    return ""


def guidance(cells_by_judge: ByJudge, title: str) -> str:
    """Draws what `psg` did to the first image whose maps are recorded; empty without any."""
    for cells in cells_by_judge.values():
        for cell in cells.values():
            run = Run.open(Path(cell.judged.result.folder))
            images = run.images()
            for case in run.cases():
                report = images[case.id].report if case.id in images else ""
                record = json.loads(report).get("psg", {}) if report else {}
                if record.get("maps"):
                    name = f"{title}: {cell.judged.name}"
                    return as_file(guidance_plot(record, case.prompt), name)
    return ""


FIGURES: dict[str, Callable[[ByJudge, str], str]] = {
    "pulls": pulls,
    "differences": differences,
    "risk": risk,
    "guidance": guidance,
    "categories": categories,
}
"""Name in a layout -> function that draws it from the cells."""


def courses(columns: Sequence[Heading], lines: Sequence[TableLine], title: str) -> str:
    """Draws each line's numbers along the columns; those of another head are another series.

    Lines that are named ``SERIES: QUANTITY`` are drawn in a panel for each quantity.
    """
    panels: dict[str, dict[str, list[CurvePoint]]] = {}
    heads = dict.fromkeys(column.head for column in columns)
    for head in heads:
        places = [place for place, column in enumerate(columns) if column.head == head]
        for line in lines:
            points = [
                CurvePoint(x, score)
                for x, place in enumerate(places)
                if (score := line.cells[place].score) is not None and not line.cells[place].gap
            ]
            name, _, quantity = line.name.partition(": ")
            name = f"{name}, {line.section}" if line.section else name
            name = f"{head}, {name}" if len(heads) > 1 else name
            panels.setdefault(quantity, {})[name] = points
    ticks = list(dict.fromkeys(column.label for column in columns))
    label = columns[0].head if len(heads) == 1 else ""
    return as_file(curve_panels(panels, label, ticks), title)


def pairs(columns: Sequence[Heading], lines: Sequence[TableLine], title: str) -> str:
    """Draws the first column of lines named ``A to B`` as a heat map."""
    values = {}
    for line in lines:
        first, between, second = line.name.partition(": ")[2].partition(" to ")
        score = line.cells[0].score
        if between and score is not None and not line.cells[0].gap:
            values[first, second] = score.value
    return as_file(pair_plot(values, columns[0].label), title)


def scatter(columns: Sequence[Heading], lines: Sequence[TableLine], title: str) -> str:
    """Draws the first two columns of each line against each other, and the paper's as crosses."""
    points, printed = {}, {}
    for line in lines:
        name = f"{line.name}, {line.section}" if line.section else line.name
        (x, y) = line.cells[:2]
        if x.score is not None and y.score is not None and not (x.gap or y.gap):
            points[name] = (x.score, y.score)
        if x.paper is not None and y.paper is not None:
            printed[name] = (x.paper, y.paper)
    return as_file(score_scatter(points, printed, (columns[0].name, columns[1].name)), title)


def intervals(columns: Sequence[Heading], lines: Sequence[TableLine], title: str) -> str:
    """Draws the first column's numbers with their intervals, one line under the other. Lines whose
    names end alike, after a comma, have one color; those in another unit are left out."""
    shown = [
        (f"{line.name}, {line.section}" if line.section else line.name, line.cells[0].score)
        for line in lines
        if line.cells[0].score is not None and not line.cells[0].gap
    ]
    drawn = [(name, score) for name, score in shown if score and score.unit == shown[0][1].unit]
    if not drawn:
        return as_file(curve_panels({}, "", ()), title)
    ends = list(dict.fromkeys(name.partition(", ")[2] for name, _ in drawn))
    rows = [(name, score, ends.index(name.partition(", ")[2])) for name, score in drawn]
    reach = [end for _, score in drawn for end in (score.value, *score.interval) if end == end]
    low, high = min([0.0, *reach]), max([0.0, *reach])
    label = f"{columns[0].name}, %" if drawn[0][1].unit == "%" else columns[0].name
    room = 0.05 * (high - low or 1.0)
    return as_file(interval_plot(rows, label, (low - room, high + room), 0.0), title)


TABLE_FIGURES: dict[str, Callable[[Sequence[Heading], Sequence[TableLine], str], str]] = {
    "courses": courses,
    "pairs": pairs,
    "scatter": scatter,
    "intervals": intervals,
}
"""Name in a layout -> function that draws it from the table's own numbers."""
