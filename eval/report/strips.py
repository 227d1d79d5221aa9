"""Rows of scores with their intervals, as HTML that fits every screen.

A strip is a narrow line over one axis: a mark for each score, whiskers for its interval, a tick
where chance would lie. Labels and n stand beside it in the page, so that they are read at their own
size. Whatever has two axes is a plot, see `plots`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from ..core import Score

SERIES = 8
"""Colors that `style.css` tells apart; every fourth has the same shape."""
MARGIN = 3.0
"""Space at both ends of a strip, percent of its width: what lies on an end is drawn whole."""
STEP = 13
"""Distance between two series of a row, pixels."""


@dataclass(frozen=True)
class PlotPoint:
    """A score in the color of its series."""

    score: Score
    series: int
    """Number of the series, from 0."""
    name: str
    """Name of the series."""

    @property
    def hint(self) -> str:
        """Text under the mouse and for screen readers."""
        return f"{self.name}: {self.score.text(self.score.unit)}, n = {self.score.n:,}"


@dataclass(frozen=True)
class StripRow:
    """A row of strips: the label on its left, the strip, and the n on its right."""

    label: str
    strip: Markup
    n: str
    """`n = 24`, or `n = 20 to 24` where the series differ; empty without a score."""


@dataclass(frozen=True)
class Strips:
    """Strips under each other, over one axis."""

    title: str
    rows: Sequence[StripRow]
    axis: Markup
    """The numbers below the last strip."""
    names: Sequence[str] = ()
    """Names of the series, for a legend; empty for a single one."""


class ValueAxis(NamedTuple):
    """Maps values to places along a strip."""

    low: float
    """Least value."""
    high: float
    """Largest value."""

    @classmethod
    def of(cls, scores: Sequence[Score]) -> ValueAxis:
        """Returns the whole scale of the unit, so that a difference looks as large as it is; only
        ratios above 1 extend it."""
        ends = [v for s in scores for v in (s.value, *s.interval) if not math.isnan(v)]
        full = 100.0 if scores and scores[0].unit == "%" else 1.0
        low = -full if min(ends, default=0) < 0 else 0.0
        return cls(low, max(full, *ends, 0))

    def percent(self, value: float) -> float:
        """Returns the place of a value, percent of the width; values outside lie at the edge."""
        inside = min(max(value, self.low), self.high)
        return MARGIN + (100 - 2 * MARGIN) * (inside - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Returns about five round numbers within the axis.

        >>> ValueAxis(0, 100).ticks()
        [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        """
        from matplotlib.ticker import MaxNLocator

        ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high)
        return [round(float(t), 10) + 0.0 for t in ticks if self.low <= t <= self.high]


def dot_plot(
    rows: Sequence[tuple[str, Sequence[PlotPoint]]],
    title: str,
    series_names: Sequence[str] = (),
    linked: bool = False,
) -> Strips:
    """Returns a strip for every row.

    linked: the points of a row lie on one line and are joined, from the hollow first to the last.
    """
    scores = [point.score for _, points in rows for point in points]
    axis = ValueAxis.of(scores)
    return Strips(
        title,
        [
            StripRow(label, _strip(label, points, axis, linked), counted(points))
            for label, points in rows
        ],
        _numbers(axis, scores[0].unit if scores else "1"),
        series_names if len(series_names) > 1 else (),
    )


def strip(point: PlotPoint, axis: ValueAxis) -> Markup:
    """Returns a single score with its interval, for a cell of a table."""
    return _strip("", [point], axis, False)


def counted(points: Sequence[PlotPoint]) -> str:
    """Returns the n of some scores: `n = 24`, or `n = 20 to 24`."""
    counts = sorted({point.score.n for point in points})
    if not counts:
        return ""
    return f"n = {counts[0]:,}" + (f" to {counts[-1]:,}" if len(counts) > 1 else "")


def key(series: int) -> Markup:
    """Returns the mark of a series, for a legend."""
    return Markup('<i class="key mark s{} m{}" aria-hidden="true"></i>').format(
        series % SERIES, series % 4
    )


def _strip(label: str, points: Sequence[PlotPoint], axis: ValueAxis, linked: bool) -> Markup:
    lines = 1 if linked else max(1, len(points))
    height = STEP * lines + 11
    hints = "; ".join(point.hint for point in points) or "no score"
    marks = [_line("zero" if tick == 0 else "grid", axis.percent(tick)) for tick in axis.ticks()]
    drawn = [point for point in points if not math.isnan(point.score.value)]
    if linked and len(drawn) > 1:
        ends = (axis.percent(drawn[0].score.value), axis.percent(drawn[-1].score.value))
        marks.append(_span(f"link s{drawn[0].series % SERIES}", min(ends), max(ends), height / 2))
    for number, point in enumerate(points):
        middle = height / 2 if linked else height / 2 + STEP * (number - (lines - 1) / 2)
        marks.append(_point(point, axis, middle, hollow=linked and point is points[0]))
    return Markup(
        '<span class="strip" role="img" aria-label="{}" style="height:{}px">{}</span>'
    ).format(f"{label}: {hints}" if label else hints, f"{height:g}", Markup("").join(marks))


def _point(point: PlotPoint, axis: ValueAxis, middle: float, hollow: bool) -> Markup:
    score, series = point.score, point.series
    if math.isnan(score.value):
        return Markup('<small style="top:{}px">undefined</small>').format(f"{middle:g}")
    marks = []
    if not math.isnan(score.interval.low):
        ends = (axis.percent(score.interval.low), axis.percent(score.interval.high))
        marks.append(_span(f"whisker s{series % SERIES}", *ends, middle))
    if not math.isnan(score.null):
        marks.append(_line("null", axis.percent(score.null), middle))
    style = f"{'hollow' if hollow else 'mark'} s{series % SERIES} m{series % 4}"
    place = f"left:{axis.percent(score.value):.2f}%;top:{middle:g}px"
    marks.append(
        Markup('<i class="{}" style="{}" title="{}"></i>').format(style, place, point.hint)
    )
    return Markup("").join(marks)


def _span(style: str, start: float, end: float, middle: float) -> Markup:
    """A horizontal line between two places, percent, at a height in pixels."""
    place = f"left:{start:.2f}%;width:{end - start:.2f}%;top:{middle:g}px"
    return Markup('<i class="{}" style="{}"></i>').format(style, place)


def _line(style: str, place: float, middle: float | None = None) -> Markup:
    """A vertical line at a place, percent: a short one around `middle`, pixels, or a full one."""
    top = "" if middle is None else f";top:{middle:g}px"
    return Markup('<i class="{}" style="left:{}%{}"></i>').format(style, f"{place:.2f}", top)


def end_numbers(axis: ValueAxis) -> Markup:
    """Returns the first and the last number of an axis, for the head of a narrow column."""
    ticks = axis.ticks()
    return _numbers(axis, "1", (ticks[0], ticks[-1]))


def _numbers(axis: ValueAxis, unit: str, shown: Sequence[float] = ()) -> Markup:
    ticks = [
        Markup('<small style="left:{}%">{}</small>').format(
            f"{axis.percent(tick):.2f}", f"{tick:g}{' %' * (unit == '%')}"
        )
        for tick in shown or axis.ticks()
    ]
    return Markup('<span class="strip numbers" aria-hidden="true">{}</span>').format(
        Markup("").join(ticks)
    )
