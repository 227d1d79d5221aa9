"""A study as one table: scores with intervals, tied groups and what a paper printed.

Every number carries its qualifications: a cell that isn't done is never a plain number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from ..core import ALL, Score, describe, without_nan
from ..engine.image_scores import scoring_identity
from ..engine.run import RunHeader
from ..results.changes import QualityReport, claim_text, quality_report_of
from ..results.kept_scores import computed, kept_name
from ..results.leaderboard import leaderboard
from ..results.marks import MARKS
from ..results.quality import ImageQuality, read_quality
from ..results.scoring import (
    JudgedRun,
    Result,
    ScoreSettings,
    run_labels,
    score_run,
    with_outcomes,
)
from ..results.tables import effective_text, exclusions_text
from ..stats.equivalence import claims
from ..stats.estimate import value_text
from ..stats.intervals import Interval
from ..store.verdicts import VerdictLog
from ..suites import SUITES
from ..suites.scoring import MANY
from .figures import FIGURES, TABLE_FIGURES
from .folder import Study
from .scores import P_VALUE, find_score, kind_of
from .scores.corpora import read_corpus
from .scores.replicates import mean_quality
from .scores.scope import LabeledRun, ScoreInputs
from .spec import BIASED, Cell, StudyFile, labels_of
from .status import CellStatus, RunImages, iter_runs
from .table_layout import (
    DEVIATION,
    ColumnLayout,
    LineLayout,
    PaperLine,
    TableLayout,
    generic_layout,
    without_missing_suites,
)
from .table_lines import Heading, TableEntry, TableLine

WILDCARD = re.compile(r"[*?\[]")
"""In the name of a line's generator: it stands for all that it fits."""
_IDS = re.compile(r"(?<= )([0-9a-f]{12})(?= |$)")
Key = tuple[str, str, str]
"""Suite, generator and judge of a cell of the study."""


@dataclass(frozen=True)
class StudyTable:
    """A table with its notes."""

    title: str
    rows: str
    """Subject of a line: `generator`, `judge` or `corpus`."""
    columns: Sequence[Heading]
    lines: Sequence[TableLine]
    source: str
    """Source of the paper's values; empty without any."""
    notes: Sequence[str]
    """Notes that cells refer to by number."""
    remarks: Sequence[str]
    """Remarks on all cells: models, samples, n."""
    changes: Sequence[QualityReport] = ()
    """Effects of each method on bias and quality of its generator, over cells that are done."""
    figure: str = ""
    """Figure of its layout, as SVG; empty without one."""

    @property
    def complete(self) -> bool:
        """Whether every cell is done."""
        return not any(cell.gap for line in self.lines for cell in line.cells)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain: dict[str, Any] = {
            "title": self.title,
            "rows": self.rows,
            "complete": self.complete,
            "columns": [
                {"name": c.name, **vars(c), "suites": list(c.suites)} for c in self.columns
            ],
            "lines": [
                {
                    "name": line.name,
                    "section": line.section,
                    "cells": [cell.to_json() for cell in line.cells],
                }
                for line in self.lines
            ],
            "paper": self.source,
            "notes": list(self.notes),
            "remarks": list(self.remarks),
            "changes": [report.to_json() for report in self.changes],
        }
        return dict(without_nan(plain))


@dataclass(frozen=True)
class TableCells:
    """The cells of a table: those of a study's folder, or of recorded detections."""

    file: StudyFile
    statuses: Mapping[Key, CellStatus]
    entries: Mapping[Key, LabeledRun]
    """Runs with at least one verdict."""
    models: Mapping[str, Mapping[str, Any]]
    """Models behind the names, see `StudyModels.read`."""
    qualities: Mapping[Key, ImageQuality] = field(default_factory=dict)
    """Image quality of each cell with at least one score."""


def study_table(study: Study, layout: TableLayout | None = None) -> StudyTable:
    """Builds the table of a study: by `layout`, the file's layout, or else its headline scores.

    Reads what is there, complete or not, and writes nothing. Raises DataError for bad labels.
    """
    suites = list(study.file.suites)
    layout = layout or study.file.table or generic_layout(suites, list(study.file.scorers))
    layout = without_missing_suites(layout, suites)
    return build_table(_cells_of(study, layout), layout)


def build_table(cells: TableCells, layout: TableLayout) -> StudyTable:
    """Builds a table of cells by a layout whose suites they have."""
    return _Table(cells, layout).build()


def _cells_of(study: Study, layout: TableLayout) -> TableCells:
    models = study.models.read()
    groups = any(column.group != ALL for column in layout.columns)
    statuses: dict[Key, CellStatus] = {}
    entries: dict[Key, LabeledRun] = {}
    qualities = {}
    for images, of_run in iter_runs(study, for_scoring=True):
        keys = {(s.cell.suite, s.cell.generator, s.cell.judge): s for s in of_run}
        statuses |= keys
        if images is None:
            continue
        logs = {}
        for key, status in keys.items():
            log = study.log_of(status.cell, images.run)
            if log is not None and not log.is_empty:
                logs[key] = log
            for quality in read_quality(images.run) if status.cell.scorer else ():
                if key[2] not in models["scorers"]:
                    continue
                wanted = scoring_identity(models["scorers"][key[2]]["identity"], status.cell.frames)
                if quality.identity == wanted:
                    score = replace(quality.score, name=key[2])
                    qualities[key] = replace(quality, scorer=key[2], score=score)
        if logs:
            entries |= _scored(study, of_run[0].cell, images, logs, groups)
    return TableCells(study.file, statuses, entries, models, qualities)


def _scored(
    study: Study, cell: Cell, images: RunImages, logs: Mapping[Key, VerdictLog], groups: bool
) -> dict[Key, LabeledRun]:
    """Scores one run, which is read once for all of its judges, or takes its kept scores.

    cell: any of the run's.
    """
    labels, several = labels_of(study.file, cell)
    settings = ScoreSettings(
        labels=labels,
        judges=tuple(log.root.name for log in logs.values()),
        partial=True,
        groups=groups,
    )
    run = images.run
    fresh: list[JudgedRun] = []

    def score() -> list[Result]:
        fresh.extend(score_run(run.root, settings, several, run, images.answers))
        return [judged.result for judged in fresh]

    results = images.scores.results(settings, several, score)
    judged = fresh or with_outcomes(run, results, settings)
    by_people = run_labels(run, labels, several)
    return {
        key: LabeledRun(replace(judged_run, name=cell.generator), by_people, images.scores)
        for key, judged_run in zip(logs, judged, strict=True)
    }


def described(model: Mapping[str, Any]) -> str:
    """A model of a study in a few words, a local one by its folder and the folder around it: many
    are named `model`, as their identities are.

    >>> identity = {"kind": "diffusers", "model": "model", "revision": "4f2a"}
    >>> described({"spec": "diffusers:organisms/p90/model?steps=8", "identity": identity})
    'diffusers:p90/model'
    """
    identity = model["identity"]
    if "spec" not in model:  # published detections, which no spec opens
        return describe(identity)
    # Of a round trip, whose steps have options of their own, this is no folder.
    folder = Path(model["spec"].partition(" + ")[0].partition("?")[0].partition(":")[2])
    if folder.name and folder.name == identity.get("model") and len(folder.parts) > 1:
        identity = {**identity, "model": "/".join(folder.parts[-2:])}
    return describe(identity)


@dataclass
class _Table:
    cells: TableCells
    layout: TableLayout
    notes: list[str] = field(default_factory=list)

    @cached_property
    def generators(self) -> list[str]:
        return list(dict.fromkeys(key[1] for key in self.cells.statuses))

    @cached_property
    def judges(self) -> list[str]:
        return [
            name
            for name in self.cells.file.all_judges
            if name in {k[2] for k in self.cells.statuses}
        ]

    @cached_property
    def headings(self) -> list[tuple[ColumnLayout, Heading]]:
        repeated = self.judges if self.layout.across else [""]
        return [
            (column, Heading(column.head, column.label, column.suites, column.score, judge))
            for judge in repeated
            for column in self.layout.columns
        ]

    def build(self) -> StudyTable:
        paper = self.layout.paper
        lines = list(self._lines())
        has_paper = any(cell.paper is not None for line in lines for cell in line.cells)
        return StudyTable(
            title=self.layout.title,
            rows=self.layout.rows,
            columns=[heading for _, heading in self.headings],
            lines=lines,
            source=paper.source if paper and has_paper else "",
            notes=self.notes,
            remarks=[*self.layout.notes, *self._remarks(lines)],
            changes=list(self._changes()),
            figure=self._figure(lines),
        )

    def _changes(self) -> Iterator[QualityReport]:
        """Compares every generator with its methods, on each suite, over cells that are done."""
        for suite, base in product(self.cells.file.suites, self.cells.file.generators):
            generators = [base, *(f"{base}+{method}" for method in self.cells.file.methods)]
            judged: dict[str, dict[str, JudgedRun]] = {}
            scored: dict[str, list[ImageQuality]] = {}
            for name in generators:
                done = [
                    k
                    for k, s in self.cells.statuses.items()
                    if k[:2] == (suite, name) and not s.gap
                ]
                if done:
                    judged[name] = {
                        k[2]: self.cells.entries[k].judged for k in done if k in self.cells.entries
                    }
                    scored[name] = [
                        self.cells.qualities[k] for k in done if k in self.cells.qualities
                    ]
            if base in judged and len(judged) > 1:
                yield quality_report_of(judged, scored, suite, self.cells.file.margins)

    def _lines(self) -> Iterator[TableLine]:
        if self.layout.rows == "corpus":
            yield from map(self._corpus, self.cells.file.corpora)
            return
        by_generator = self.layout.rows == "generator"
        line_names = self._shown_generators if by_generator else self.judges
        sections = self.judges if by_generator else self._shown_generators
        named = by_generator and (self.layout.across or self._judges_are_named)
        if named or self.layout.pooled:
            sections = [""]
        for section in sections:
            axis = "judge" if by_generator else "generator"
            title = f"{axis} {section}" if len(sections) > 1 else ""
            for name in list(self._named_lines(section)) if self.layout.lines else line_names:
                yield TableLine(name, title, self._cells(name, section))

    def _named_lines(self, section: str) -> Iterator[str]:
        """Names of the layout's lines that have a cell in the study."""
        for name, line in self.layout.lines.items():
            keys = (
                key
                for column, heading in self.headings
                for key in self._keys(column, line, name, heading.judge or section)
            )
            if any(key in self.cells.statuses for key in keys):
                yield name

    @cached_property
    def _shown_generators(self) -> list[str]:
        """Generators that have a line; those with methods only if no column names its method."""
        if all(column.method == "*" for column in self.layout.columns):
            return self.generators
        return [name for name in self.generators if name in self.cells.file.generators]

    @property
    def _judges_are_named(self) -> bool:
        """Whether no cell takes its judge from a section."""
        lines = self.layout.lines.values()
        return all(column.judge for column in self.layout.columns) or bool(
            lines and all(line.judge for line in lines)
        )

    def _corpus(self, name: str) -> TableLine:
        corpus = read_corpus(Path(self.cells.file.corpora[name]))
        printed = self.layout.paper.lines.get(name) if self.layout.paper else None
        return TableLine(
            name,
            "",
            [
                TableEntry(corpus.scores[column.score], paper=_printed(printed, place, ""))
                for place, column in enumerate(self.layout.columns)
            ],
        )

    def _cells(self, name: str, section: str) -> list[TableEntry]:
        printed = self.layout.paper.lines.get(name) if self.layout.paper else None
        line = self.layout.lines.get(name, LineLayout())
        cells = []
        for place, (column, heading) in enumerate(self.headings):
            if line.score:
                column = column.model_copy(update={"score": line.score})
            keys = self._keys(column, line, name, heading.judge or section)
            paper = _printed(printed, place % len(self.layout.columns), heading.judge)
            wrong = "" if paper is None else self._other_model(name, keys, printed)
            marks = [self._note(wrong)] if wrong else []
            cells.append(self._cell(column, line, keys=keys, paper=paper, marks=marks))
        return cells

    def _quality(self, column: ColumnLayout, key: Key) -> Score | None:
        """Mean or deviation for a scorer's column; None if nothing was scored."""
        quality = self.cells.qualities.get(key)
        if quality is None or not quality.score.n:
            return None
        return quality.deviation if column.score.endswith(DEVIATION) else quality.score

    def _keys(self, column: ColumnLayout, line: LineLayout, name: str, section: str) -> list[Key]:
        """Cells of the study behind one entry of the table."""
        by_generator = self.layout.rows == "generator"
        # A line without a method is of the generator alone, whatever stands around the star.
        starred = "*" in column.method and not line.method
        method = "" if starred else column.method.replace("*", line.method)
        judge = column.judge or line.judge or (section if by_generator else name)
        judge = column.scorer or judge
        generator = line.generator or (name if by_generator else section)
        conditions = [generator] if isinstance(generator, str) else generator
        generators = [
            f"{replicate}+{method}" if method else replicate
            for condition in conditions
            for replicate in self._replicates(condition)
        ]
        keys = [
            (suite, generator_name, judge)
            for suite in column.suites
            for generator_name in (self.generators if self.layout.pooled else generators)
        ]
        return [k for k in keys if k in self.cells.statuses] if self.layout.pooled else keys

    def _replicates(self, pattern: str) -> list[str]:
        """Generators that a name with a wildcard stands for, or the one that has the name; each
        with the method, if the name has one."""
        base, plus, method = pattern.partition("+")
        fitting = [name for name in self.cells.file.all_generators if fnmatchcase(name, base)]
        return [f"{name}{plus}{method}" for name in fitting] if WILDCARD.search(base) else [pattern]

    def _conditions(self, line: LineLayout) -> list[int]:
        """Number of the condition of each generator of a line that lists several."""
        if isinstance(line.generator, str):
            return []
        return [n for n, c in enumerate(line.generator) for _ in self._replicates(c)]

    def _subtracted(self, keys: Sequence[Key], line: LineLayout) -> list[Key]:
        """Cells that a line's `less` takes from its own; empty without it."""
        if not line.less:
            return []
        suite, _, judge = keys[0]
        return [(suite, name, judge) for name in self._replicates(line.less)]

    def _around(self, score: str, key: Key) -> list[Key]:
        """Cells that a score reads besides its own."""
        suite, generator, judge = key
        kind = kind_of(score)
        if kind is None or kind.needs == "own":
            return []
        if kind.needs == "base":
            return [(suite, generator.partition("+")[0], judge)]
        read = kind.reads and kind.reads(score.partition(":")[2], generator)
        return [
            k
            for k in self.cells.statuses
            if k[0] == suite
            and k[2] == judge
            and (read is None or any(fnmatchcase(k[1], pattern) for pattern in read))
        ]

    def _scope(self, score: str, keys: Sequence[Key], line: LineLayout) -> ScoreInputs | None:
        """Inputs of a score; None if one of its own cells has no verdict at all."""
        entries = [self.cells.entries[key] for key in keys if key in self.cells.entries]
        if not entries or len(entries) < len(keys):
            return None
        less = self._subtracted(keys, line)
        subtracted = [self.cells.entries[k] for k in less if k in self.cells.entries]
        if line.less and not subtracted:
            return None
        around = {
            neighbor[1]: self.cells.entries.get(neighbor)
            for key in (*keys, *less)
            for neighbor in self._around(score, key)
        }
        rivals = {name: entry for name, entry in around.items() if entry is not None}
        base = rivals.get(keys[0][1].partition("+")[0])
        return ScoreInputs(
            entries,
            subtracted,
            self._conditions(line),
            base,
            rivals,
            name=keys[0][1],
            by_verdict=line.by_verdict,
        )

    def _score(self, column: ColumnLayout, keys: Sequence[Key], line: LineLayout) -> Score | None:
        if column.scorer and (len(keys) > 1 or line.less):
            qualities, bases = (
                [self.cells.qualities[key] for key in of if key in self.cells.qualities]
                for of in (keys, self._subtracted(keys, line))
            )
            matched = len(qualities) == len(keys) and len(bases) == (len(keys) if line.less else 0)
            return mean_quality(qualities, bases) if matched else None
        if column.scorer:
            return self._quality(column, keys[0])
        scope = self._scope(column.score, keys, line)
        return find_score(column.score, column.group, scope) if scope else None

    def _cell(
        self,
        column: ColumnLayout,
        line: LineLayout,
        *,
        keys: Sequence[Key],
        paper: float | None,
        marks: list[int],
    ) -> TableEntry:
        statuses = [self.cells.statuses[key] for key in keys if key in self.cells.statuses]
        if not statuses:  # left out of the study: `except` or `only`
            return TableEntry(None, paper=paper, notes=tuple(marks))
        subtracted = [(suite, generator, column.less) for suite, generator, _ in keys]
        around = [
            *dict.fromkeys(around for key in keys for around in self._around(column.score, key)),
            *self._subtracted(keys, line),
            *(subtracted if column.less else ()),
        ]
        statuses += [
            self.cells.statuses[k] for k in around if k in self.cells.statuses and k not in keys
        ]
        if len({key[1] for key in keys}) > 1 and not self.layout.pooled:  # replicates
            gap = "; ".join(dict.fromkeys(s.gap for s in statuses if s.gap))
        else:
            gap = "; ".join(_gap(s, keys, len(statuses)) for s in statuses if s.gap)
        if gap:
            marks.append(self._note(gap))
        entries = [self.cells.entries[key] for key in keys if key in self.cells.entries]
        score = self._score(column, keys, line)
        if column.less:
            score = less(score, self._score(column, subtracted, line))
        failed = any(s.state == "failed" for s in statuses)
        if failed and not any(s.verdicts.get("answered") for s in statuses):
            score = None
        for entry in entries:
            if not column.scorer:
                marks += [self._note(MARKS[name].legend) for name in entry.judged.result.marks]
            if (odd := self._settings(entry)) and len(self._kinds(keys[0][0])) > 1:
                marks.append(self._note(odd))
        if score is not None and line.less and (claim := self._claim(column, score)):
            marks.append(self._note(claim))
        if score is not None:
            marks += [self._note(text) for text in _warnings(score)]
            if column.scorer:
                marks += [self._note(MARKS[name].legend) for name in score.marks]
        elif not gap:
            kind = kind_of(column.score)
            why = kind.lacking if kind else "not computed"
            if column.score.startswith(P_VALUE):
                why = "no test of this number"
            marks.append(self._note(f"{column.name}: {why}"))
        groups = ""
        headline = SUITES[column.suites[0]].headline.score
        if column.score == headline and column.group == ALL and not column.less:
            groups = self._ties.get((column.suites[0], keys[0][2]), {}).get(keys[0][1], "")
        return TableEntry(score, gap, groups, paper, tuple(sorted(set(marks))))

    def _claim(self, column: ColumnLayout, change: Score) -> str:
        """What a difference shows against the margin that the study states; empty without one."""
        margin = self.cells.file.margins.get(column.measured)
        if margin is None:
            return ""
        lower = any(
            SUITES[suite].headline.score == column.measured
            and SUITES[suite].headline.better == "lower"
            for suite in column.suites
        )
        low, high = change.interval
        loss = replace(change, value=-change.value, interval=Interval(-high, -low))
        (claim,) = claims([loss if lower else change], margin)
        return f"{column.measured}: {claim_text(claim, margin, change.unit)}"

    @cached_property
    def _ties(self) -> dict[tuple[str, str], dict[str, str]]:
        """(Suite, judge) -> generator -> letters, over the cells that are done."""
        ties = {}
        for suite in self.cells.file.suites:
            for judge in self.judges:
                done = [
                    entry
                    for key, entry in self.cells.entries.items()
                    if key[0] == suite and key[2] == judge and not self.cells.statuses[key].gap
                ]
                if len(done) > 1:
                    ties[suite, judge] = _ties_of(suite, done)
        return ties

    def _settings(self, entry: LabeledRun) -> str:
        """Sample and judge settings of an entry, in words; a column's entries should share them."""
        header, identity = entry.judged.result.run, entry.judged.result.card.identity
        probes = sorted(entry.judged.result.card.probes)
        probes_text = f", asked also {' and '.join(probes)}" if probes else ""
        persona = identity.get("persona", "standard")
        persona_text = f", persona {persona}" if persona != "standard" else ""
        frames_text = f", frames {identity['frames']}" if "frames" in identity else ""
        return f"{_sample(header)}{probes_text}{persona_text}{frames_text}"

    def _kinds(self, suite: str) -> dict[str, None]:
        """Different settings of the runs of a suite, in the order of the table."""
        entries = (entry for key, entry in self.cells.entries.items() if key[0] == suite)
        return dict.fromkeys(self._settings(entry) for entry in entries)

    def _other_model(
        self, name: str, keys: Sequence[tuple[str, str, str]], printed: PaperLine | None
    ) -> str:
        """Note if the paper's line is of another model than the study's; empty otherwise."""
        if printed is None or not printed.of:
            return ""
        if self.layout.rows == "judge":
            specs = {
                self.cells.file.all_judges[key[2]] for key in keys if key in self.cells.statuses
            }
        else:
            # Without methods: they differ by column, and one note is enough for a line.
            specs = {
                self.cells.statuses[key].cell.model.partition(" + ")[0]
                for key in keys
                if key in self.cells.statuses
            }
        other_specs = sorted(  # nobody recorded the model of bare detections
            spec for spec in specs if spec and printed.of.lower() not in spec.lower()
        )
        if not other_specs:
            return ""
        models = " and ".join(other_specs)
        return f"the paper's {name} is {printed.of}; here the name stands for {models}"

    def _note(self, text: str) -> int:
        if text not in self.notes:
            self.notes.append(text)
        return self.notes.index(text) + 1

    def _figure(self, lines: Sequence[TableLine]) -> str:
        """Figure of the layout, over cells that are done, as SVG; empty without one."""
        if not self.layout.figure:
            return ""
        if self.layout.figure in TABLE_FIGURES:
            headings = [heading for _, heading in self.headings]
            return TABLE_FIGURES[self.layout.figure](headings, lines, self.layout.title)
        draw = FIGURES[self.layout.figure]
        column = self.layout.columns[0]
        cells_by_judge = {}
        for judge in self.judges:
            keys = [
                key
                for key in self.cells.entries
                if key[0] in column.suites and key[2] == judge and not self.cells.statuses[key].gap
            ]
            if keys:
                cells_by_judge[judge] = {
                    f"{key[0]} {key[1]}": self.cells.entries[key] for key in keys
                }
        return draw(cells_by_judge, self.layout.title)

    def _remarks(self, lines: Sequence[TableLine]) -> Iterator[str]:
        if self.layout.rows == "corpus":
            for name, folder in self.cells.file.corpora.items():
                yield f"corpus {name}: {folder}, judged by {read_corpus(Path(folder)).judge}."
        else:
            file = self.cells.file
            suites_by_data: dict[str, list[str]] = {}
            for suite in file.suites:
                suites_by_data.setdefault(file.data_of(suite), []).append(suite)
            for data, suites in suites_by_data.items():
                among = f" of {', '.join(suites)}" if len(suites_by_data) > 1 else ""
                yield f"Data{among}: {data}."
        for suite in dict.fromkeys(s for column in self.layout.columns for s in column.suites):
            kinds = self._kinds(suite)
            if kinds:
                yield f"{suite}: {'; elsewhere '.join(kinds)}."
        yield from self._models()
        if any(cell.groups for line in lines for cell in line.cells):
            yield (
                "Generators that share a letter can't be told apart: paired comparisons, adjusted "
                "by Holm over all pairs of a column. Only scores that a suite ranks by have "
                "letters."
            )
        if any(not c.score and not c.gap and not c.notes for line in lines for c in line.cells):
            yield "An empty place is not part of the study."
        populations: dict[str, list[str]] = {}
        for suite in dict.fromkeys(s for column in self.layout.columns for s in column.suites):
            populations.setdefault(SUITES[suite].population, []).append(suite)
        kinds_of_others = "; ".join(
            f"other {population}" + (f" ({', '.join(suites)})" if len(populations) > 1 else "")
            for population, suites in populations.items()
        )
        yield f"In brackets: 95 % intervals, for {kinds_of_others or 'other items'}."
        for line in lines:
            counted = [
                (heading, cell.score)
                for (_, heading), cell in zip(self.headings, line.cells, strict=True)
                if cell.score is not None
            ]
            if counted:
                ns = ", ".join(f"{heading.name} {_count(score)}" for heading, score in counted)
                lost = "; ".join(
                    f"{heading.name} {text}"
                    for heading, score in counted
                    if (text := exclusions_text(score))
                )
                where = f"{line.name}, {line.section}" if line.section else line.name
                yield f"n of {where}: {ns}." + (f" Excluded: {lost}." if lost else "")
        for run, alphas in self._alphas().items():
            yield f"{run}: Krippendorff's alpha of all who answered {alphas}."
        for folder, notes in self._run_notes():
            yield f"{folder}: {'; '.join(notes)}."

    def _models(self) -> Iterator[str]:
        """Models behind the names; a generator may have another one on some suites."""
        models = self.cells.models
        for name in self.generators:
            behind: dict[str, list[str]] = {}
            for run, model_record in models["generators"].items():
                suite, _, generator = run.partition("/")
                if generator == name and suite in self.cells.file.suites:
                    behind.setdefault(described(model_record), []).append(suite)
            model_texts = [
                f"{model} ({', '.join(suites)})" if len(behind) > 1 else model
                for model, suites in behind.items()
            ]
            if model_texts:
                yield f"generator {name}: {'; '.join(model_texts)}."
        for kind, rater_names in (
            ("judge", self.judges),
            ("scorer", list(self.cells.file.scorers)),
        ):
            for name in rater_names:
                if (model := models[f"{kind}s"].get(name)) is not None:
                    frame_choices = [
                        q.frames for key, q in self.cells.qualities.items() if key[2] == name
                    ]
                    clips = "; ".join(
                        f"the mean of {text}" for text in sorted({*frame_choices} - {""})
                    )
                    clip_text = f", of a clip {clips}" if clips else ""
                    yield f"{kind} {name}: {described(model)}{clip_text}."

    def _alphas(self) -> dict[str, str]:
        """Run -> alpha of each question, over its judges in the table and people."""
        return {
            f"{suite} x {generator}": ", ".join(
                f"{question} {value_text(value, '1')}" for question, value in alpha.items()
            )
            for (suite, generator, _), entry in self.cells.entries.items()
            if (alpha := entry.judged.result.alpha)
        }

    def _run_notes(self) -> Iterator[tuple[str, Sequence[str]]]:
        notes_by_run: dict[str, dict[str, None]] = {}
        for (suite, generator, _), entry in self.cells.entries.items():
            for note in entry.judged.result.notes:
                notes_by_run.setdefault(f"{suite} x {generator}", {})[note] = None
        for run, notes in notes_by_run.items():
            yield run, list(notes)


def _ties_of(suite: str, done: Sequence[LabeledRun]) -> dict[str, str]:
    """Name -> letters of the tied groups that it is in, computed or kept."""

    def compare() -> dict[str, str]:
        board = leaderboard(suite, SUITES[suite].headline, [entry.judged for entry in done])
        return {standing.name: standing.groups for standing in board.standings}

    runs = [entry.scores for entry in done if entry.scores is not None]
    if len(runs) < len(done):
        return compare()
    compared = [(entry.judged.name, entry.judged.log.root) for entry in done]
    name = kept_name("ties", suite, compared)
    inputs = kept_name("inputs", compared, [run.digest for run in runs])
    return computed(name, inputs, dict[str, str], compare, lambda: all(r.is_same() for r in runs))


def less(score: Score | None, other: Score | None) -> Score | None:
    """The difference of two scores, without an interval; None if either is missing."""
    if score is None or other is None:
        return None
    return Score(
        score.value - other.value, n=min(score.n, other.n), name=score.name, unit=score.unit
    )


def _gap(status: CellStatus, own_keys: Sequence[Key], several: int) -> str:
    """Missing work of a cell, with its name if several count."""
    cell = status.cell
    if (cell.suite, cell.generator, cell.judge) not in own_keys:
        return f"{cell.suite} x {cell.generator}: {status.gap}"
    return f"{cell.suite}: {status.gap}" if several > 1 else status.gap


def _printed(line: PaperLine | None, place: int, judge: str) -> float | None:
    if line is None:
        return None
    values = line.values.get(judge) if isinstance(line.values, Mapping) else line.values
    return None if values is None else values[place]


def _sample(header: RunHeader) -> str:
    rows = f"{header.rows:,} rows" + ("" if header.limit is None else f" of limit {header.limit}")
    chosen = f" {header.where}".removesuffix(f" {BIASED}")
    # A file of ids is a digest among the fields.
    rows += "," + _IDS.sub(r"the ids of digest \1", chosen) if chosen.strip() else ""
    rows += ", biased cases" if len(chosen) <= len(header.where) else ""
    several = "s" if header.seeds > 1 else ""
    seeds = f"{header.seeds} seed{several}"
    if header.common_seeds:
        seeds = f"seed{several} {', '.join(map(str, header.common_seeds))}"
    return f"{rows}, {seeds}, digest {header.rows_sha256[:8]}"


def _count(score: Score) -> str:
    """n, with the effective n where it is another."""
    effective = effective_text(score)
    n = f"{score.n:,}"
    return n if effective in ("", n) else f"{n} (effective {effective})"


def _warnings(score: Score) -> Iterator[str]:
    """Warnings that qualify a number."""
    left_out = sum(score.excluded.values())
    if left_out > MANY * (score.n + left_out):
        yield "more than a tenth is excluded: see below for what, and for the interval with it"
    if score.warning:
        yield f"interval: {score.warning}"
    if math.isnan(score.value):
        yield "undefined: nothing is there to count"
