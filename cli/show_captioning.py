"""Prints how often captioners and people name the left one first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, new_table, print_json, print_note

if TYPE_CHECKING:
    from ..corpus_analysis.captioning.run import CaptionerResult, Captioning
    from ..eval.results.leaderboard import Leaderboard

LISTED = {("left_first", "wording"), ("left_first", "words"), ("named_first", "category")}
"""Scores and kinds of groups that a table holds; `captioning.json` has all of them."""


def print_captioning(captioning: Captioning, out: Path, as_json: bool) -> None:
    """Prints a table of scores for each captioner and for people; or as JSON."""
    if as_json:
        print_json(captioning.to_json())
        return
    for result in captioning.results:
        _print_scores(result)
    if captioning.ranking.comparisons:
        _print_ranking(captioning.ranking)
    source = captioning.source
    skipped = ", ".join(f"{why} {n:,}" for why, n in source["skipped"].items() if n)
    skipped_text = f"; not taken: {skipped}" if skipped else ""
    print(f"{source['images']:,} images with two things ({source['boxes']}){skipped_text}")
    print(f"{out}: captioning.json, captioning.svg, and every caption in readings.jsonl")
    if captioning.spent:
        print_note(f"spent {captioning.spent}")


def _print_scores(result: CaptionerResult) -> None:
    from ..eval.results.tables import COLUMNS, cells
    from ..eval.stats.estimate import interval_text

    table = new_table(*COLUMNS, numbers=COLUMNS[2:8], title=result.name)
    for score in result.scores:
        if (score.name, score.group.partition("=")[0]) in LISTED or score.group == "all":
            table.add_row(*cells(score))
    output = console(width=120)
    output.print(table)
    for score in result.scores:
        if score.wide.low == score.wide.low:
            wide = interval_text(score.wide, score.unit)
            line = f"95 % is for other images of these things; {score.name} of other things: {wide}"
            output.print(line, highlight=False)
    captions = ", ".join(f"{label} {count:,}" for label, count in result.labels.items())
    output.print(
        f"captions: {captions}{f'; cut {result.cut:,}' if result.cut else ''}", highlight=False
    )


def _print_ranking(ranking: Leaderboard) -> None:
    """Prints the ranking of captioners, and every two of them on the same images."""
    from ..eval.stats.estimate import interval_text, p_text, value_text

    output = console(width=120)
    title = "left_first, percent; captioners that share a letter can't be told apart"
    table = new_table("captioner", "left_first", "groups", numbers=["left_first"], title=title)
    for standing in ranking.standings:
        if standing.rank:
            table.add_row(standing.name, value_text(standing.score.value, "%"), standing.groups)
    output.print(table)
    numbers = ("difference", "95 % CI", "p", "Holm", "n", "images")
    title = "first - second, on images and wordings that both have told in full"
    table = new_table("first", "second", *numbers, numbers=numbers, title=title)
    for pair in ranking.comparisons:
        table.add_row(
            pair.first,
            pair.second,
            value_text(pair.value, "%", "-"),
            interval_text(pair.interval, "%"),
            p_text(pair.p_value),
            p_text(pair.adjusted),
            f"{pair.n:,}",
            f"{pair.clusters:,}",
        )
    output.print(table)
