"""The plot of a run: who names the left one first, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...eval.core import Score
from ...eval.report.svg import CHARACTER, ROW, Drawing, PlotAxis, shortened

if TYPE_CHECKING:
    from .run import WhoseCaptions

WIDTH = 760
"""Pixels."""
LONGEST = 40
"""Characters of a row's name."""
SHOWN = ("left_first", "left_first_found", "left_first_balanced")


def draw_plot(results: Sequence[WhoseCaptions]) -> str:
    """An SVG file: a row for each score of `SHOWN`, and for `left_first` in each wording."""
    rows = [(number, *row) for number, one in enumerate(results) for row in _rows(one)]
    start = 20 + CHARACTER * max((len(name) for _, name, _ in rows), default=0)
    axis = PlotAxis(0, 100, start, WIDTH - 20)
    bottom = 20 + ROW * len(rows)
    drawing = Drawing(WIDTH, bottom + 50, "share of captions that name the left one first")
    for tick in axis.ticks():
        drawing.line(axis(tick), 10, axis(tick), bottom, "grid")
        drawing.text(axis(tick), bottom + 14, f"{tick:g}", "middle")
    drawing.line(axis(50), 10, axis(50), bottom, "limit")
    label = "captions that name the left one first, percent"
    drawing.text(axis(50), bottom + 36, label, "middle")
    for place, (series, name, score) in enumerate(rows):
        y = 20 + ROW * place
        drawing.text(start - 12, y, name, "end")
        low, high = score.interval
        if not math.isnan(low):
            drawing.path([(axis(low), y), (axis(high), y)], f"curve s{series}")
        if not math.isnan(score.value):
            hint = f"{score.value:.1f} ({low:.1f} to {high:.1f}), n = {score.n:,}"
            drawing.mark(axis(score.value), y, series, hint)
    return drawing.file()


def _rows(one: WhoseCaptions) -> Iterator[tuple[str, Score]]:
    """Names and scores of one captioner."""
    for score in one.scores:
        if score.name in SHOWN and score.group == "all":
            yield shortened(f"{one.name}: {score.name}", LONGEST), score
        elif score.name == "left_first" and score.group.startswith("wording="):
            yield shortened(score.group, LONGEST), score
