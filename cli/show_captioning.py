"""Prints what captioners, and people, name first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, print_json, print_note, table

if TYPE_CHECKING:
    from ..corpus_analysis.captioning.run import Captioning, WhoseCaptions

LISTED = {("left_first", "wording"), ("left_first", "words"), ("named_first", "category")}
"""Scores and kinds of groups that a table holds; `captioning.json` has all of them."""


def print_captioning(found: Captioning, out: Path, as_json: bool) -> None:
    """Prints a table of scores for each captioner and for people, or it all as JSON."""
    if as_json:
        print_json(found.to_json())
        return
    for one in found.results:
        _print_scores(one)
    skipped = ", ".join(f"{why} {n:,}" for why, n in found.source["skipped"].items() if n)
    more = f"; not taken: {skipped}" if skipped else ""
    print(f"{found.source['images']:,} images with two things ({found.source['boxes']}){more}")
    print(f"{out}: captioning.json, captioning.svg, and every caption in readings.jsonl")
    if found.spent:
        print_note(f"spent {found.spent}")


def _print_scores(one: WhoseCaptions) -> None:
    from ..eval.results.tables import COLUMNS, cells

    shown = table(*COLUMNS, numbers=COLUMNS[2:6], title=one.name)
    for score in one.scores:
        if (score.name, score.group.partition("=")[0]) in LISTED or score.group == "all":
            shown.add_row(*cells(score))
    output = console(width=120)
    output.print(shown)
    captions = ", ".join(f"{label} {count:,}" for label, count in one.labels.items())
    output.print(f"captions: {captions}{f'; cut {one.cut:,}' if one.cut else ''}", highlight=False)
