"""The plot of a run: who names the left one first, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...eval.core import Score
from ...eval.report.plots import as_file, interval_plot, shortened

if TYPE_CHECKING:
    from .run import WhoseCaptions

LONGEST = 40
"""Characters of a row's name."""
SHOWN = ("left_first", "left_first_found", "left_first_balanced")


def draw_plot(results: Sequence[WhoseCaptions]) -> str:
    """Returns an SVG file with a row for each score of `SHOWN`, and for `left_first` in each
    wording."""
    rows = [
        (name, score, number) for number, one in enumerate(results) for name, score in _rows(one)
    ]
    label = "captions that name the left one first, percent"
    figure = interval_plot(rows, label, (0, 100), chance=50)
    return as_file(figure, "share of captions that name the left one first")


def _rows(one: WhoseCaptions) -> Iterator[tuple[str, Score]]:
    """Names and scores of one captioner."""
    for score in one.scores:
        if score.name in SHOWN and score.group == "all":
            yield shortened(f"{one.name}: {score.name}", LONGEST), score
        elif score.name == "left_first" and score.group.startswith("wording="):
            yield shortened(score.group, LONGEST), score
