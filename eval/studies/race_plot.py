"""The course of a bandit as a figure: pulls of each generator, and regret (PSE, Fig. 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..report.svg import ROW, SERIES, Drawing, PlotAxis, shortened

WIDTH, HEIGHT = 720, 460


def race_figure(result: Mapping[str, Any]) -> str:
    """SVG of a result with `choices`, `regret` and `pulls`; empty where nothing was pulled."""
    choices, regret, names = result["choices"], result["regret"], list(result["pulls"])
    if not choices:
        return ""
    drawing = Drawing(WIDTH, HEIGHT + ROW * len(names), "Pulls of each generator, and regret")
    across = PlotAxis(0, len(choices), 64, WIDTH - 30)
    curves = {name: [1, *_pulled(choices, name)] for name in names}  # everybody is pulled once
    most = max(map(max, curves.values()))
    _panel(drawing, across, PlotAxis(0, most, 210, 20), "pulls", list(curves.values()), "curve")
    worst = max(*regret, 1e-9)
    _panel(drawing, across, PlotAxis(0, worst, 420, 250), "regret", [[0.0, *regret]], "regret")
    for number, name in enumerate(names):
        y = HEIGHT + ROW * number
        drawing.mark(70, y, number)
        drawing.text(84, y, f"{shortened(name, 70)}: {result['pulls'][name]} pulls")
    return drawing.file()


def _pulled(choices: Sequence[str], name: str) -> list[int]:
    return [1 + n for n in accumulate(int(choice == name) for choice in choices)]


def _panel(
    drawing: Drawing,
    across: PlotAxis,
    up: PlotAxis,
    title: str,
    curves: Sequence[Sequence[float]],
    style: str,
) -> None:
    """Curves over rounds, with their axes."""
    for tick in up.ticks(4):
        drawing.line(across.start, up(tick), across.end, up(tick), "grid")
        drawing.text(across.start - 8, up(tick), f"{tick:g}", "end")
    for tick in across.ticks():
        drawing.text(across(tick), up.start + 14, f"{tick:g}", "middle")
    drawing.line(across.start, up.start, across.end, up.start, "axis")
    drawing.text(across.start, up.end - 8, f"{title} by round")
    for number, values in enumerate(curves):
        points = [(across(place), up(value)) for place, value in enumerate(values)]
        drawing.path(points, f"{style} s{number % SERIES}" if style == "curve" else style)
