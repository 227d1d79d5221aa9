"""People's score less a judge's, image by image, as a histogram (CF-World, Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .svg import Drawing, PlotAxis

WIDTH, PANEL, TOP = 640, 190, 34
LEFT, RIGHT = 60.0, 610.0


def difference_figure(found: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """SVG with a panel a judge; found: judge -> what `results.selection.agreement_limits` says.

    Bars are numbers of images, at the middle of their bin. The line is the mean difference, the
    dashed ones are the limits of agreement.
    """
    drawing = Drawing(WIDTH, PANEL * len(found) + 30, title)
    across = PlotAxis(-1.0625, 1.0625, LEFT, RIGHT)
    for number, (judge, told) in enumerate(found.items()):
        top = number * PANEL + TOP
        bottom = top + PANEL - 2 * TOP
        most = max(count for _, count in told["histogram"])
        up = PlotAxis(0, most, bottom, top)
        for tick in up.ticks(3):
            drawing.line(LEFT, up(tick), RIGHT, up(tick), "grid")
            drawing.text(LEFT - 8, up(tick), f"{tick:g}", "end")
        for middle, count in told["histogram"]:
            if count:
                left, right = across(middle - 0.05), across(middle + 0.05)
                hint = f"{count} of {told['n']} images at {middle:+.3f}"
                drawing.bar(left, right, up(count), bottom - up(count), series=number, hint=hint)
        drawing.line(LEFT, bottom, RIGHT, bottom, "axis")
        for tick in (-1, -0.5, 0, 0.5, 1):
            drawing.text(across(tick), bottom + 14, f"{tick:+g}" if tick else "0", "middle")
        drawing.line(across(told["mean"]), bottom, across(told["mean"]), top - 4, "mean")
        for limit in told["limits"]:
            if limit == limit:
                drawing.line(across(limit), bottom, across(limit), top - 4, "limit")
        share = f"{100 * told['within_0.125']:.0f} % within 0.125"
        drawing.text(LEFT, top - 18, f"{judge}: mean {told['mean']:+.3f}, {share}, n {told['n']}")
    caption = "people less judge; line: mean, dashed: limits of agreement"
    drawing.text((LEFT + RIGHT) / 2, PANEL * len(found) + 12, caption, "middle")
    return drawing.file()
