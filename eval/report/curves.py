"""Scores over a number that was varied: steps, seeds, updates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape

from ..stats.intervals import NOTHING, Interval
from .svg import ROW, SERIES, Drawing, PlotAxis, shortened

WIDTH, HEIGHT = 640, 320


class CurvePoint(NamedTuple):
    """A score at one value of what was varied."""

    x: float
    y: float
    """NaN where it is undefined: not drawn."""
    interval: Interval = NOTHING
    """95 %; NaN where there is none."""


def curve_plot(
    series: Mapping[str, Sequence[CurvePoint]],
    title: str,
    label: str,
    logarithmic: bool = False,
) -> Markup:
    """A line with whiskers for every series, named on its right.

    label: what x is. logarithmic: whether x is drawn in powers of two.
    """

    def place(x: float) -> float:
        return math.log2(x) if logarithmic else x

    points = [p for row in series.values() for p in row if not math.isnan(p.y)]
    drawing = Drawing(WIDTH, HEIGHT, title)
    if not points:
        drawing.text(20, 30, "nothing could be scored")
        return drawing.markup()
    ends = [e for p in points for e in (p.y, *p.interval) if not math.isnan(e)]
    low, high = min(0.0, *ends), max(ends)
    low, high = low, high if high > low else low + 1
    xs = [place(p.x) for p in points]
    right = WIDTH - 190.0
    across = PlotAxis(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1, 60, right)
    up = PlotAxis(low, high, HEIGHT - 46, 16)
    for tick in up.ticks():
        drawing.line(60, up(tick), right, up(tick), "grid")
        drawing.text(52, up(tick), f"{tick:g}", "end", "tick")
    for x in sorted({p.x for p in points}):
        drawing.text(across(place(x)), HEIGHT - 28, f"{x:g}", "middle", "tick")
    drawing.text((60 + right) / 2, HEIGHT - 10, label, "middle")
    drawing.line(60, up(low), right, up(low), "axis")
    named: list[tuple[float, int, str]] = []
    for number, (name, row) in enumerate(series.items()):
        known = [p for p in row if not math.isnan(p.y)]
        color = f"s{number % SERIES}"
        if len(known) > 1:
            drawing.path([(across(place(p.x)), up(p.y)) for p in known], f"curve {color}")
        for p in known:
            x = across(place(p.x))
            if not math.isnan(p.interval.low):
                drawing.line(x, up(p.interval.low), x, up(p.interval.high), f"whisker {color}")
            drawing.mark(x, up(p.y), number, f"{name}: {p.y:.3g} at {p.x:g}")
        if known:
            named.append((up(known[-1].y), number, name))
    below = -math.inf
    for y, number, name in sorted(named):
        below = max(y, below + ROW - 4)
        drawing.mark(right + 14, below, number)
        drawing.text(right + 26, below, shortened(name, 20))
    return drawing.markup()


def curve_page(figures: Mapping[str, Markup], title: str) -> str:
    """A page of its own with figures under their headings."""
    style = (Path(__file__).parent / "templates" / "style.css").read_text("utf-8")
    parts = "".join(f"<h2>{escape(name)}</h2>\n{figure}\n" for name, figure in figures.items())
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style><main><h1>{escape(title)}</h1>\n{parts}</main></html>\n"
    )
