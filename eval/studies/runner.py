"""`study run`: does what is missing of a study, and records what became of each cell.

Every model is opened once: a generator for all of its suites, then a judge or a scorer for all of
its runs. A cell that fails is recorded and doesn't hold up the others. Shards of a study do their
parts of all of its runs, each with logs of its own.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml

from ...agents.budget import Spending
from ...errors import CounterpriorError, UsageError
from ...progress import Progress, silent
from ...specs import UNTRUSTED, without_code, without_secrets
from ..checkpoints.placement import LoadError
from ..core import CaseGenerator, Judge
from ..engine.costs import Cost, count_images
from ..engine.data import Rows, read_rows
from ..engine.evaluation import Evaluation, outcomes, plan_cases
from ..engine.image_scores import ScorerFailed, score_images
from ..engine.objections import check_questions
from ..engine.run import Run, RunError
from ..engine.steps import JudgeSettings, check_answering, generate, judge_run, trip_cases
from ..generators import open_generator
from ..judges import Answering, CallPlan, open_judge
from ..methods import apply_methods
from ..roundtrips.models import TripModels
from ..roundtrips.routes import check_start
from ..roundtrips.trip import RoundTrip, TripCase, take_steps
from ..scorers import Scorer, as_scorer
from ..store.shards import RunLock
from ..store.verdicts import JudgeFailed
from ..suites import open_suite
from ..workers.farm import IN_PROCESS, Scale
from .events import StudyEvents
from .folder import Study
from .formats import format_table
from .judge_check import FOLDER, CheckFirst
from .nested import reuse_candidates
from .recipes import find_layout
from .scores.corpora import read_corpus
from .scores.switched import biased, prior_of
from .spec import (
    Cell,
    StudyFile,
    chosen_at,
    parse_study,
    place_text,
    read_study,
    write_study,
)
from .table import study_table

MOST_ERRORS = 0.1
"""Share of errors above which a cell has failed, though every question was asked."""
Rater = Any
"""A judge or a scorer: whatever looks at images."""


@dataclass(frozen=True)
class Failure:
    """A cell that could not be done, and why."""

    cell: Cell
    cause: str


@dataclass
class StudyDone:
    """Result of one `study run`."""

    study: Study
    failures: list[Failure] = field(default_factory=list)
    spending: Spending = field(default_factory=Spending)
    """Sums of all paid calls."""

    def table(self, layout: str = "", form: str = "md") -> str:
        """The study as one table: `layout` is a recipe, `form` one of md, tex, csv and json."""
        return format_table(study_table(self.study, find_layout(layout) if layout else None), form)


def _check_rows(study: Study, rows: Mapping[str, Rows]) -> None:
    """Raises RunError where a run was made with other rows than the data hold now: nothing of it
    may be left to do that would notice."""
    for cell in study.cells:
        run, now = study.run_of(cell), rows[cell.suite].digest
        if run is not None and run.header.rows_sha256 != now:
            raise RunError(
                f"{run.root} was made with other rows of {cell.suite} than "
                f"{study.file.data_of(cell.suite)} has now: give it the release of that "
                f"time, or choose another --out",
                code="different-rows",
            )


def open_model(cell: Cell, models: TripModels) -> CaseGenerator:
    """The generator of a cell, with its methods around it, or its round trip. Raises UsageError for
    a bad spec and for a generator that a method can't reach."""
    if cell.start:
        return RoundTrip(check_start(cell.start), dict(cell.steps), models)
    return apply_methods(open_generator(cell.spec), cell.methods)


def sampled_rows(study: Study, suite: str, rows_of_suite: Rows) -> frozenset[str]:
    """Ids of the rows of a suite that any generator of a study draws."""
    return frozenset(
        row
        for cell in _samples_of(study.cells)
        if cell.suite == suite
        for row in plan_cases(study.run_settings(cell), rows_of_suite)[1]
    )


def _samples_of(cells: Iterable[Cell]) -> list[Cell]:
    """One cell of each different sample of rows; ids also depend on the prompts of a run."""
    samples = {(c.suite, c.limit, c.only, (c.variants, c.seeds) if c.ids else ()): c for c in cells}
    return list(samples.values())


@dataclass(frozen=True)
class ChosenCount:
    """Number of rows that runs of a suite draw."""

    suite: str
    rows: int
    of: int
    """All rows of the suite."""
    only: tuple[str, ...]
    """``FIELD=VALUE``, and a file of ids; empty for all or for a plain sample."""


def choose_rows(
    study: Study, rows: Mapping[str, Rows], text: str, source: str
) -> list[ChosenCount]:
    """Counts the rows that the runs of a study draw, each different choice of a suite once.

    text: of the study's file, `source`. Raises UsageError or DataError that names file, line and
    field for an unknown field, value or id, and for a choice that fits no row.
    """
    counts = []
    for cell in _samples_of(study.cells):
        places = [chosen_at(study.file, cell, key) for key in ("where", "ids")]
        where, ids = (f"{place_text(text, source, place)}:" for place in places)
        of_suite = rows[cell.suite]
        _, row_index, _ = plan_cases(study.run_settings(cell), of_suite, (where, ids))
        counts.append(ChosenCount(cell.suite, len(row_index), len(of_suite.rows), cell.only))
    return list(dict.fromkeys(counts))


def biased_cases(study: Study, cell: Cell) -> frozenset[str]:
    """Cases that any judge calls biased in every order of mention, without the cell's method.

    Raises UsageError for a study that leaves the generator without method out, RunError while it
    is not judged to the end, and where no case is biased.
    """
    bases = [c for c in study.cells if c.run == f"{cell.suite}/{cell.base}" and not c.scorer]
    if not bases:
        raise UsageError(
            f"{cell}: draws the biased cases of {cell.base}, which the study leaves out",
            "take it in, or take `where` out",
            code="no-base-run",
        )
    prior, events = prior_of(open_suite(cell.suite)), StudyEvents(study.root)
    cases: set[str] = set()
    for base in bases:
        run = study.run_of(base)
        log = study.log_of(base, run) if run else None
        if run is None or log is None or not events.is_done(base, run, run.present()):
            raise RunError(
                f"{base} is not done, so its biased cases are not known yet",
                "run `counterprior study run` again when it is",
                code="base-not-done",
            )
        cases |= {case.id for case in biased(outcomes(run, log), *prior)}
    if not cases:
        raise RunError(
            f"{cell.suite} x {cell.base}: no prompt puts the first-mentioned left in both orders",
            "draw more rows",
            code="no-biased-case",
        )
    return frozenset(cases)


def run_study(
    file: Path | str | Mapping[str, Any],
    out: Path | str,
    max_usd: float | None = None,
    changes: Sequence[str] = (),
    progress: Progress = silent,
    scale: Scale = IN_PROCESS,
    trust: bool = True,
    retry_failed: bool = False,
) -> StudyDone:
    """Does what is missing of a study; one cap holds over all of it, earlier commands included.

    file: path of a study file, or what stands in one. max_usd: in place of the file's. changes: as
    in `read_study`. scale: the processes that make and judge, and which part of all runs is this
    one's; the result is the same. trust: whether code that the file names may run. retry_failed:
    whether calls are made once more whose rejection by a server is recorded.
    Raises StudyError for a bad file, RunError where it contradicts what is there, ReleaseError for
    data that can't be read, DataError for a corpus that isn't mined, InUseError where another
    process works here. What fails in a cell is in `failures`.
    """
    out = Path(out)
    source = "the study" if isinstance(file, Mapping) else str(file)
    if isinstance(file, Mapping):
        written = yaml.safe_dump(dict(file), sort_keys=False)
        study_file = parse_study(written, source, changes)
        text = write_study(study_file)
    else:
        study_file = read_study(Path(file), changes)
        text = write_study(study_file) if changes else Path(file).read_text("utf-8")
    if not trust and (code := named_code(study_file)):
        raise UsageError(
            f"{file} would run {', '.join(code)}",
            "read it, and the code that it names, and add --trust",
            code=UNTRUSTED,
        )
    for folder in study_file.corpora.values():
        read_corpus(Path(folder))
    rows = {suite: read_rows(study_file.data_of(suite), suite) for suite in study_file.suites}
    choose_rows(Study(out, study_file), rows, text, source)
    cap = study_file.max_usd if max_usd is None else max_usd
    prices = Path(study_file.prices) if study_file.prices else None
    cost = Cost(study_file.concurrency, cap, prices, retry_failed)
    with RunLock(out, scale.shard, kind="study"), ExitStack() as held:
        study = Study.start(out, study_file, text, held if scale.shard else None)
        _check_rows(study, rows)
        study.models.remember_rows(study.cells)
        with (
            nullcontext() if trust else without_code(str(file)),
            cost.plan(out, scale.shard) as plan,
        ):
            return _Session(study, plan, rows, progress, scale).run(text)


_CODE = re.compile(r"\b(python|command)(:|%3A)", re.IGNORECASE)


def named_code(study: StudyFile) -> list[str]:
    """The texts of a study that name code to run, also within other specs, without passwords.

    Texts are looked at, not opened: one that only looks like a spec is listed as well.
    """
    texts: list[str] = []
    level: list[Any] = [study.model_dump(mode="json", exclude_unset=True)]
    while level:
        inner = [v for v in level if isinstance(v, (dict, list))]
        texts += [v for v in level if isinstance(v, str) and _CODE.search(v)]
        level = [x for v in inner for x in (v.values() if isinstance(v, dict) else v)]
    return sorted({without_secrets(text) for text in texts})


class _Session:
    """One `study run`."""

    def __init__(
        self,
        study: Study,
        plan: CallPlan,
        rows: Mapping[str, Rows],
        progress: Progress,
        scale: Scale,
    ) -> None:
        self.study = study
        self.plan = plan
        self.rows = rows
        self.progress = progress
        self.scale = scale
        self.events = StudyEvents(study.root, scale.shard)
        self.failed: dict[str, Failure] = {}

    def run(self, text: str) -> StudyDone:
        cells = self.study.cells
        with self.events.answers:
            raters = self._open_raters(cells)
            generators = self._open_generators(cells)
            self.study.write_file(text)  # only now: it names no other models than those of the runs
            self._count_images(cells)
            try:
                self._take_steps(cells, generators)
            except BaseException:  # an interrupted notebook goes on: its ledgers must be free
                self._trips.release()
                raise
            self._do([cell for cell in cells if not cell.biased], generators, raters)
            # The verdicts on the other cells decide which cases these draw.
            if chosen := [cell for cell in cells if cell.biased]:
                self._do(chosen, generators, self._open_raters(chosen))
            self._check_answered(cells)
        spending = self.plan.budget.spending
        return StudyDone(self.study, list(self.failed.values()), spending)

    def _do(
        self,
        cells: Sequence[Cell],
        generators: dict[tuple[str, str], CaseGenerator],
        raters: dict[str, Rater],
    ) -> None:
        """Makes the images of cells and judges them, with one model in memory at a time."""
        for model in list(generators):
            cells_of_model = [cell for cell in cells if (cell.generator, cell.model) == model]
            if cells_of_model:
                self._generate(cells_of_model, generators.pop(model), raters)
                _release()
        for name in list(raters):
            cells_of_rater = [cell for cell in cells if cell.judge == name]
            self._rate_cells(cells_of_rater, raters.pop(name))
            _release()

    def _open_raters(self, cells: Sequence[Cell]) -> dict[str, Rater]:
        """Judges and scorers that have something to do and answer at all; none is loaded yet."""
        raters = {}
        models = self.study.models.read()
        for kind in ("judges", "scorers"):
            specs = self.study.file.all_judges if kind == "judges" else self.study.file.scorers
            for name, spec in specs.items():
                cells_of_rater = [c for c in cells if c.judge == name]
                if _is_same(models[kind], name, spec) and all(map(self._is_done, cells_of_rater)):
                    continue
                try:
                    rater = self._open_rater(kind, spec)
                    identity = rater.identity()
                except CounterpriorError as error:
                    self._fail(cells_of_rater, error)
                    continue
                self.study.models.remember(kind, name, spec, identity)
                raters[name] = rater
        return raters

    def _open_rater(self, kind: str, spec: str) -> Rater:
        if kind == "scorers":
            return as_scorer(spec, self.plan)
        judge = open_judge(spec, self.plan)
        check_answering([judge])
        return judge

    @cached_property
    def _trips(self) -> TripModels:
        """The models of all round trips."""
        return TripModels(self.plan, by_paper=self.study.file.by_paper)

    def _take_steps(
        self, cells: Sequence[Cell], generators: Mapping[tuple[str, str], CaseGenerator]
    ) -> None:
        """The steps of all round trips, each model opened for many of them at a time."""
        runs = [
            run for run in runs_of(cells) if run.start and (run.generator, run.model) in generators
        ]

        def wanted() -> Iterator[TripCase]:
            for run in runs:
                trip = generators[run.generator, run.model]
                assert isinstance(trip, RoundTrip)
                settings, rows = self.study.run_settings(run), self.rows[run.suite]
                yield from trip_cases(settings, trip, rows, self.scale.shard)

        if runs:
            # What ends it here ends the runs below, and is said for each of them.
            with suppress(CounterpriorError):
                take_steps(wanted, self._trips, self._named("round trips"), self.scale)

    def _open_generators(self, cells: Sequence[Cell]) -> dict[tuple[str, str], CaseGenerator]:
        """(Name, model) -> those that have images to make; none is loaded yet."""
        generators: dict[tuple[str, str], CaseGenerator] = {}
        models = self.study.models.read()["generators"]
        for model, cells_of_model in cells_by(cells, lambda cell: (cell.generator, cell.model)):
            spec = model[1]
            if all(_is_same(models, c.run, spec) and self._is_made(c) for c in cells_of_model):
                continue
            try:
                generator = open_model(cells_of_model[0], self._trips)
                identity = generator.identity()
            except CounterpriorError as error:
                self._fail(cells_of_model, error)
                continue
            for cell in runs_of(cells_of_model):
                self.study.models.remember("generators", cell.run, spec, identity)
            generators[model] = generator
        return generators

    def _count_images(self, cells: Sequence[Cell]) -> None:
        """Counts what all images so far have cost under the cap, before the first call."""
        for cell in runs_of(cells):
            if (run := self.study.run_of(cell)) is not None:
                count_images(self.plan, run)

    def _check_questions(
        self, cells: Sequence[Cell], raters: Mapping[str, Rater], run: Evaluation
    ) -> None:
        """Fails the cells of a run whose judge can answer none of its questions; raises the error
        where no cell remains."""
        for cell in cells:
            if cell.scorer or cell.judge not in raters:
                continue
            try:
                check_questions([raters[cell.judge]], run, cell.probes, cell.persona, cell.frames)
            except UsageError as error:
                self._fail([cell], error)
                if all(other.key in self.failed for other in cells):
                    raise

    def _generate(
        self, cells: Sequence[Cell], generator: CaseGenerator, raters: Mapping[str, Rater]
    ) -> None:
        """The images of one generator, on all of its suites."""
        runs = runs_of(cells)
        for number, run in enumerate(runs):
            of_run = [cell for cell in cells if cell.suite == run.suite]
            alone = bool(run.methods or run.start)
            try:
                settings = self.study.run_settings(run)
                if run.biased and self.study.run_of(run) is None:
                    settings = replace(settings, cases=biased_cases(self.study, run))
                reuse_candidates(self.study, run, generator)
                done = generate(
                    settings,
                    generator,
                    cost=self.plan,
                    progress=self._named(f"{run.suite} x {run.generator}"),
                    rows=self.rows[run.suite],
                    # Methods draw in one process; the steps of round trips are there by now.
                    scale=Scale(shard=self.scale.shard) if alone else self.scale,
                    spec="" if alone else run.spec,
                    check=partial(self._check_questions, of_run, raters),
                )
                done.run.check_made()
            except LoadError as error:  # no other suite can go better
                remaining_suites = {remaining_run.suite for remaining_run in runs[number:]}
                self._fail([cell for cell in cells if cell.suite in remaining_suites], error)
                return
            except CounterpriorError as error:
                self._fail(of_run, error)

    def _rate_cells(self, cells: Sequence[Cell], rater: Rater) -> None:
        """The answers of one judge, or the scores of one scorer, about all of its runs."""
        for number, cell in enumerate(cells):
            if cell.key in self.failed:
                continue
            broken = False
            self.events.add(cell, "begun")
            try:
                if cell.scorer:
                    self._score(cell, rater)
                else:
                    self._ask(cell, rater)
            except LoadError as error:  # no other run can go better
                self._fail(cells[number:], error)
                return
            except CounterpriorError as error:
                self._fail([cell], error)
                broken = isinstance(error, JudgeFailed)
            if broken and isinstance(rater, Answering):
                # It asks a server no more that failed so often; another suite is another try.
                del rater
                _release()
                try:
                    rater = self._open_rater("judges", self.study.file.all_judges[cell.judge])
                except CounterpriorError as error:
                    self._fail(cells[number + 1 :], error)
                    return

    def _ask(self, cell: Cell, judge: Judge) -> None:
        specs = [self.study.file.all_judges[cell.judge]]
        settings = JudgeSettings(cell.probes, cell.persona, frames=cell.frames)
        progress = self._named(str(cell))
        check = CheckFirst(
            self.study.root / FOLDER,
            specs,
            settings,
            progress=progress,
            scale=self.scale,
            rows=sampled_rows(self.study, cell.suite, self.rows[cell.suite]),
        )
        done = judge_run(
            self.study.root / cell.folder,
            [judge],
            settings,
            cost=self.plan,
            progress=progress,
            rows=self.rows[cell.suite],
            scale=self.scale,
            specs=specs,
            before=None if self.study.file.unchecked else check,
        )
        ((_, tally),) = done.judged
        questions = tally.recorded + tally.labels.total()
        self._record_done(cell, done.run, questions, tally.labels["error"])

    def _score(self, cell: Cell, scorer: Scorer) -> None:
        root, shard = self.study.root / cell.folder, self.scale.shard
        progress = self._named(f"{cell.suite} x {cell.generator}")
        ((_, tally),) = score_images(root, [scorer], self.plan, progress, shard, frames=cell.frames)
        pairs = tally.recorded + tally.scored + tally.failed
        self._record_done(cell, Run.open(root, shard), pairs, tally.failed)

    def _record_done(self, cell: Cell, run: Run, questions: int, errors: int) -> None:
        record = self.events.completion_record(cell, run, questions, errors)
        self.events.add(cell, "done", **record)
        if errors > MOST_ERRORS * questions:
            self.failed[cell.key] = Failure(
                cell,
                f"{errors:,} of {questions:,} answers are errors: run the study again to ask for "
                f"these once more, with --retry-failed also those that a server rejected; if the "
                f"judge can't answer them, exclude the cell by `except` in the study's file",
            )

    def _check_answered(self, cells: Iterable[Cell]) -> None:
        """Fails cells whose judge gave no answer that counts, now or in an earlier run."""
        for cell in cells:
            run = self._run_of(cell)
            log = self.study.log_of(cell, run) if run and cell.key not in self.failed else None
            try:
                if log is not None:
                    log.check_answered()
            except JudgeFailed as error:
                self.failed[cell.key] = Failure(cell, str(error))

    def _run_of(self, cell: Cell) -> Run | None:
        return self.study.run_of(cell, self.scale.shard)

    def _is_made(self, cell: Cell) -> bool:
        """Whether all of its images are settled, by the run alone; files elsewhere never are."""
        run = self._run_of(cell)
        if run is None:
            return False
        images = run.images()
        return all(
            (image := images.get(case.id)) is not None
            and image.status in ("made", "refused")
            and image.stamp is None
            for case in run.own_cases()
        )

    def _is_done(self, cell: Cell) -> bool:
        """Whether nothing of it is left to be asked or scored."""
        run = self._run_of(cell)
        return run is not None and self._is_made(cell) and self.events.is_own_done(cell, run)

    def _fail(self, cells: Iterable[Cell], error: CounterpriorError) -> None:
        """Records why cells can't be done; the first cause of a cell stays."""
        for cell in cells:
            if cell.key not in self.failed and not self._is_done(cell):
                self.failed[cell.key] = Failure(cell, str(error))
                record, run = {}, self._run_of(cell)
                if isinstance(error, JudgeFailed | ScorerFailed) and run is not None:
                    record = self.events.completion_record(
                        cell, run, error.questions, error.questions
                    )
                self.events.add(cell, "failed", str(error), **record)

    def _named(self, cell: str) -> Progress:
        """Progress that says which cell it is of."""
        return lambda stage, done, total: self.progress(f"{cell}, {stage}", done, total)


def _is_same(models: Mapping[str, Any], name: str, spec: str) -> bool:
    return name in models and models[name]["spec"] == without_secrets(spec)


def _release() -> None:
    """Frees a model that nobody holds any longer, before the next one is loaded."""
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def cells_by(
    cells: Sequence[Cell], key: Callable[[Cell], tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], list[Cell]]]:
    """Cells by key, in the order of the first of each."""
    for value in dict.fromkeys(map(key, cells)):
        yield value, [cell for cell in cells if key(cell) == value]


def runs_of(cells: Iterable[Cell]) -> list[Cell]:
    """One cell of every run."""
    return list({cell.folder: cell for cell in reversed(list(cells))}.values())[::-1]
