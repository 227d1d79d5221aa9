"""Prints image quality beside bias."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .console import console, print_json, print_note, table

if TYPE_CHECKING:
    from ..eval.engine.quality import ScoreLog, ScoringTally
    from ..eval.results.changes import QualityReport


def print_scoring(run: Path, scored: Sequence[tuple[ScoreLog, ScoringTally]]) -> None:
    """Prints what came of scoring a run."""
    for log, tally in scored:
        counts = [f"{tally.scored:,} scored"]
        counts += [f"{tally.known:,} were there"] if tally.known else []
        counts += [f"{tally.failed:,} failed"] if tally.failed else []
        print_note(f"{run}, {log.name}: {'; '.join(counts)}")
        if tally.first_error:
            print_note(f"the first failure: {tally.first_error}")


def print_quality(report: QualityReport, as_json: bool) -> None:
    """Prints a table of every run's scores, and one of the changes against the first run."""
    if as_json:
        print_json(report.to_json())
        return
    from ..eval.results.tables import left_out, show, show_interval

    output = console(width=140)
    numbers = ("value", "95 %", "n")
    title = f"{report.suite}: bias and quality"
    shown = table("run", "score", *numbers, "left out", numbers=numbers, title=title)
    for run, scores in report.runs.items():
        for score in scores:
            shown.add_row(
                run,
                score.name,
                show(score.value, score.unit),
                show_interval(score.interval, score.unit),
                f"{score.n:,}",
                left_out(score),
            )
    output.print(shown)
    if not report.changes:
        return
    columns = ("before", "after", "difference", "95 %", "p", "Holm", "pairs")
    title = f"against {report.base}, on the cases that both have"
    shown = table("run", "", "by", *columns, numbers=columns, title=title)
    for change in report.changes:
        cells = (change.before, change.after, change.difference)
        shown.add_row(
            change.run,
            f"{change.score} ({change.better} is better)" if change.kind == "bias" else "quality",
            change.scorer,
            *(show(value, change.unit) for value in cells),
            show_interval(change.interval, change.unit),
            show(change.p_value, "1", "-"),
            show(change.adjusted, "1", "-"),
            f"{change.n:,}",
        )
    output.print(shown)
