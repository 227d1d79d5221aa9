"""Scores as rows and as a table of text, for terminals, notebooks and data frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core import ALL, Score, describe
from ..stats.estimate import interval_text, p_text, value_text
from ..suites import open_suite
from .marks import MARKS, legends, marked_value
from .scoring import Result

FIRST = "pair_type="
"""Prefix of the groups that come first: the papers break scores down by pair type."""
FEW = 10
"""Items below which a group is folded: its intervals are too wide to inform."""


def exclusions_text(score: Score) -> str:
    """Counts of the items that a score excludes, and its interval whatever these are."""
    counts = ", ".join(f"{n} {label}" for label, n in score.excluded.items() if n)
    if score.bounds.low == score.bounds.low:
        counts += f"; with them {interval_text(score.bounds, score.unit)}"
    return counts


def cells(score: Score) -> tuple[str, ...]:
    """A score as the columns of a table, `COLUMNS`."""
    return (
        score.name,
        score.group,
        marked_value(score),
        interval_text(score.interval, score.unit),
        interval_text(score.these_items, score.unit),
        value_text(score.null, score.unit, ""),
        f"{score.n:,}",
        effective_text(score),
        exclusions_text(score),
    )


def effective_text(score: Score) -> str:
    """Effective number of items, whole; empty where it is unknown."""
    return "" if math.isnan(score.effective) else f"{score.effective:,.0f}"


def read_order(scores: Sequence[Score]) -> list[Score]:
    """The whole config, then the pair types, then all other groups; otherwise as they come."""
    return sorted(
        scores, key=lambda s: 0 if s.group == ALL else 1 if s.group.startswith(FIRST) else 2
    )


def few(scores: Sequence[Score]) -> Mapping[str, list[str]]:
    """Groups of which no score has `FEW` items: column -> its values, in score order."""
    most: dict[str, int] = {}
    for score in scores:
        most[score.group] = max(score.n, most.get(score.group, 0))
    folded: dict[str, list[str]] = {}
    for group, n in most.items():
        column, separator, value = group.partition("=")
        if separator and n < FEW:
            folded.setdefault(column, []).append(value)
    return folded


COLUMNS = (
    "score",
    "group",
    "value",
    "95 % CI",
    "these items",
    "by chance",
    "n",
    "effective n",
    "excluded",
)


def title(result: Result) -> str:
    """Title of a table of scores: suite, generator and judge."""
    return f"{result.run.suite}: {describe(result.run.generator)}, by {result.judge}"


def score_table(results: Sequence[Result]) -> str:
    """The scores of whole suites as plain text, with everything that qualifies them."""
    return "\n\n".join("\n".join(_lines(result)) for result in results)


def _lines(result: Result) -> Iterator[str]:
    yield title(result)
    rows = [COLUMNS, *(cells(score) for score in result.scores if score.group == ALL)]
    rows = [row[:1] + row[2:] for row in rows]  # the group is `all` in every line
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *numbers, excluded in rows:
        aligned = (f"{cell:>{w}}" for cell, w in zip(numbers, widths[1:-1], strict=True))
        yield "  ".join([f"{name:<{widths[0]}}", *aligned, excluded]).rstrip()
    yield from remarks(result)


def leading(result: Result) -> list[Score]:
    """The headline score with its checks, in all groups, and scores that no sentence of the suite
    explains, as these were asked for."""
    suite = open_suite(result.run.suite)
    return [
        s for s in result.scores if suite.headline.leads(s.name) or s.name not in suite.meanings
    ]


def remarks(result: Result, scores: Sequence[Score] | None = None) -> Iterator[str]:
    """What the intervals are for, warnings about them, each once with its scores, and notes on the
    run, and its marks. scores: those that warnings are about; all of the result's by default."""
    yield population_text(result.run.suite)
    warned: dict[str, list[str]] = {}
    for score in result.scores if scores is None else scores:
        if score.warning and score.group == ALL:
            warned.setdefault(score.warning, []).append(score.name)
    yield from (f"{', '.join(score_names)}: {warning}" for warning, score_names in warned.items())
    explained = {MARKS[name].legend for name in result.marks}
    yield from (
        f"note: {note}" for note in result.notes if note not in (*explained, *result.doubts)
    )
    yield from legends(result.marks)


def population_text(suite: str) -> str:
    """The two estimands of a suite's scores, and the effective n, in a line."""
    population = open_suite(suite).population
    return (
        f"95 % CI: for other {population}. These items: for new images of the same prompts. "
        f"Effective n: independent images whose interval would be as wide as that for other "
        f"{population}."
    )


def score_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One row for each score: all of its fields, with suite, generator and judge."""
    return [
        {
            "suite": result.run.suite,
            "generator": describe(result.run.generator),
            "judge": result.judge,
            "score": score.name,
            "group": score.group,
            "value": score.value,
            "low": score.interval.low,
            "high": score.interval.high,
            "these_items_low": score.these_items.low,
            "these_items_high": score.these_items.high,
            "null": score.null,
            "n": score.n,
            "effective_n": score.effective,
            "unit": score.unit,
            "excluded": exclusions_text(score),
            "bounds_low": score.bounds.low,
            "bounds_high": score.bounds.high,
            "p_value": score.p_value,
            "q_value": score.q_value,
            "warning": score.warning,
            "marks": " ".join(score.marks),
        }
        for result in results
        for score in result.scores
    ]


DISCOVERED = 0.05
"""False discovery rate at which groups are named."""


def discoveries(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each score and column of groups with q-values: which groups differ from chance.

    And one that says how many intervals of groups miss the truth.
    """
    by_column: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        if score.q_value == score.q_value:
            by_column.setdefault((score.name, score.group.partition("=")[0]), []).append(score)
    for (name, column), of_groups in by_column.items():
        found = ", ".join(
            f"{score.group.partition('=')[2]} (q {p_text(score.q_value)})"
            for score in of_groups
            if score.q_value <= DISCOVERED
        )
        yield (
            f"{name} by {column}: of {len(of_groups):,} groups these differ from chance, with 5 % "
            f"false ones among them (Benjamini-Hochberg): {found or 'none'}"
        )
    groups = {score.group for score in scores if "=" in score.group}
    if groups:
        yield (
            f"Each of the {len(groups):,} groups has an interval of its own for each score: one in "
            f"20 misses the truth, and the most striking groups are the likeliest"
        )
