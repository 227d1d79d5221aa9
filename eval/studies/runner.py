"""A study: every cell that its file names, as run folders that any command reads.

DIR/study.yaml          the file, as given
DIR/study.json          the models behind its names, as they were when they were first opened
DIR/cells.jsonl         what became of each cell, in the order it happened, see `events`
DIR/ledgers/            the paid calls of all of its judges
DIR/gold/               what its judges said of gold images, before they judged
DIR/runs/SUITE/NAME/    a run of each generator on each suite
DIR/steps/              what the steps of round trips made, which several runs share

Every model is opened once: a generator for all of its suites, then a judge or a scorer for all of
its runs. A cell that fails is recorded and doesn't hold up the others. Shards of a study do their
parts of all of its runs, each with logs of its own.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from ...agents.budget import Spending
from ...errors import CounterpriorError, DataError, InUseError
from ...progress import Progress, silent
from ...storage import PARTIAL, Lock, write_json, write_whole
from ..checkpoints.placement import LoadError
from ..core import Judge, Maker
from ..engine.costs import Cost, count_images
from ..engine.data import Rows, read_rows, sample_rows
from ..engine.evaluation import RunSettings
from ..engine.image_scores import ScoreLog, ScorerFailed, score_images, scoring_identity
from ..engine.run import CASES, HEADER, Run, RunError
from ..engine.steps import JudgeSettings, check_answering, generate, judge_run, trip_cases
from ..generators import open_generator
from ..judges import Answering, CallPlan, open_judge
from ..methods import apply_methods
from ..roundtrips.models import TripModels
from ..roundtrips.routes import check_start
from ..roundtrips.trip import RoundTrip, TripCase, take_steps
from ..scorers import Scorer, open_scorer
from ..store.records import RunLock, RunShard
from ..store.verdicts import JudgeFailed, VerdictLog, judging_identity
from ..suites import open_suite
from ..workers.farm import HERE, Scale
from .events import CellEvents
from .judge_check import FOLDER, CheckFirst
from .scores.corpora import read_corpus
from .spec import Cell, StudyFile, cells_of, parse_study, read_study, write_study

FILE = "study.yaml"
MODELS = "study.json"

Viewer = Any
"""A judge or a scorer: whatever looks at images."""

State = Literal["waiting", "images", "verdicts", "failed", "done"]
"""Of a cell: not begun; images or verdicts under way; ended by a cause; all there."""


@dataclass(frozen=True)
class CellStatus:
    """How far a cell is."""

    cell: Cell
    state: State
    cases: int = 0
    """Images that are asked for; 0 where the run has not begun."""
    images: Mapping[str, int] = field(default_factory=dict)
    """Images by what became of them: `made`, `missing`, `refused`, `error`."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Answers about the present images, or scores: `answered`, and failures by name."""
    questions: int = 0
    """Questions that there are; 0 where nobody has counted them yet."""
    cause: str = ""
    """What ended it, where it failed."""
    lost: str = ""
    """Which shards lack something, in words; empty where none does."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "cell": vars(self.cell)}

    @property
    def gap(self) -> str:
        """What is not there yet, in a few words; empty where the cell is done."""
        if self.state == "done":
            return ""
        if self.state == "failed":
            return f"failed: {self.cause}"
        if self.state == "waiting":
            return "not begun"
        made, said = sum(self.images.values()), sum(self.verdicts.values())
        if made < self.cases:
            return f"{self.cases - made:,} of {self.cases:,} images were never made{self.lost}"
        images = self.images.get("made", 0)
        if self.cell.scorer:
            return f"scored in part: {said:,} of {images:,} images{self.lost}"
        return f"judged in part: {said:,} answers about {images:,} images{self.lost}"


@dataclass(frozen=True)
class Failure:
    """A cell that could not be done, and why."""

    cell: Cell
    cause: str


@dataclass
class StudyDone:
    """What one `study run` did."""

    study: Study
    failures: list[Failure] = field(default_factory=list)
    spending: Spending = field(default_factory=Spending)
    """What paid calls came to."""

    def table(self, layout: str = "", form: str = "md") -> str:
        """The study as one table: `layout` is a recipe, `form` one of md, tex, csv and json."""
        from .formats import format_table
        from .recipes import find_layout
        from .table import study_table

        found = study_table(self.study, find_layout(layout) if layout else None)
        return format_table(found, form)


@dataclass
class Study:
    """A study's folder."""

    root: Path
    file: StudyFile

    @classmethod
    def open(cls, root: Path) -> Study:
        """A study that was started. Raises RunError where there is none, and where its file
        contradicts its runs."""
        if not (root / FILE).exists():
            raise RunError(
                f"{root} is not a study: make one with `counterprior study run FILE --out {root}`"
            )
        study = cls(root, read_study(root / FILE))
        study._check_runs()
        return study

    @classmethod
    def start(cls, root: Path, file: StudyFile, text: str, held: ExitStack | None = None) -> Study:
        """A new study, or the one that is there if what it has done stays as it is.

        text: of the file, to be kept. held: of a shard, what it holds while it works. Raises
        RunError, by name, where the file contradicts runs that are there, and for a folder of
        something else; InUseError where shards with another file work there.
        """
        study = cls(root, file)
        with study.starting():
            if held is not None:
                held.enter_context(study.claim())
            if (root / FILE).exists():
                study._check_runs()
            elif root.exists() and any(p.suffix not in (".lock", PARTIAL) for p in root.iterdir()):
                raise RunError(f"{root} is not empty and no study: choose another --out")
            else:
                study.keep(text)
        return study

    def claim(self) -> Lock:
        """Held by a shard while it works. Raises InUseError where shards work here that were given
        another file."""
        digest = hashlib.sha256(write_study(self.file).encode()).hexdigest()[:12]
        what = f"the study {self.root}"
        own = self.root / f"study.file-{digest}.lock"
        claimed = Lock(own, what, shared=True)
        for other in sorted(self.root.glob("study.file-*.lock")):
            try:
                if other != own:
                    Lock(other, what).release()
            except InUseError:
                claimed.release()
                raise InUseError(
                    f"{what} is in use by shards with another study file{self._what_differs()}: "
                    f"give all shards the same file, or wait for their end"
                ) from None
        return claimed

    def _what_differs(self) -> str:
        """Between this file and the one that is kept, in words; empty where nothing does."""
        kept = read_study(self.root / FILE).model_dump(by_alias=True)
        own = self.file.model_dump(by_alias=True)
        other = [name for name in own if own[name] != kept[name]]
        return f" (other {', '.join(other)})" if other else ""

    def starting(self) -> Lock:
        """Held for a moment by one shard after the other, for what all of them write."""
        return Lock(self.root / "start.lock", f"the study {self.root}", wait=True)

    def keep(self, text: str) -> None:
        """Writes the file."""
        write_whole(self.root / FILE, text)

    @property
    def cells(self) -> list[Cell]:
        """Every cell, by generator, suite and judge."""
        return cells_of(self.file)

    def run_settings(self, cell: Cell) -> RunSettings:
        """What its run is of."""
        return RunSettings(
            suite=cell.suite,
            data=self.file.data,
            out=self.root / cell.folder,
            seeds=cell.seeds,
            limit=cell.limit,
            variants=cell.variants,
        )

    def run_of(self, cell: Cell, shard: RunShard | None = None) -> Run | None:
        """Its run; None where it has not begun, or was killed before it had its cases."""
        root = self.root / cell.folder
        there = (root / HEADER).exists() and (root / CASES).exists()
        return Run.open(root, shard) if there else None

    def log_of(self, cell: Cell, run: Run) -> VerdictLog | None:
        """What its judge said; None where nothing yet."""
        known = self.models()["judges"].get(cell.judge)
        if known is None or cell.scorer:
            return None
        wanted = judging_identity(known["identity"], cell.persona, cell.frames)
        return next((log for log in run.judges() if dict(log.identity) == wanted), None)

    def scores_of(self, cell: Cell, run: Run) -> ScoreLog | None:
        """What its scorer said; None where it was never opened."""
        known = self.models()["scorers"].get(cell.judge)
        if known is None:
            return None
        return ScoreLog.of(run, scoring_identity(known["identity"], cell.frames))

    def judged_runs(self, partial: bool = False) -> list[Path]:
        """The runs whose cells are all done, or with `partial` that are judged at all.

        Raises RunError for none, and without `partial` where some are not done.
        """
        found: dict[Path, list[CellStatus]] = {}
        for status in self.status():
            found.setdefault(self.root / status.cell.folder, []).append(status)
        gaps = [status for part in found.values() for status in part if status.gap]
        if gaps and not partial:
            raise RunError(
                f"{self.root}: {len(gaps):,} of its cells not done, the first {gaps[0].cell}: "
                f"{gaps[0].gap}; run `counterprior study run` again, or say --partial"
            )
        runs = [
            root
            for root, part in found.items()
            if any(status.verdicts and not status.cell.scorer for status in part)
        ]
        if not runs:
            raise RunError(f"{self.root}: nothing is judged yet")
        return runs

    def bases(self) -> dict[Path, Path]:
        """Run -> that of the same generator without methods; empty where no method is named."""
        if not self.file.methods:
            return {}
        return {
            self.root / cell.folder: self.root / "runs" / cell.suite / cell.generator.split("+")[0]
            for cell in self.cells
        }

    def labels_of(self, cell: Cell) -> tuple[Path | None, bool]:
        """People's labels of its images, and whether the file is of several runs."""
        found = self.file.labels.get(cell.suite)
        if isinstance(found, str):
            several = sum(
                1 for c in {(c.suite, c.generator) for c in self.cells} if c[0] == cell.suite
            )
            return Path(found), several > 1
        file = (found or {}).get(cell.generator)
        return (Path(file) if file else None), False

    def models(self) -> dict[str, dict[str, dict[str, Any]]]:
        """`generators` by run, `SUITE/NAME`; `judges` and `scorers` by name: `spec`, `identity`."""
        found: dict[str, Any] = {}
        try:
            found = json.loads((self.root / MODELS).read_text("utf-8"))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise DataError(f"{self.root / MODELS} is damaged: {error}") from None
        return {"generators": {}, "judges": {}, "scorers": {}} | found

    def remember(self, kind: str, name: str, spec: str, identity: Mapping[str, str]) -> None:
        """Keeps which model a name stands for. Raises RunError where it stood for another."""
        with self.starting():
            models = self.models()
            known = models[kind].get(name)
            if known is not None and known["identity"] != dict(identity):
                raise RunError(
                    f"{self.root}: {kind[:-1]} {name!r} is another one now: "
                    f"{_difference(known, {'spec': spec, 'identity': dict(identity)})}; give it "
                    f"another name, or choose another --out"
                )
            models[kind][name] = {"spec": spec, "identity": dict(identity)}
            write_json(self.root / MODELS, models)

    def status(self) -> list[CellStatus]:
        """How far every cell is."""
        events = CellEvents(self.root)
        return [self._status(cell, events) for cell in self.cells]

    def _status(self, cell: Cell, events: CellEvents) -> CellStatus:
        run, cause = self.run_of(cell), events.cause(cell)
        if run is None:
            return CellStatus(cell, "failed" if cause else "waiting", cause=cause)
        cases, images, present = run.cases(), run.images(), run.present()
        log = self.log_of(cell, run)
        said, told = self._said(cell, run, log, present)
        lost = ""
        if events.is_done(cell, run, present):
            state: State = "done"
        else:
            waiting = [case for case in cases if case.id not in images]
            state = "images" if waiting else "verdicts"
            if not waiting:
                waiting = [case for case in cases if case.id in present and case.id not in told]
            lost = run.lacking(waiting, log) or events.unfinished(cell)
        if cause and state != "done":
            state = "failed"
        return CellStatus(
            cell,
            state,
            cases=len(cases),
            images=dict(sorted(Counter(image.status for image in images.values()).items())),
            verdicts=dict(sorted(said.items())),
            questions=events.questions(cell),
            cause=cause if state == "failed" else "",
            lost=lost,
        )

    def _said(
        self, cell: Cell, run: Run, log: VerdictLog | None, present: Mapping[str, str]
    ) -> tuple[Counter[str], set[str]]:
        """Answers or scores by what they are, and the cases that have one."""
        if cell.scorer:
            scores = self.scores_of(cell, run)
            scored = scores.of_cases(run, run.cases()) if scores else {}
            counts = Counter("error" if one.error else "answered" for one in scored.values())
            return counts, set(scored)
        counts, told = Counter[str](), set[str]()
        for answer in log.iter_present(present.items()) if log else ():
            counts[answer.verdict.label if answer.verdict.failed else "answered"] += 1
            told.add(answer.case)
        return counts, told

    def _check_runs(self) -> None:
        """Raises RunError where a run that is there was made otherwise than the file says."""
        there = sorted(path.parent for path in self.root.glob(f"runs/*/*/{HEADER}"))
        wanted = {self.root / cell.folder: cell for cell in self.cells}
        if there and not wanted.keys() & set(there):
            names = ", ".join("/".join(path.parts[-2:]) for path in there[:3])
            raise RunError(f"{self.root} holds another study, of {names}: choose another --out")
        for root in there:
            if (cell := wanted.get(root)) is None:
                continue  # taken out of the file: it stays, and is in no table
            header = Run.open(root).header
            for name, asked in (
                ("data", self.file.data),
                ("limit", cell.limit),
                ("seeds", cell.seeds),
            ):
                if (found := getattr(header, name)) != asked:
                    raise RunError(
                        f"{root} was made with {name} {found}, and the study's file now says "
                        f"{asked}: write {name} {found} again, or choose another --out"
                    )


def _check_rows(study: Study, rows: Mapping[str, Rows]) -> None:
    """Raises RunError where a run was made with other rows than the data hold now: nothing of it
    may be left to do that would notice."""
    for cell in study.cells:
        run, now = study.run_of(cell), rows[cell.suite].digest
        if run is not None and run.header.rows_sha256 != now:
            raise RunError(
                f"{run.root} was made with other rows of {cell.suite} than {study.file.data} has "
                f"now: give it the release of that time, or choose another --out"
            )


def open_model(cell: Cell, models: TripModels) -> Maker:
    """The generator of a cell, with its methods around it, or its round trip. Raises UsageError for
    a bad spec and for a generator that a method can't reach."""
    if cell.start:
        return RoundTrip(check_start(cell.start), dict(cell.steps), models)
    return apply_methods(open_generator(cell.spec), cell.methods)


def sampled_rows(cells: Iterable[Cell], suite: str, found: Rows) -> frozenset[str]:
    """Ids of the rows of a suite that any generator of a study draws."""
    together = open_suite(suite).together
    limits = {cell.limit for cell in cells if cell.suite == suite}
    sampled = (sample_rows(found.rows, limit, together) for limit in limits)
    return frozenset(row.id for rows in sampled for row in rows)


def run_study(
    file: Path | str | Mapping[str, Any],
    out: Path | str,
    max_usd: float | None = None,
    changes: Sequence[str] = (),
    progress: Progress = silent,
    scale: Scale = HERE,
) -> StudyDone:
    """Does what is missing of a study; one cap holds over all of it, earlier commands included.

    file: path of a study file, or what stands in one. max_usd: in place of the file's. changes: as
    in `read_study`. scale: the processes that make and judge, and which part of all runs is this
    one's; the result is the same.
    Raises StudyError for a bad file, RunError where it contradicts what is there, ReleaseError for
    data that can't be read, DataError for a corpus that isn't mined, InUseError where another
    process works here. What fails in a cell is in `failures`.
    """
    out = Path(out)
    if isinstance(file, Mapping):
        asked = parse_study(yaml.safe_dump(dict(file), sort_keys=False), "the study", changes)
        text = write_study(asked)
    else:
        asked = read_study(Path(file), changes)
        text = write_study(asked) if changes else Path(file).read_text("utf-8")
    for folder in asked.corpora.values():
        read_corpus(Path(folder))
    rows = {suite: read_rows(asked.data, suite) for suite in asked.suites}
    cap = asked.max_usd if max_usd is None else max_usd
    cost = Cost(asked.concurrency, cap, Path(asked.prices) if asked.prices else None)
    with RunLock(out, scale.shard, kind="study"), ExitStack() as held:
        study = Study.start(out, asked, text, held if scale.shard else None)
        _check_rows(study, rows)
        return _Session(study, cost.plan(out, scale.shard), rows, progress, scale).run(text)


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
        self.events = CellEvents(study.root, scale.shard)
        self.failed: dict[str, Failure] = {}

    def run(self, text: str) -> StudyDone:
        cells = self.study.cells
        with self.events.log() as self.log:
            viewers = self._open_viewers(cells)
            generators = self._open_generators(cells)
            self.study.keep(text)  # only now: it names no other models than those of the runs
            self._count_images(cells)
            try:
                self._take_steps(cells, generators)
            except BaseException:  # an interrupted notebook goes on: its ledgers must be free
                self._trips.release()
                raise
            for model in list(generators):
                own = [cell for cell in cells if (cell.generator, cell.model) == model]
                self._generate(own, generators.pop(model))
                _release()
            for name in list(viewers):
                own = [cell for cell in cells if cell.judge == name]
                self._view(own, viewers.pop(name))
                _release()
        spending = self.plan.budget.spending
        return StudyDone(self.study, list(self.failed.values()), spending)

    def _open_viewers(self, cells: Sequence[Cell]) -> dict[str, Viewer]:
        """Judges and scorers that have something to do and answer at all; none is loaded yet."""
        found = {}
        known = self.study.models()
        for kind in ("judges", "scorers"):
            named = self.study.file.all_judges if kind == "judges" else self.study.file.scorers
            for name, spec in named.items():
                own = [c for c in cells if c.judge == name]
                if _is_same(known[kind], name, spec) and all(map(self._is_done, own)):
                    continue
                try:
                    viewer = self._open_viewer(kind, spec)
                    identity = viewer.identity()
                except CounterpriorError as error:
                    self._fail(own, error)
                    continue
                self.study.remember(kind, name, spec, identity)
                found[name] = viewer
        return found

    def _open_viewer(self, kind: str, spec: str) -> Viewer:
        if kind == "scorers":
            return open_scorer(spec, self.plan)
        judge = open_judge(spec, self.plan)
        check_answering([judge])
        return judge

    @cached_property
    def _trips(self) -> TripModels:
        """The models of all round trips."""
        return TripModels(self.plan)

    def _take_steps(self, cells: Sequence[Cell], makers: Mapping[tuple[str, str], Maker]) -> None:
        """The steps of all round trips, each model opened for many of them at a time."""
        runs = [run for run in _runs(cells) if run.start and (run.generator, run.model) in makers]

        def wanted() -> Iterator[TripCase]:
            for run in runs:
                trip = makers[run.generator, run.model]
                assert isinstance(trip, RoundTrip)
                settings, found = self.study.run_settings(run), self.rows[run.suite]
                yield from trip_cases(settings, trip, found, self.scale.shard)

        if runs:
            # What ends it here ends the runs below, and is said for each of them.
            with suppress(CounterpriorError):
                take_steps(wanted, self._trips, self._named("round trips"), self.scale)

    def _open_generators(self, cells: Sequence[Cell]) -> dict[tuple[str, str], Maker]:
        """(Name, model) -> those that have images to make; none is loaded yet."""
        found: dict[tuple[str, str], Maker] = {}
        known = self.study.models()["generators"]
        for model, own in _grouped(cells, lambda cell: (cell.generator, cell.model)):
            spec = model[1]
            if all(_is_same(known, c.run, spec) and self._is_made(c) for c in own):
                continue
            try:
                generator = open_model(own[0], self._trips)
                identity = generator.identity()
            except CounterpriorError as error:
                self._fail(own, error)
                continue
            for cell in _runs(own):
                self.study.remember("generators", cell.run, spec, identity)
            found[model] = generator
        return found

    def _count_images(self, cells: Sequence[Cell]) -> None:
        """Counts what all images so far have cost under the cap, before the first call."""
        for cell in _runs(cells):
            if (run := self.study.run_of(cell)) is not None:
                count_images(self.plan, run)

    def _generate(self, cells: Sequence[Cell], generator: Maker) -> None:
        """The images of one generator, on all of its suites."""
        left = _runs(cells)
        for number, run in enumerate(left):
            of_run = [cell for cell in cells if cell.suite == run.suite]
            alone = bool(run.methods or run.start)
            try:
                done = generate(
                    self.study.run_settings(run),
                    generator,
                    cost=self.plan,
                    progress=self._named(f"{run.suite} x {run.generator}"),
                    found=self.rows[run.suite],
                    # Methods draw in one process; the steps of round trips are there by now.
                    scale=Scale(shard=self.scale.shard) if alone else self.scale,
                    spec="" if alone else run.spec,
                )
                done.run.check_made()
            except LoadError as error:  # no other suite can go better
                rest = {one.suite for one in left[number:]}
                self._fail([cell for cell in cells if cell.suite in rest], error)
                return
            except CounterpriorError as error:
                self._fail(of_run, error)

    def _view(self, cells: Sequence[Cell], viewer: Viewer) -> None:
        """The answers of one judge, or the scores of one scorer, about all of its runs."""
        for number, cell in enumerate(cells):
            if cell.key in self.failed:
                continue
            broken = False
            self.events.add(self.log, cell, "begun")
            try:
                if cell.scorer:
                    self._score(cell, viewer)
                else:
                    self._ask(cell, viewer)
            except LoadError as error:  # no other run can go better
                self._fail(cells[number:], error)
                return
            except CounterpriorError as error:
                self._fail([cell], error)
                broken = isinstance(error, JudgeFailed)
            if broken and isinstance(viewer, Answering):
                # It asks a server no more that failed so often; another suite is another try.
                del viewer
                _release()
                try:
                    viewer = self._open_viewer("judges", self.study.file.all_judges[cell.judge])
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
            rows=sampled_rows(self.study.cells, cell.suite, self.rows[cell.suite]),
        )
        done = judge_run(
            self.study.root / cell.folder,
            [judge],
            settings,
            cost=self.plan,
            progress=progress,
            found=self.rows[cell.suite],
            scale=self.scale,
            specs=specs,
            before=None if self.study.file.unchecked else check,
        )
        ((_, tally),) = done.judged
        questions = tally.known + tally.labels.total()
        self._record_done(cell, done.run, questions, tally.labels["error"])

    def _score(self, cell: Cell, scorer: Scorer) -> None:
        root, shard = self.study.root / cell.folder, self.scale.shard
        progress = self._named(f"{cell.suite} x {cell.generator}")
        ((_, tally),) = score_images(root, [scorer], self.plan, progress, shard, frames=cell.frames)
        pairs = tally.known + tally.scored + tally.failed
        self._record_done(cell, Run.open(root, shard), pairs, tally.failed)

    def _record_done(self, cell: Cell, run: Run, questions: int, errors: int) -> None:
        told = self.events.told(cell, run, questions, errors)
        self.events.add(self.log, cell, "done", **told)

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
                told, run = {}, self._run_of(cell)
                if isinstance(error, JudgeFailed | ScorerFailed) and run is not None:
                    told = self.events.told(cell, run, error.questions, error.questions)
                self.events.add(self.log, cell, "failed", cause=str(error), **told)

    def _named(self, cell: str) -> Progress:
        """Progress that says which cell it is of."""
        return lambda stage, done, total: self.progress(f"{cell}, {stage}", done, total)


def _is_same(known: Mapping[str, Any], name: str, spec: str) -> bool:
    return name in known and known[name]["spec"] == spec


def _release() -> None:
    """Frees a model that nobody holds any longer, before the next one is loaded."""
    gc.collect()
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _grouped(
    cells: Sequence[Cell], key: Callable[[Cell], tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], list[Cell]]]:
    for value in dict.fromkeys(map(key, cells)):
        yield value, [cell for cell in cells if key(cell) == value]


def _runs(cells: Iterable[Cell]) -> list[Cell]:
    """One cell of every run."""
    return list({cell.folder: cell for cell in reversed(list(cells))}.values())[::-1]


def _difference(known: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if known["spec"] != now["spec"]:
        return f"it was {known['spec']}, and is {now['spec']}"
    old, new = known["identity"], now["identity"]
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{n} was {old.get(n, '-')}, and is {new.get(n, '-')}" for n in changed)
