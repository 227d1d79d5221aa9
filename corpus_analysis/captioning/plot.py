"""Plot of a run: shares that name the left thing first, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...eval.core import Score
from ...eval.report.plots import as_file, interval_plot, shortened

if TYPE_CHECKING:
    from .run import CaptionerResult

LONGEST = 40
"""Characters of a row's name."""
SHOWN = ("left_first", "left_first_found", "left_first_balanced")


def draw_plot(results: Sequence[CaptionerResult]) -> str:
    """Returns an SVG file with a row for each score of `SHOWN`, and for `left_first` in each
    wording."""
    rows = [
        (name, score, number)
        for number, result in enumerate(results)
        for name, score in _rows(result)
    ]
    label = "captions that name the left one first, percent"
    figure = interval_plot(rows, label, (0, 100), chance=50)
    return as_file(figure, "share of captions that name the left one first")


def _rows(result: CaptionerResult) -> Iterator[tuple[str, Score]]:
    """Yields row names and scores of one captioner."""
    for score in result.scores:
        if score.name in SHOWN and score.group == "all":
            yield shortened(f"{result.name}: {score.name}", LONGEST), score
        elif score.name == "left_first" and score.group.startswith("wording="):
            yield shortened(score.group, LONGEST), score
