"""What a table of a study shows: lines, columns, and what a paper printed in the same places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...errors import UsageError
from ..suites import SUITES

PEOPLE = "people:"
"""Before the name of a score that compares a judge with people's labels, see `scores`."""
SCORER = "scorer:"
"""Before the name of a scorer of the study: the mean of its scores."""


class TablePart(BaseModel):
    """A part of a study file: no key that isn't known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnLayout(TablePart):
    """One column."""

    suite: str | tuple[str, ...]
    """Config; several are pooled, for scores against people's labels."""
    score: str
    """One of the suite's scores, `people:...`, or `scorer:NAME`."""
    label: str
    """Above the column."""
    head: str = ""
    """Above the labels of neighbors that have the same."""
    group: str = "all"
    """`all`, or `column=value`."""

    @property
    def suites(self) -> tuple[str, ...]:
        return (self.suite,) if isinstance(self.suite, str) else self.suite

    @property
    def name(self) -> str:
        """Head and label."""
        return f"{self.head} {self.label}".strip()


class PaperLine(TablePart):
    """What a paper printed about one generator or judge."""

    of: str = ""
    """Text in the spec of what the paper means; a study may give the name to something else."""
    values: tuple[float | None, ...] | dict[str, tuple[float | None, ...]]
    """One a column; by judge where the columns are repeated for each."""


class PaperLayout(TablePart):
    """The same table as it was printed."""

    source: str
    """Paper and table."""
    lines: dict[str, PaperLine]
    """By the name of the generator or judge in the study."""


class TableLayout(TablePart):
    """A table."""

    title: str
    rows: Literal["generator", "judge"] = "generator"
    """What a line is of; the other one makes sections where there are several."""
    across: bool = False
    """Repeat the columns for every judge, in place of sections."""
    columns: tuple[ColumnLayout, ...] = Field(min_length=1)
    paper: PaperLayout | None = None
    notes: tuple[str, ...] = ()
    """Below every table, e.g. which of its numbers are no repetition of the paper's."""


def generic_layout(suites: Sequence[str], scorers: Sequence[str] = ()) -> TableLayout:
    """The score that each suite ranks by, the two that it draws as ends of a line, and the study's
    scorers."""
    columns = [
        ColumnLayout(suite=suite, score=score, label=score.removeprefix(SCORER), head=suite)
        for suite in suites
        for score in dict.fromkeys(
            [
                *(SUITES[suite].headline.slope or ()),
                SUITES[suite].headline.score,
                *(f"{SCORER}{name}" for name in scorers),
            ]
        )
    ]
    return TableLayout(title="Headline scores", columns=tuple(columns))


def fitted(table: TableLayout, suites: Sequence[str]) -> TableLayout:
    """The table without columns of suites that a study doesn't have, which a note then says.

    Raises UsageError where none is left.
    """
    kept = [n for n, column in enumerate(table.columns) if set(column.suites) <= set(suites)]
    if len(kept) == len(table.columns):
        return table
    absent = sorted({s for column in table.columns for s in column.suites} - set(suites))
    if not kept:
        raise UsageError(f"{table.title}: the study has none of its suites: {', '.join(absent)}")

    def only(values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(values[place] for place in kept)

    paper = table.paper and table.paper.model_copy(
        update={
            "lines": {
                name: line.model_copy(
                    update={
                        "values": {judge: only(row) for judge, row in line.values.items()}
                        if isinstance(line.values, dict)
                        else only(line.values)
                    }
                )
                for name, line in table.paper.lines.items()
            }
        }
    )
    return table.model_copy(
        update={
            "columns": tuple(table.columns[place] for place in kept),
            "paper": paper,
            "notes": (*table.notes, f"Without the columns of {', '.join(absent)}."),
        }
    )


def layout_problems(table: TableLayout) -> Iterator[tuple[tuple[Any, ...], str]]:
    """What can't be shown of any study: (path of keys, problem)."""
    for number, column in enumerate(table.columns):
        place = ("table", "columns", number)
        for suite in column.suites:
            if suite not in SUITES:
                yield (*place, "suite"), f"no suite {suite!r}: choose from {', '.join(SUITES)}"
            elif not column.score.startswith((PEOPLE, SCORER)):
                known = SUITES[suite].meanings
                bare = column.score.removesuffix("_corrected")
                if bare not in known:
                    problem = f"{suite} has no score {column.score!r}: {', '.join(known)}"
                    yield (*place, "score"), problem
        if len(column.suites) > 1 and not column.score.startswith(PEOPLE):
            yield (*place, "suite"), "only scores against people's labels pool suites"
    for name, line in (table.paper.lines if table.paper else {}).items():
        by_judge = isinstance(line.values, dict)
        rows = list(line.values.values()) if isinstance(line.values, dict) else [line.values]
        if by_judge != table.across or any(len(row) != len(table.columns) for row in rows):
            what = " for each judge" if table.across else ""
            problem = f"give {len(table.columns)} values{what}, one a column"
            yield ("table", "paper", "lines", name), problem
