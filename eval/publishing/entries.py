"""What a publication needs in order to stand beside others on a leaderboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ...release import Problem, known_rows
from ..results.marks import MARKS
from .publication import PUBLICATION, Publication, PublishedRun, read_publication
from .restoring import rows_of


def entry_faults(root: Path) -> tuple[list[Problem], list[str]]:
    """The faults of a publication as an entry: rows that are a sample or unknown, images that were
    not made, judges that were not checked or failed. And notes: prompts that a server rewrote."""
    publication = read_publication(root)
    problems = [
        Problem(PUBLICATION, message, place, field)
        for run in publication.runs
        for message, place, field in _faults(run)
    ]
    notes = []
    for run in publication.runs:
        if rewritten := _rewritten(root, publication, run):
            text = f"{rewritten:,} of {run.cases:,} prompts rewritten by the server"
            notes.append(f"{run.name}: {text}")
    return problems, notes


def _faults(run: PublishedRun) -> Iterator[tuple[str, str, str]]:
    """Message, place and field of what is wrong with a run of an entry."""
    if run.rows_sha256 not in known_rows().get(run.suite, ()):
        message = "its rows are none that this package knows: run a released version"
        yield message, run.name, "rows_sha256"
    if run.limit is not None:
        yield f"is of a sample of {run.limit:,} rows: run all", run.name, "limit"
    if run.where:
        yield f"is of a part of the cases ({run.where}): run all", run.name, "where"
    lacking = {name: n for name, n in run.images.items() if name in ("missing", "error") and n}
    if lacking:
        counts = ", ".join(f"{n:,} {status}" for status, n in lacking.items())
        message = f"lacks images ({counts}): run again until none is; a refusal is an answer"
        yield message, run.name, "images"
    for judge in run.judges:
        for name in judge.headline.marks:
            legend = MARKS[name].legend if name in MARKS else name
            yield legend, f"{run.name}, {judge.name}", "judges"


def _rewritten(root: Path, publication: Publication, run: PublishedRun) -> int:
    """Images that a server drew of another prompt than it was sent, as it reported."""
    rows = rows_of(root, publication, run, "images", ["suite", "generator", "prompt", "report"])
    reports = ((row["prompt"], json.loads(row["report"] or "{}")) for row in rows)
    revised = ((prompt, report.get("revised_prompt")) for prompt, report in reports)
    return sum(text not in (None, "", prompt) for prompt, text in revised)
