"""Prints what items are like: faulty ones, how hard they are, and what a short form is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .console import console, new_table, print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..eval.studies.items import ItemReport, ItemResult, LinkedScore

_SHOWN = 20


def print_items(report: ItemReport, out: Path) -> None:
    """Prints the flagged items, the range of all, and the errors of the short form."""
    from ..eval.studies.items import SHORT_FORM, TABLE

    output = console(width=140)
    output.print(
        f"{report.suite}, {report.judge}: {len(report.items):,} prompts, "
        f"{len(report.generators):,} generators",
        highlight=False,
    )
    missing = sum(generator.missing for generator in report.generators)
    if missing:
        answers = len(report.items) * len(report.generators)
        output.print(f"{missing:,} of {answers:,} answers missing: excluded, not counted as wrong")
    columns = ("5 %", "median", "95 %", "median error")
    table = new_table("of all prompts", *columns, numbers=columns)
    for name in ("difficulty", "discrimination"):
        values = [getattr(item, name) for item in report.items]
        errors = [getattr(item, f"{name}_error") for item in report.items]
        ends = np.quantile(values, [0.05, 0.5, 0.95])
        table.add_row(name, *(f"{value:.2f}" for value in (*ends, np.median(errors))))
    output.print(table)
    flagged = [item for item in report.items if item.flags]
    counts = {flag: sum(flag in item.flags for item in report.items) for flag in _flags(report)}
    listed = ", ".join(f"{count:,} {flag}" for flag, count in counts.items())
    output.print(f"flagged: {listed or 'none'}", highlight=False)
    if flagged:
        output.print(_flagged_table(flagged))
    if len(flagged) > _SHOWN:
        print_note(f"{len(flagged) - _SHOWN:,} more are in {out / TABLE}")
    if report.short_form:
        numbers = ("prompts", "error, points")
        table = new_table("score from", *numbers, numbers=numbers)
        count = len(report.short_form.items)
        table.add_row("short form", f"{count:,}", f"{100 * report.short_form.error:.1f}")
        for number, error in report.short_form.random_errors.items():
            table.add_row("random prompts", f"{number:,}", f"{100 * error:.1f}")
        output.print(table)
        print_note(
            f"errors of generators that were held out, in {report.short_form.folds} parts; run it "
            f"by `--ids {out / SHORT_FORM}`"
        )
    print_note(f"all prompts: {out / TABLE}")


def print_linked(scores: Sequence[LinkedScore]) -> None:
    """Prints what each run would score over all prompts."""
    numbers = ("prompts", "of", "right in all, %")
    table = new_table("run", "judge", *numbers, numbers=numbers)
    for score in scores:
        value = score.scaled(100).text("%")
        table.add_row(score.run, score.judge, f"{score.n:,}", f"{score.prompts:,}", value)
    console(width=140).print(table)


def _flags(report: ItemReport) -> list[str]:
    return sorted({flag for item in report.items for flag in item.flags})


def _flagged_table(items: list[ItemResult]) -> object:
    numbers = ("n", "difficulty", "discrimination", "95 % CI", "infit")
    table = new_table("item", "prompt", *numbers, "flags", numbers=numbers)
    order = sorted(items, key=lambda item: (item.discrimination, item.item))
    for item in order[:_SHOWN]:
        low, high = item.discrimination_interval
        table.add_row(
            item.item,
            item.prompt if len(item.prompt) <= 60 else f"{item.prompt[:57]}...",
            f"{item.n:,}",
            f"{item.difficulty:.2f} ± {item.difficulty_error:.2f}",
            f"{item.discrimination:.2f}",
            f"{low:.2f} to {high:.2f}",
            "-" if item.infit is None else f"{item.infit:.2f}",
            " ".join(item.flags),
        )
    return table
