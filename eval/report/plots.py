"""The figures of a report, each from numbers to SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..core import Score
from ..results.risk import Curve
from ..results.tables import show, show_interval
from .svg import CHARACTER, ROW, Drawing, PlotAxis, shortened

WIDTH = 720
"""Of every figure, pixels; the page scales it down."""
LONGEST = 30
"""Characters of a label."""
MARGIN = 30
"""Right of the axis, for half of its last number, pixels."""


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


def interval_plot(rows: Sequence[tuple[str, Sequence[PlotPoint]]], title: str) -> Markup:
    """One line a row with a point and whiskers for every series; a tick where chance would lie."""
    points = [point for _, part in rows for point in part]
    heights = [max(ROW, 13 * len(part) + 9) for _, part in rows]
    left = _gutter([label for label, _ in rows])
    axis = _value_axis([point.score for point in points], left, WIDTH - MARGIN)
    bottom = sum(heights) + 6
    drawing = Drawing(WIDTH, bottom + 30, title)
    _grid(drawing, axis, 4, bottom, points[0].score.unit if points else "1")
    top = 4.0
    for (label, part), height in zip(rows, heights, strict=True):
        middle = top + height / 2
        drawing.text(left - 10, middle, shortened(label, LONGEST), "end")
        for number, point in enumerate(part):
            y = middle + 13 * (number - (len(part) - 1) / 2)
            _whisker(drawing, axis, y, point)
        top += height
    return drawing.markup()


def slope_plot(
    pairs: Sequence[tuple[PlotPoint, PlotPoint]], ends: tuple[str, str], title: str
) -> Markup:
    """Two scores of every series with a line between them."""
    # The names stand beside the right ends, each at least a line from the next.
    height = max(240, ROW * len(pairs) + 70)
    axis = PlotAxis(0, 100, height - 14, 34)
    left, right = 60.0, 340.0
    drawing = Drawing(WIDTH, height, title)
    for tick in axis.ticks():
        drawing.line(left, axis(tick), right, axis(tick), "grid")
        drawing.text(left - 12, axis(tick), f"{tick:g}", "end", "tick")
    for x, name in ((left, ends[0]), (right, ends[1])):
        drawing.line(x, axis(0), x, axis(100), "axis")
        drawing.text(x, 12, name, "middle", "strong")
    known = [pair for pair in pairs if not any(math.isnan(p.score.value) for p in pair)]
    places = _spread([axis(pair[1].score.value) for pair in known], ROW - 4, 30, height - 12)
    for (first, second), place in zip(known, places, strict=True):
        y = (axis(first.score.value), axis(second.score.value))
        drawing.path([(left, y[0]), (right, y[1])], f"curve s{first.series % 8}")
        for x, point, height_ in ((left, first, y[0]), (right, second, y[1])):
            low, high = point.score.interval
            if not math.isnan(low):
                drawing.line(x, axis(low), x, axis(high), f"whisker s{point.series % 8}")
            drawing.mark(x, height_, point.series, point.hint)
        drawing.line(right + 8, y[1], right + 24, place, "leader")
        shown = f"{show(first.score.value, '%')} → {show(second.score.value, '%')}"
        drawing.text(right + 28, place, f"{shortened(first.name, LONGEST - 8)}  {shown}")
    return drawing.markup()


def scatter_plot(
    points: Sequence[tuple[PlotPoint, PlotPoint]], names: tuple[str, str], title: str
) -> Markup:
    """Two scores of every series against each other, each with its interval; names: across, up."""
    known = [pair for pair in points if not any(math.isnan(p.score.value) for p in pair)]
    across = _value_axis([first.score for first, _ in known], 84, WIDTH - MARGIN)
    up = _close_axis([second.score for _, second in known], 300, 34)
    drawing = Drawing(WIDTH, 350, title)
    drawing.text(8, 14, names[1], style="strong")
    for tick in up.ticks():
        drawing.line(across.start, up(tick), across.end, up(tick), "grid")
        drawing.text(across.start - 8, up(tick), f"{tick:g}", "end", "tick")
    unit = known[0][0].score.unit if known else "1"
    _grid(drawing, across, up.end, up.start, unit)
    drawing.text(across.end, up.start + 34, names[0], "end", "strong")
    for first, second in known:
        x, y = across(first.score.value), up(second.score.value)
        style = f"whisker s{first.series % 8}"
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
    height = 300 + ROW * len(curves)
    worst = max((float(c.curve.risk.max()) for c in curves if len(c.curve.risk)), default=0.0)
    across, up = (
        PlotAxis(0, 1, 64, WIDTH - MARGIN),
        PlotAxis(0, min(1, max(0.1, 1.1 * worst)), 250, 14),
    )
    drawing = Drawing(WIDTH, height, title)
    for tick in up.ticks(5):
        drawing.line(across.start, up(tick), across.end, up(tick), "grid")
        drawing.text(across.start - 8, up(tick), f"{tick:.0%}", "end", "tick")
    for tick in across.ticks(5):
        drawing.text(across(tick), 266, f"{tick:.0%}", "middle", "tick")
    drawing.line(across.start, up.start, across.end, up.start, "axis")
    caption = "share of images kept, surest first (risk: share of wrong ones among them)"
    drawing.text(across.start, 286, caption, style="tick")
    for number, c in enumerate(curves):
        points = [(across(x), up(y)) for x, y in zip(c.curve.coverage, c.curve.risk, strict=True)]
        if points:
            drawing.path([*points, points[-1]], f"curve s{c.series % 8}")
            drawing.mark(*points[-1], c.series, f"{c.name}: {c.curve.risk[-1]:.1%} of all wrong")
        y = 310 + ROW * number
        drawing.mark(across.start + 6, y, c.series)
        drawing.text(across.start + 20, y, shortened(c.name, 86))
    return drawing.markup()


def stacked_plot(
    rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], title: str
) -> Markup:
    """One bar a row, cut into parts that are shares of 1; a part's share shows under the mouse."""
    left = _gutter([label for label, _ in rows])
    axis = PlotAxis(0, 100, left, WIDTH - MARGIN)
    bottom = 28.0 * len(rows) + 6
    drawing = Drawing(WIDTH, bottom + 30 + ROW * len(parts), title)
    _grid(drawing, axis, 4, bottom, "%")
    for number, (label, shares) in enumerate(rows):
        y = 4 + 28.0 * number
        drawing.text(left - 10, y + 12, shortened(label, LONGEST), "end")
        start = 0.0
        for series, share in enumerate(shares):
            if share > 0:
                hint = f"{label}: {parts[series]} {share:.2%}"
                ends = (axis(100 * start), axis(100 * (start + share)))
                drawing.bar(*ends, y, 24.0, series=series, hint=hint)
            start += share
    for series, part in enumerate(parts):
        y = bottom + 34 + ROW * series
        drawing.bar(left, left + 14, y - 7, 14.0, series=series)
        drawing.text(left + 22, y, part)
    return drawing.markup()


def legend(names: Sequence[str]) -> Markup:
    """The series of a figure, by color and shape; nothing for a single one."""
    if len(names) < 2:
        return Markup()
    places, x, y = [], 8.0, 12.0
    for name in names:
        width = CHARACTER * len(shortened(name, LONGEST)) + 34
        if x + width > WIDTH and x > 8:
            x, y = 8.0, y + ROW
        places.append((x, y))
        x += width
    drawing = Drawing(WIDTH, y + 14, "Legend: " + ", ".join(names))
    for number, (name, (x, y)) in enumerate(zip(names, places, strict=True)):
        drawing.mark(x, y, number)
        drawing.text(x + 11, y, shortened(name, LONGEST))
    return drawing.markup()


def _gutter(labels: Sequence[str]) -> float:
    longest = max((len(shortened(label, LONGEST)) for label in labels), default=0)
    return 18 + CHARACTER * longest


def _value_axis(scores: Sequence[Score], start: float, end: float) -> PlotAxis:
    """The whole scale of the unit: a difference looks as large as it is."""
    ends = [v for s in scores for v in (s.value, *s.interval) if not math.isnan(v)]
    whole = 100.0 if scores and scores[0].unit == "%" else 1.0
    low = -whole if min(ends, default=0) < 0 else 0.0
    # Ratios can pass 1.
    return PlotAxis(low, max(whole, *ends, 0), start, end)


def _close_axis(scores: Sequence[Score], start: float, end: float) -> PlotAxis:
    """The span of the scores with their intervals: rewards have no scale of their own."""
    ends = [v for s in scores for v in (s.value, *s.interval) if not math.isnan(v)] or [0.0, 1.0]
    room = 0.08 * (max(ends) - min(ends)) or 0.5
    return PlotAxis(min(ends) - room, max(ends) + room, start, end)


def _grid(drawing: Drawing, axis: PlotAxis, top: float, bottom: float, unit: str) -> None:
    for tick in axis.ticks():
        drawing.line(axis(tick), top, axis(tick), bottom, "zero" if tick == 0 else "grid")
        shown = f"{tick:g} %" if unit == "%" else f"{tick:g}"
        drawing.text(axis(tick), bottom + 14, shown, "middle", "tick")


def _whisker(drawing: Drawing, axis: PlotAxis, y: float, point: PlotPoint) -> None:
    score = point.score
    if math.isnan(score.value):
        drawing.text(axis.start + 6, y, "undefined", style="tick")
        return
    if not math.isnan(score.interval.low):
        low, high = score.interval
        drawing.line(axis(low), y, axis(high), y, f"whisker s{point.series % 8}")
    if not math.isnan(score.null):
        drawing.line(axis(score.null), y - 7, axis(score.null), y + 7, "null")
    drawing.mark(axis(score.value), y, point.series, point.hint)


def _spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places moved apart, in their order, so that no two are closer than `gap`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    last = low - gap
    for i in order:
        moved[i] = last = max(places[i], last + gap)
    following = high + gap
    for i in reversed(order):
        moved[i] = following = min(moved[i], following - gap)
    return moved
