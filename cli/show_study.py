"""Prints studies: their cells, and estimates of their cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..printable import reasons
from .console import console, new_table, print_note

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
    scored = any(status.running for status in cells)
    columns = (*numbers, *(("score so far",) if scored else ()))
    table = new_table("suite", "generator", "judge, scorer", "state", *columns, numbers=columns)
    for status in cells:
        lost = {name: n for name, n in status.images.items() if name != "made"}
        failed = {name: n for name, n in status.verdicts.items() if name != "answered"}
        table.add_row(
            status.cell.suite,
            status.cell.generator,
            status.cell.judge,
            status.state,
            f"{status.cases:,}" if status.cases else "-",
            f"{status.images.get('made', 0):,}",
            _counts(lost),
            f"{status.verdicts.get('answered', 0):,}",
            _counts(failed),
            *((_so_far(status),) if scored else ()),
        )
    output = console(width=140)
    output.print(table)
    states = Counter(status.state for status in cells)
    counts = [f"{states[name]:,} {name}" for name in ("done", "failed") if states[name]]
    remaining = len(cells) - states["done"] - states["failed"]
    counts += [f"{remaining:,} not done yet"] if remaining else []
    output.print(f"{len(cells):,} cells: {', '.join(counts)}")
    if scored:
        output.print(
            "score so far: the headline of the first clusters in random order; 95 % intervals that "
            "hold at all moments at once, so look and stop when you like",
            style="dim",
            highlight=False,
        )
    short = [status for status in cells if status.lost and status.state != "failed"]
    gaps = (f"{status.cell.suite} x {status.cell.generator}: {status.gap}" for status in short)
    unmade = (f"{s.cell.suite} x {s.cell.generator}: {s.unmade}" for s in cells if s.unmade)
    for gap in dict.fromkeys((*gaps, *unmade)):
        output.print(gap, style="dim", highlight=False, markup=False)
    errors = sum((Counter(status.errors) for status in cells), Counter[str]())
    for reason in reasons(errors):
        output.print(reason, style="dim", highlight=False, markup=False)
    causes = dict.fromkeys(status.cause for status in cells if status.cause)
    for cause in causes:
        output.print(f"failed: {cause}", style="dim", highlight=False, markup=False)


def _so_far(status: CellStatus) -> str:
    """Name, value and interval of the score of a cell that is filling; a dash without one."""
    if status.running is None:
        return "-"
    score = status.running
    return f"{score.name} {score.text(score.unit)}, {score.clusters:,} clusters"


def print_done(done: StudyDone, shard: RunShard | None) -> None:
    """Prints the cells, the cost and the failures. shard: the part of the work that was done."""
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
    """Prints the estimated cost of a study, and the failures to expect."""
    from .progress import duration

    def time(seconds: float | None) -> str:
        return "unknown" if seconds is None else duration(seconds)

    numbers = ("left to do", "US dollars, about", "at most", "time", "disk")
    table = new_table("model", "spec", "what", *numbers, numbers=numbers)
    for work in (*plan.images, *plan.steps, *plan.questions, *plan.scores):
        table.add_row(
            work.name,
            work.spec,
            work.what,
            f"{work.count:,}",
            _usd(work.usd),
            _usd(work.most_usd),
            time(work.seconds),
            _size(work.size),
        )
    output = console(width=140)
    output.print(table)
    texts = sum(work.count for work in plan.images if work.what.startswith("texts "))
    images = sum(work.count for work in plan.images) - texts
    questions = sum(work.count for work in plan.questions)
    scores = sum(work.count for work in plan.scores)
    scored = f", {scores:,} images to score" if plan.scores else ""
    steps = sum(work.count for work in plan.steps)
    taken = f", {texts:,} texts, {steps:,} steps of round trips" if plan.steps else ""
    output.print(
        f"{plan.cells:,} cells: {images:,} images to make{taken}, {questions:,} questions to ask"
        f"{scored}; US dollars: {_usd(plan.usd)}, time: {time(plan.seconds)}, disk: "
        f"{_size(plan.size)}"
    )
    for count in plan.rows:
        only = f": {', '.join(count.only)}" if count.only else ""
        output.print(
            f"{count.suite}: {count.rows:,} of {count.of:,} rows{only}",
            style="dim",
            highlight=False,
            markup=False,
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
