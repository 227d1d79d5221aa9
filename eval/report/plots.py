"""The figures of a report, each from numbers to SVG that fits its place on every screen.

Labels, legends and n stand in the page beside the SVG, so that they are read at their own size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..core import Score
from ..results.risk import Curve
from ..results.tables import show, show_interval
from .svg import SERIES, FluidDrawing, PlotAxis

EDGES = (3.0, 97.0)
"""Of an axis, percent of the width: what lies on an end is drawn whole."""
STEP = 13
"""Between two series of a row, pixels."""
AXIS = 22
"""Height of the numbers of an axis, pixels."""


@dataclass(frozen=True)
class PlotPoint:
    """A number with its interval, in the color of a series."""

    score: Score
    """What is drawn."""
    series: int
    """Which one, from 0."""
    name: str
    """Of the series."""

    @property
    def hint(self) -> str:
        s = self.score
        interval = show_interval(s.interval, s.unit)
        return f"{self.name}: {show(s.value, s.unit)} ({interval}), n = {s.n:,}"


@dataclass(frozen=True)
class PlotRow:
    """One line of a figure: what stands left of its strip, the strip, and its n."""

    label: str
    strip: Markup
    n: str
    """`n = 24`, or `n = 20 to 24` where the series differ; empty where it says nothing."""


@dataclass(frozen=True)
class Plot:
    """A figure of strips under each other, over one axis."""

    title: str
    rows: Sequence[PlotRow]
    axis: Markup
    """The numbers below the last strip."""
    names: Sequence[str] = ()
    """Of the series, for a legend; none for a single one."""


def dot_plot(
    rows: Sequence[tuple[str, Sequence[PlotPoint]]],
    title: str,
    names: Sequence[str] = (),
    linked: bool = False,
) -> Plot:
    """A point and whiskers for every series of a row; a tick where chance would lie.

    linked: a row's points are on one line, joined: from the hollow first to the last.
    """
    axis = value_axis([point.score for _, part in rows for point in part])
    return Plot(
        title,
        [PlotRow(label, _strip(label, part, axis, linked), counted(part)) for label, part in rows],
        _numbers(axis, _unit(rows)),
        names if len(names) > 1 else (),
    )


def strip(point: PlotPoint, axis: PlotAxis) -> Markup:
    """One point with its whiskers, for a cell of a table."""
    return _strip("", [point], axis, False)


def value_axis(scores: Sequence[Score]) -> PlotAxis:
    """The whole scale of the unit: a difference looks as large as it is."""
    ends = [v for s in scores for v in (s.value, *s.interval) if not math.isnan(v)]
    whole = 100.0 if scores and scores[0].unit == "%" else 1.0
    low = -whole if min(ends, default=0) < 0 else 0.0
    # Ratios can pass 1.
    return PlotAxis(low, max(whole, *ends, 0), *EDGES)


def scatter_plot(
    points: Sequence[tuple[PlotPoint, PlotPoint]],
    title: str,
    arrows: Sequence[tuple[int, int]] = (),
) -> Markup:
    """Two scores of every series against each other, each with its interval.

    arrows: series that are joined by a line, e.g. a generator and itself under a method.
    """
    known = [pair for pair in points if not any(math.isnan(p.score.value) for p in pair)]
    across = value_axis([first.score for first, _ in known])
    up = _close_axis([second.score for _, second in known], 290, 24)
    drawing = FluidDrawing(300 + AXIS, title)
    for tick in up.ticks():
        drawing.line(0, up(tick), 100, up(tick), "grid")
        drawing.text(0, up(tick) - 8, f"{tick:g}", style="tick")
    _grid(drawing, across, 24, 300)
    _ticks(drawing, across, 300, known[0][0].score.unit if known else "1")
    places = {a.series: (across(a.score.value), up(b.score.value)) for a, b in known}
    for before, after in arrows:
        if before in places and after in places:
            drawing.line(*places[before], *places[after], f"change s{after % SERIES}")
    for first, second in known:
        x, y = places[first.series]
        style = f"whisker s{first.series % SERIES}"
        low, high = first.score.interval
        if not math.isnan(low):
            drawing.line(across(low), y, across(high), y, style)
        low, high = second.score.interval
        if not math.isnan(low):
            drawing.line(x, up(low), x, up(high), style)
        drawing.mark(x, y, first.series, f"{first.hint}; {second.hint}")
    return drawing.markup()


def risk_plot(curves: Sequence[Curve], title: str) -> Markup:
    """Share of wrong answers among those kept, as fewer are kept."""
    worst = max((float(c.curve.risk.max()) for c in curves if len(c.curve.risk)), default=0.0)
    across = PlotAxis(0, 1, *EDGES)
    up = PlotAxis(0, min(1, max(0.1, 1.1 * worst)), 250, 24)
    drawing = FluidDrawing(250 + AXIS, title)
    for tick in up.ticks(5):
        drawing.line(0, up(tick), 100, up(tick), "grid")
        drawing.text(0, up(tick) - 8, f"{tick:.0%}", style="tick")
    for tick in across.ticks(5):
        drawing.text(across(tick), 264, f"{tick:.0%}", "middle", "tick")
    for c in curves:
        points = [(across(x), up(y)) for x, y in zip(c.curve.coverage, c.curve.risk, strict=True)]
        if points:
            drawing.path([*points, points[-1]], f"curve s{c.series % SERIES}")
            hint = f"{c.name}: {c.curve.risk[-1]:.1%} of all wrong, n = {c.n:,}"
            drawing.mark(*points[-1], c.series, hint)
    return drawing.markup()


def stacked_plot(
    rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], title: str
) -> Plot:
    """One bar a row, cut into parts that are shares of 1; a part's share shows under the mouse."""
    axis = PlotAxis(0, 100, *EDGES)
    made = []
    for label, shares in rows:
        told = [f"{part} {share:.1%}" for part, share in zip(parts, shares, strict=True) if share]
        drawing = FluidDrawing(28, f"{label}: {', '.join(told)}")
        start = 0.0
        for series, share in enumerate(shares):
            if share > 0:
                ends = (axis(100 * start), axis(100 * (start + share)))
                hint = f"{label}: {parts[series]} {share:.2%}"
                drawing.bar(*ends, 2, 24.0, series=series, hint=hint)
            start += share
        made.append(PlotRow(label, drawing.markup(), ""))
    return Plot(title, made, _numbers(axis, "%"), parts)


def counted(part: Sequence[PlotPoint]) -> str:
    """The n of some points: `n = 24`, or `n = 20 to 24`."""
    counts = sorted({point.score.n for point in part})
    if not counts:
        return ""
    return f"n = {counts[0]:,}" + (f" to {counts[-1]:,}" if len(counts) > 1 else "")


def key(series: int) -> Markup:
    """The mark of a series, for a legend."""
    drawing = FluidDrawing(14, "")
    drawing.root.attrib.update({"width": "14", "class": "key", "aria-hidden": "true"})
    del drawing.root.attrib["role"], drawing.root.attrib["aria-label"]
    drawing.mark(50, 7, series)
    return drawing.markup()


def _strip(label: str, part: Sequence[PlotPoint], axis: PlotAxis, linked: bool) -> Markup:
    lines = 1 if linked else max(1, len(part))
    height = STEP * lines + 11
    told = "; ".join(point.hint for point in part) or "nothing"
    drawing = FluidDrawing(height, f"{label}: {told}" if label else told)
    _grid(drawing, axis, 0, height)
    known = [p for p in part if not math.isnan(p.score.value)]
    if linked and len(known) > 1:
        ends = (axis(known[0].score.value), axis(known[-1].score.value))
        drawing.line(ends[0], height / 2, ends[1], height / 2, f"link s{known[0].series % SERIES}")
    for number, point in enumerate(part):
        y = height / 2 if linked else height / 2 + STEP * (number - (lines - 1) / 2)
        _whisker(drawing, axis, y, point)
        if linked and point is part[0] and point in known:  # hollow is where a change begins
            drawing.root[-1][0].set("class", f"hollow s{point.series % SERIES}")
    return drawing.markup()


def _whisker(drawing: FluidDrawing, axis: PlotAxis, y: float, point: PlotPoint) -> None:
    score = point.score
    if math.isnan(score.value):
        drawing.text(axis.start + 1, y, "undefined", style="tick")
        return
    if not math.isnan(score.interval.low):
        low, high = score.interval
        drawing.line(axis(low), y, axis(high), y, f"whisker s{point.series % SERIES}")
    if not math.isnan(score.null):
        drawing.line(axis(score.null), y - 7, axis(score.null), y + 7, "null")
    drawing.mark(axis(score.value), y, point.series, point.hint)


def _close_axis(scores: Sequence[Score], start: float, end: float) -> PlotAxis:
    """The span of the scores with their intervals: rewards have no scale of their own."""
    ends = [v for s in scores for v in (s.value, *s.interval) if not math.isnan(v)] or [0.0, 1.0]
    room = 0.08 * (max(ends) - min(ends)) or 0.5
    return PlotAxis(min(ends) - room, max(ends) + room, start, end)


def _grid(drawing: FluidDrawing, axis: PlotAxis, top: float, bottom: float) -> None:
    for tick in axis.ticks(5):
        drawing.line(axis(tick), top, axis(tick), bottom, "zero" if tick == 0 else "grid")


def _numbers(axis: PlotAxis, unit: str) -> Markup:
    drawing = FluidDrawing(AXIS, "")
    drawing.root.set("aria-hidden", "true")
    del drawing.root.attrib["role"], drawing.root.attrib["aria-label"]
    _ticks(drawing, axis, 0, unit)
    return drawing.markup()


def _ticks(drawing: FluidDrawing, axis: PlotAxis, top: float, unit: str) -> None:
    for tick in axis.ticks(5):
        drawing.text(axis(tick), top + 12, f"{tick:g}{' %' * (unit == '%')}", "middle", "tick")


def _unit(rows: Sequence[tuple[str, Sequence[PlotPoint]]]) -> str:
    return next((point.score.unit for _, part in rows for point in part), "1")
