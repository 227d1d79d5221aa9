"""Prints what captioners, and people, name first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, print_json, print_note, table

if TYPE_CHECKING:
    from ..corpus_analysis.captioning.ranking import CaptionerRanking
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
    if found.ranking.pairs:
        _print_ranking(found.ranking)
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


def _print_ranking(ranking: CaptionerRanking) -> None:
    """Who names the left one first more often, and every two on the same images."""
    from ..eval.stats.estimate import interval_text, value_text

    output = console(width=120)
    title = "left_first, percent; captioners that share a letter can't be told apart"
    shown = table("captioner", "left_first", "groups", numbers=["left_first"], title=title)
    for one in ranking.captioners:
        shown.add_row(one.name, value_text(one.left_first, "%"), one.groups)
    output.print(shown)
    numbers = ("difference", "95 %", "p", "Holm", "n", "images")
    title = "first - second, on images and wordings that both have told in full"
    shown = table("first", "second", *numbers, numbers=numbers, title=title)
    for pair in ranking.pairs:
        shown.add_row(
            pair.first,
            pair.second,
            value_text(pair.value, "%", "-"),
            interval_text(pair.interval, "%"),
            value_text(pair.p_value, "1", "-"),
            value_text(pair.adjusted, "1", "-"),
            f"{pair.n:,}",
            f"{pair.clusters:,}",
        )
    output.print(shown)
