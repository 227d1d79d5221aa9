"""Layout of a study's table: lines, columns, and the numbers of a paper in the same places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...errors import UsageError
from ..results.clips import score_meanings
from ..suites import SUITES
from .scores import P_VALUE, corpora, kind_of, name_problem

StudyFault = tuple[tuple[Any, ...], str, str]
"""Path of keys in a study file, code of the error, and the problem in words."""

SCORER = "scorer:"
"""Before the name of a scorer of the study: the mean of its scores."""
DEVIATION = ":deviation"
"""After the name: their standard deviation instead."""


class TablePart(BaseModel):
    """Section of a study file; unknown keys are faults."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnLayout(TablePart):
    """One column."""

    suite: str | tuple[str, ...] = ()
    """Config; several are pooled if the kind of the score allows it. None for corpora."""
    score: str
    """One of the suite's scores, of a kind (``PREFIX:NAME``, see `scores`), of a corpus, or of a
    scorer, ``scorer:NAME`` or ``scorer:NAME:deviation``."""
    label: str
    """Above the column."""
    head: str = ""
    """Above the labels of neighbors that have the same."""
    group: str = "all"
    """`all`, or `column=value`."""
    method: str = "*"
    """The method of the study that the column's cells are of, empty for none; `*` stands for that
    of the line, and the whole for none if the line has none."""
    judge: str = ""
    """Judge of the column's cells; if empty, that of the line or section."""
    less: str = ""
    """Judge whose number of the same images is subtracted; empty for none."""

    @property
    def suites(self) -> tuple[str, ...]:
        return (self.suite,) if isinstance(self.suite, str) else self.suite

    @property
    def measured(self) -> str:
        """Name of the score without the prefix of replicates, or of the scorer."""
        return self.scorer or self.score.removeprefix("replicates:")

    @property
    def scorer(self) -> str:
        """Name of the scorer whose scores it shows; empty for none."""
        of_scorer = self.score.startswith(SCORER)
        return self.score.removeprefix(SCORER).removesuffix(DEVIATION) if of_scorer else ""

    @property
    def name(self) -> str:
        """Head and label."""
        return f"{self.head} {self.label}".strip()


class LineLayout(TablePart):
    """Line whose generator, judge or score differs from its name."""

    generator: str | tuple[str, ...] = ""
    """Name in the study; else the name of the line, or of its section. A name with a wildcard, such
    as ``90-?``, stands for all generators that it fits: replicates of one condition, e.g. trainings
    that differ in their seed. A list has several conditions, in order."""
    less: str = ""
    """Generators whose numbers are subtracted, written as `generator`, with ``+METHOD`` for those
    under a method: as many, each from the one in its place."""
    method: str = ""
    """Name in the study, or what `*` stands for in the columns'."""
    judge: str = ""
    """Name in the study; else that of the section, or the name of the line."""
    score: str = ""
    """In place of the columns'."""
    by_verdict: bool = False
    """Whether a judge's labels are compared with people's where it also measures a number."""


class PaperLine(TablePart):
    """Numbers that a paper printed for one generator or judge."""

    of: str = ""
    """Text in the spec of the paper's model; a study may use the name for another model."""
    values: tuple[float | None, ...] | dict[str, tuple[float | None, ...]]
    """One value per column; by judge if the columns are repeated for each."""


class PaperLayout(TablePart):
    """The same table as it was printed."""

    source: str
    """Paper and table."""
    lines: dict[str, PaperLine]
    """Name of the generator or judge in the study -> its line."""


class TableLayout(TablePart):
    """A table."""

    title: str
    rows: Literal["generator", "judge", "corpus"] = "generator"
    """Subject of a line. Lines of generators have a section for each judge, and those of judges one
    for each generator, if there are several."""
    across: bool = False
    """Repeat the columns for every judge, in place of sections."""
    pooled: bool = False
    """One line a judge, of the images of all generators together."""
    lines: dict[str, LineLayout] = {}
    """Name -> line, where there is not one for each generator, judge or corpus. A name with a `*`
    stands for all of the paper's lines that fit it; each `*` of its generator for the same text."""
    columns: tuple[ColumnLayout, ...] = Field(min_length=1)
    paper: PaperLayout | None = None
    figure: Literal[
        "",
        "pulls",
        "differences",
        "risk",
        "guidance",
        "categories",
        "courses",
        "pairs",
        "scatter",
        "intervals",
    ] = ""
    """Figure beside the table: a bandit's pulls and regret, judges' scores less human ones, the
    risk of an abstaining checker against its coverage, losses and maps of a guided image, numbers
    by pairs of super-categories; or, of the table's own numbers, a course along the columns for
    each line, a heat map of lines ``A to B``, the first two columns against each other, or the
    first column's intervals, one under the other."""
    notes: tuple[str, ...] = ()
    """Notes below the table, e.g. which of its numbers do not repeat the paper's."""

    @model_validator(mode="after")
    def _expand_lines(self) -> Self:
        paper_lines = self.paper.lines if self.paper else {}
        lines: dict[str, LineLayout] = {}
        for pattern, line in self.lines.items():
            if "*" not in pattern:
                lines[pattern] = line
                continue
            template = re.compile("(.+)".join(map(re.escape, pattern.split("*"))))
            matches = [match for match in map(template.fullmatch, paper_lines) if match]
            if not matches:
                raise ValueError(f"lines: {pattern!r} fits no line of the paper")
            for match in matches:
                start, *pieces = str(line.generator).split("*")
                between = zip(match.groups(), pieces, strict=False)
                generator = start + "".join(text + piece for text, piece in between)
                lines[match.string] = line.model_copy(update={"generator": generator})
        object.__setattr__(self, "lines", lines)
        return self


def generic_layout(suites: Sequence[str], scorers: Sequence[str] = ()) -> TableLayout:
    """Layout of each suite's headline score, the ends of its slope plot, and the study's
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


def without_missing_suites(table: TableLayout, suites: Sequence[str]) -> TableLayout:
    """Drops columns of suites that a study doesn't have, and adds a note about them.

    Raises UsageError if no column remains.
    """
    places = [n for n, column in enumerate(table.columns) if set(column.suites) <= set(suites)]
    if len(places) == len(table.columns):
        return table
    absent = sorted({s for column in table.columns for s in column.suites} - set(suites))
    if not places:
        raise UsageError(
            f"{table.title}: the study has none of its suites: {', '.join(absent)}",
            code="nothing-to-do",
        )

    def only(values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(values[place] for place in places)

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
            "columns": tuple(table.columns[place] for place in places),
            "paper": paper,
            "notes": (*table.notes, f"Without the columns of {', '.join(absent)}."),
        }
    )


def layout_problems(table: TableLayout) -> Iterator[StudyFault]:
    """Faults of a layout, in any study."""
    for number, column in enumerate(table.columns):
        place = ("table", "columns", number)
        if table.rows == "corpus":
            if column.suite or column.score not in corpora.NAMES:
                problem = f"a corpus has the scores {', '.join(corpora.NAMES)} and no suite"
                yield (*place, "score"), "unknown-name", problem
            continue
        if not column.suites:
            yield (*place, "suite"), "missing-field", "missing"
        for suite in column.suites:
            if suite not in SUITES:
                problem = f"no suite {suite!r}: choose from {', '.join(SUITES)}"
                yield (*place, "suite"), "unknown-name", problem
            elif problem := _score_problem(suite, column.score):
                yield (*place, "score"), "unknown-name", problem
        kind = kind_of(column.score)
        if len(column.suites) > 1 and not (kind and kind.pools):
            yield (*place, "suite"), "cannot-pool", f"{column.score} is of one suite"
        if table.pooled and not (kind and kind.pools):
            problem = f"{column.score} is of one generator, and the table is pooled"
            yield (*place, "score"), "cannot-pool", problem
    if table.pooled and table.rows != "judge":
        yield ("table", "pooled"), "cannot-pool", "only lines of judges are pooled"
    pooled = (column for column in table.columns if len(column.suites) > 1)
    several = next((c for c in pooled if c.score.startswith(("replicates:", "dose:"))), None)
    for name, line in table.lines.items():
        if several and not isinstance(line.generator, str) and len(line.generator) > 1:
            problem = f"{several.score} of several conditions is of one suite"
            yield ("table", "lines", name), "cannot-pool", problem
        for suite in dict.fromkeys(s for column in table.columns for s in column.suites):
            if line.score and suite in SUITES and (problem := _score_problem(suite, line.score)):
                yield ("table", "lines", name), "unknown-name", problem
    for name, printed in (table.paper.lines if table.paper else {}).items():
        by_judge = isinstance(printed.values, dict)
        rows = (
            list(printed.values.values()) if isinstance(printed.values, dict) else [printed.values]
        )
        if by_judge != table.across or any(len(row) != len(table.columns) for row in rows):
            per_judge = " for each judge" if table.across else ""
            problem = f"give {len(table.columns)} values{per_judge}, one a column"
            yield ("table", "paper", "lines", name), "wrong-count", problem


def _score_problem(suite: str, score: str) -> str:
    """Message for a score that a suite lacks; empty if it has the score."""
    if score.startswith(SCORER):  # checked against the study file's scorers
        return ""
    if kind_of(score):
        return name_problem(score)
    score_names = score_meanings(SUITES[suite])
    score = score.removeprefix(P_VALUE)
    if score.removesuffix("_corrected").removesuffix("_by_gold") in score_names:
        return ""
    return f"{suite} has no score {score!r}: {', '.join(score_names)}"
