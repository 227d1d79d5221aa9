"""Prints studies: their cells, and what they would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .console import console, print_note, table

if TYPE_CHECKING:
    from ..eval.store.shards import RunShard
    from ..eval.studies.preflight import StudyPlan
    from ..eval.studies.runner import StudyDone
    from ..eval.studies.status import CellStatus


def print_study(cells: Sequence[CellStatus]) -> None:
    """Prints a line for each cell, and how many are done."""
    if not cells:  # corpora alone, which were mined elsewhere
        print("nothing to make or to judge: see `counterprior study table`")
        return
    numbers = ("cases", "images", "not made", "answers", "failed answers")
    shown = table("suite", "generator", "judge, scorer", "state", *numbers, numbers=numbers)
    for one in cells:
        lost = {name: n for name, n in one.images.items() if name != "made"}
        failed = {name: n for name, n in one.verdicts.items() if name != "answered"}
        shown.add_row(
            one.cell.suite,
            one.cell.generator,
            one.cell.judge,
            one.state,
            f"{one.cases:,}" if one.cases else "-",
            f"{one.images.get('made', 0):,}",
            _counts(lost),
            f"{one.verdicts.get('answered', 0):,}",
            _counts(failed),
        )
    output = console(width=140)
    output.print(shown)
    states = Counter(one.state for one in cells)
    parts = [f"{states[name]:,} {name}" for name in ("done", "failed") if states[name]]
    left = len(cells) - states["done"] - states["failed"]
    parts += [f"{left:,} not done yet"] if left else []
    output.print(f"{len(cells):,} cells: {', '.join(parts)}")
    short = [one for one in cells if one.lost and one.state != "failed"]
    gaps = (f"{one.cell.suite} x {one.cell.generator}: {one.gap}" for one in short)
    for gap in dict.fromkeys(gaps):
        output.print(gap, style="dim", highlight=False, markup=False)
    causes = dict.fromkeys(one.cause for one in cells if one.cause)
    for cause in causes:
        output.print(f"failed: {cause}", style="dim", highlight=False, markup=False)


def print_done(done: StudyDone, shard: RunShard | None) -> None:
    """Prints the cells, what was spent, and what failed. shard: which part of the work it was."""
    from ..eval.store.shards import shard_name
    from ..eval.studies.status import study_status

    print_study(study_status(done.study))
    if shard is not None:
        print_note(f"{shard_name(shard)} has ended: the table is whole after the last")
    if done.spending.calls or done.spending.errors:
        print_note(f"spent {done.spending}")
    for failure in done.failures:
        print_note(f"{failure.cell}: {failure.cause}")


def print_plan(plan: StudyPlan) -> None:
    """Prints what a study takes, and what would fail."""
    from .progress import duration

    def time(seconds: float | None) -> str:
        return "unknown" if seconds is None else duration(seconds)

    numbers = ("left to do", "US dollars, about", "at most", "time", "disk")
    shown = table("model", "spec", "what", *numbers, numbers=numbers)
    for part in (*plan.images, *plan.steps, *plan.questions, *plan.scores):
        shown.add_row(
            part.name,
            part.spec,
            part.what,
            f"{part.count:,}",
            _usd(part.usd),
            _usd(part.most_usd),
            time(part.seconds),
            _size(part.size),
        )
    output = console(width=140)
    output.print(shown)
    texts = sum(part.count for part in plan.images if part.what.startswith("texts "))
    images = sum(part.count for part in plan.images) - texts
    questions = sum(part.count for part in plan.questions)
    scores = sum(part.count for part in plan.scores)
    scored = f", {scores:,} images to score" if plan.scores else ""
    steps = sum(part.count for part in plan.steps)
    taken = f", {texts:,} texts, {steps:,} steps of round trips" if plan.steps else ""
    output.print(
        f"{plan.cells:,} cells: {images:,} images to make{taken}, {questions:,} questions to ask"
        f"{scored}; {_usd(plan.usd)} US dollars, {time(plan.seconds)}, {_size(plan.size)} of disk"
    )
    for note in plan.notes:
        output.print(note, style="dim", highlight=False, markup=False)
    for problem in plan.problems:
        print_note(f"would fail: {problem}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.items())


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.2f}"


def _size(size: float | None) -> str:
    if size is None:
        return "unknown"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
