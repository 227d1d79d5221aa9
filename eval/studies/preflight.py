"""`study plan`: money, time and disk of a study, and its problems, before it costs anything.

Unknown numbers stay unknown: time and disk are measured (`probe`), not guessed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from PIL import Image

from ...agents.budget import Budget
from ...agents.spending import SPENDING
from ...errors import CounterpriorError, DataError
from ...progress import Progress, silent
from ...specs import UNTRUSTED, Spec, without_code, without_secrets
from ..captioners import CAPTIONERS
from ..clips.frames import FrameChoice
from ..core import KNOWN_TRUTH, Case, CaseGenerator, Judge, Question, probes_of
from ..engine.asking import Asking
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows
from ..engine.evaluation import Evaluation, RunSettings
from ..engine.frames import shown_frames
from ..engine.objections import Objections, objection_to
from ..engine.run import HEADER, LEDGERS, Run, RunError
from ..generators import GENERATORS, PaidByImage, is_served
from ..generators.paid import PaidGenerator
from ..judges import JUDGES, Prepared, open_judge
from ..roundtrips.log import StepLog
from ..roundtrips.models import TripModels
from ..roundtrips.routes import EDITS, MADE, StepKind
from ..roundtrips.steps import RouteStep
from ..roundtrips.trip import RoundTrip
from ..scorers import Scorer, as_scorer
from ..store.verdicts import Tally, VerdictLog, judging_identity
from ..suites import open_suite
from .estimates import ASSUMED, UNKNOWN, of_question, of_step, total
from .folder import FILE, Study
from .judge_check import FOLDER, gold_rows
from .runner import (
    ChosenCount,
    biased_cases,
    cells_by,
    choose_rows,
    open_model,
    runs_of,
    sampled_rows,
)
from .scores.corpora import read_corpus
from .spec import Cell, read_study

PROBED = 3
"""Images that a probe makes with each model; the first one also loads it."""
VERDICT_SIZE = 500
"""About the size of a recorded verdict, bytes."""
STEPS: Mapping[StepKind, str] = {
    "caption": "captions",
    "generate": "drawings",
    "edit_text": "revised captions",
    "edit_image": "edited images",
}
"""Step of a round trip -> its products, in words."""


@dataclass(frozen=True)
class Workload:
    """Open work of one model on one suite."""

    name: str
    spec: str
    what: str
    """`images`, `texts`, `captions`, `questions`, ... and the suite."""
    count: int
    """Items that are not done yet."""
    usd: float | None = 0.0
    """Estimate, US dollars; None where no price is known."""
    most_usd: float | None = 0.0
    """Worst case, as the cap counts it."""
    seconds: float | None = None
    """Time of the items one after the other; None if it was not measured."""
    size: float | None = 0.0
    """Bytes on disk; None if they were not measured."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", without_secrets(self.name))
        object.__setattr__(self, "spec", without_secrets(self.spec))


@dataclass
class OpenQuestions:
    """The questions that a judge is yet to be asked about a run."""

    count: int = 0
    objections: list[str] = field(default_factory=list)
    """Why the judge can't answer some of them, one by one."""
    first: Question | None = None
    """None without any."""


@dataclass
class StudyPlan:
    """Open work of a study, its price and its problems."""

    cells: int
    rows: list[ChosenCount] = field(default_factory=list)
    """Rows that are drawn of each suite."""
    images: list[Workload] = field(default_factory=list)
    """Images of each run, and the texts that round trips make in their place."""
    steps: list[Workload] = field(default_factory=list)
    """Steps of round trips: upper bounds, because steps from the same image or text are taken once.
    Their time and disk count with the images."""
    questions: list[Workload] = field(default_factory=list)
    scores: list[Workload] = field(default_factory=list)
    """Scores of scorers: upper bounds, because identical images are scored once."""
    problems: list[str] = field(default_factory=list)
    """Faults that would end a cell or the study."""
    notes: list[str] = field(default_factory=list)
    """Assumptions behind the numbers."""

    @property
    def usd(self) -> float | None:
        """Estimate of all, US dollars."""
        return _sum(workload.usd for workload in self.workloads)

    @property
    def seconds(self) -> float | None:
        """Time of all, one after the other."""
        return _sum(workload.seconds for workload in self.workloads)

    @property
    def size(self) -> float | None:
        """Bytes on disk."""
        return _sum(workload.size for workload in self.workloads)

    @property
    def workloads(self) -> list[Workload]:
        """Images, steps, questions and scores that are not done yet."""
        workloads = (*self.images, *self.steps, *self.questions, *self.scores)
        return [workload for workload in workloads if workload.count]

    def to_json(self) -> dict[str, Any]:
        """Plain values; None is unknown."""
        return {**asdict(self), "usd": self.usd, "seconds": self.seconds, "bytes": self.size}


def plan_study(
    file: Path,
    out: Path | None = None,
    *,
    changes: Sequence[str] = (),
    max_usd: float | None = None,
    probe: bool = False,
    trust: bool = True,
    progress: Progress = silent,
) -> StudyPlan:
    """Counts the open work of a study, by model and suite.

    out: folder of the study; finished work there is not counted. probe: measure time and disk with
    a few images and questions of each model that isn't paid, in a folder that is deleted. trust:
    whether code that the file names may run; if not, its models are counted and not opened. Raises
    StudyError for a bad file, ReleaseError for data that can't be read; all other faults are
    listed in `problems`.
    """
    study = read_study(file, changes)
    rows = {suite: read_rows(study.data_of(suite), suite) for suite in study.suites}
    chosen = choose_rows(Study(Path(), study), rows, file.read_text("utf-8"), str(file))
    cap = study.max_usd if max_usd is None else max_usd
    with tempfile.TemporaryDirectory(prefix="counterprior-") as name:
        folder = Path(name)
        begun = out is not None and (out / FILE).exists()
        root = out if begun and out is not None else folder
        with nullcontext() if trust else without_code(str(file)):
            plan = _Planner(Study(root, study), rows, cap, folder, probe, progress).build()
        plan.problems[:0] = _contradictions(Study(root, study)) if begun else ()
        return replace(plan, rows=chosen)


def _contradictions(study: Study) -> list[str]:
    """Says where the file contradicts runs of the study, which `study run` would refuse."""
    try:
        study.check_runs()
    except RunError as error:
        return [str(error)]
    return []


class _Planner:
    """Looks at every run as `study run` would do it, and counts its open work."""

    def __init__(
        self,
        study: Study,
        rows: dict[str, Rows],
        cap: float | None,
        folder: Path,
        probe: bool,
        progress: Progress,
    ) -> None:
        """study: in its folder, or in an empty one; folder: for the probes."""
        self.study, self.file, self.rows = study, study.file, rows
        self.probed = Study(folder / "probe", study.file)
        self.progress = progress
        self.probe = probe
        prices = Path(self.file.prices) if self.file.prices else None
        self.calls = Cost(self.file.concurrency, cap, prices).plan(folder)
        self.trips = TripModels(self.calls, StepLog(study.root), by_paper=self.file.by_paper)
        self.plan = StudyPlan(len(study.cells))
        self._looks: dict[str, Evaluation] = {}
        self._gold: dict[str, Evaluation | None] = {}

    @property
    def budget(self) -> Budget:
        return self.calls.budget

    def build(self) -> StudyPlan:
        cells = self.study.cells
        self._files()
        probed: set[str] = set()
        with self.calls:
            for (name, model), cells_of_generator in cells_by(
                cells, lambda cell: (cell.generator, cell.model)
            ):
                probed |= self._images(name, model, runs_of(cells_of_generator))
            self._steps(run for run in runs_of(cells) if run.start)
            for name, spec in self.file.all_judges.items():
                self._questions(name, spec, [c for c in cells if c.judge == name], probed)
            for name, spec in self.file.scorers.items():
                self._scores(name, spec, [c for c in cells if c.judge == name], probed)
        self._note()
        return self.plan

    def _look(self, cell: Cell) -> Evaluation:
        """Returns the run of a cell as it is, or as it would be started."""
        if cell.run not in self._looks:
            settings, run = self.study.run_settings(cell), self.study.run_of(cell)
            if cell.biased:
                settings = replace(settings, cases=self._chosen(cell, run))
            self._looks[cell.run] = Evaluation.look(settings, self.rows[cell.suite], run)
        return self._looks[cell.run]

    def _chosen(self, cell: Cell, run: Run | None) -> frozenset[str] | None:
        """Returns the cases that a cell draws; None, and a note, while its base is not done."""
        if run is not None:
            return frozenset(case.id for case in run.cases())
        try:
            return biased_cases(self.study, cell)
        except RunError:
            self.plan.notes.append(
                f"{cell.run} draws at most so many: which cases are biased, its base run says."
            )
            return None

    def _left(self, cell: Cell) -> list[Case]:
        """Returns the cases whose image is not made yet."""
        return [case for case, image in self._look(cell).expected() if not image.sha256]

    def _files(self) -> None:
        for folder in self.file.corpora.values():
            try:
                read_corpus(Path(folder))
            except CounterpriorError as error:
                self.plan.problems.append(str(error))
        for files in self.file.labels.values():
            for name in files.values() if isinstance(files, dict) else (files,):
                if not Path(name).is_file():
                    self.plan.problems.append(f"labels: there is no file {name}")

    def _cannot_open(self, model: str, error: CounterpriorError) -> None:
        """Lists why a model can't be opened: a problem, unless it is code that may not run here."""
        listed = self.plan.notes if error.code == UNTRUSTED else self.plan.problems
        if (text := f"{model}: {error}") not in listed:
            listed.append(text)

    def _check_model(
        self, kind: str, names: Sequence[str], spec: str, identity: Mapping[str, str]
    ) -> None:
        """Lists the first name that stands for another model in the begun study, as a run would."""
        try:
            for name in names:
                self.study.models.check(kind, name, spec, identity)
        except RunError as error:
            self.plan.problems.append(str(error))

    def _note(self) -> None:
        if any(workload.usd for workload in (*self.plan.questions, *self.plan.steps)):
            self.plan.notes.append(ASSUMED)
        if not self.probe:
            self.plan.notes.append("Time and disk are measured with --probe.")
        cap, spent = self.budget.max_usd, self._spent()
        if cap is not None and (usd := self.plan.usd) is not None and usd + spent > cap:
            before = f" and the {spent:.2f} that are spent" if spent else ""
            problem = f"the cap of {cap} USD is below the estimate of {usd:.2f}{before}"
            self.plan.problems.append(problem)

    def _spent(self) -> float:
        """What the study has cost so far, US dollars; its log is copied, and stays as it is."""
        log = self.study.root / LEDGERS / SPENDING
        if not log.is_file():
            return 0.0
        with tempfile.TemporaryDirectory(prefix="counterprior-") as folder:
            copied = Path(shutil.copy(log, folder))
            budget = Budget(self.budget.prices, log=copied)
            try:
                return float(budget.spent)
            except DataError as error:
                self.plan.problems.append(str(error).replace(str(copied), str(log)))
                return 0.0
            finally:
                budget.log.finish()

    def _images(self, name: str, spec: str, runs: Sequence[Cell]) -> set[str]:
        """The images of one generator, by suite; returns the runs that were probed."""
        generator: CaseGenerator | None = None
        try:
            generator = open_model(runs[0], self.trips)
            if isinstance(generator, PaidByImage):
                PaidGenerator(generator, self.budget)  # it has a price, where there is a cap
            if is_served(generator) and isinstance(generator, Prepared):
                generator.prepare(self.study.root, self.calls)
        except CounterpriorError as error:
            self._cannot_open(f"generator {name}", error)
        else:
            with suppress(CounterpriorError):  # of a step's model, which is listed apart
                names = [run.run for run in runs]
                self._check_model("generators", names, spec, generator.identity())
        probed = set()
        for run in runs:
            look, cases = self._look(run), self._left(run)
            if generator is not None:
                try:
                    look.check_sources()
                    look.check_cases(generator, look.cases)
                except CounterpriorError as error:
                    self.plan.problems.append(f"generator {name} on {run.suite}: {error}")
            medium = "texts" if run.ends_in_text else "images"
            workload = Workload(name, spec, f"{medium} of {run.suite}", len(cases), size=None)
            if run.start and _is_paid(run):  # its steps are priced, and not measured
                pass
            elif isinstance(generator, PaidByImage):
                price = self.budget.prices.image(generator.identity())
                each = None if price is None else price.edit if _edits(look) else price.image
                usd = None if each is None else float(each * len(cases))
                workload = replace(workload, usd=usd, most_usd=usd)
            elif is_served(generator):  # what its texts cost is not known before
                workload = replace(workload, usd=None, most_usd=None)
            elif generator is not None and self.probe and cases:
                workload = self._probe_images(workload, generator, run)
                probed.add(run.run)
            elif generator is None:
                workload = replace(workload, usd=None, most_usd=None)
            self.plan.images.append(workload)
        return probed

    def _steps(self, runs: Iterable[Cell]) -> None:
        """Counts the steps of all round trips by model; a step that trips share counts once."""
        open_steps: dict[tuple[str, StepKind, str], dict[str, RouteStep]] = {}
        for run in runs:
            specs = dict(run.steps)
            try:
                trip = open_model(run, self.trips)
                assert isinstance(trip, RoundTrip)
                trip.check_answering()
                for case in self._left(run):
                    for step in trip.open_steps(case, lambda: Image.new("RGB", (1, 1))):
                        place = run.suite, step.step, specs[step.step]
                        open_steps.setdefault(place, {})[step.key] = step
            except CounterpriorError as error:
                self._cannot_open("round trips", error)
        for (suite, kind, spec), steps in open_steps.items():
            model = self.trips.model(kind, spec)
            usd, most = total([of_step(self.budget, model, step) for step in steps.values()])
            products = f"{STEPS[kind]} of {suite}"
            workload = Workload(self._who(kind, spec), spec, products, len(steps))
            self.plan.steps.append(replace(workload, usd=usd, most_usd=most, seconds=0.0))

    def _who(self, step: StepKind, spec: str) -> str:
        """Returns the study's name of the model that takes a step."""
        if step in EDITS:
            return f"editor of {MADE[step]}s"
        specs = self.file.all_captioners if step == "caption" else self.file.all_generators
        return next(name for name, text in specs.items() if text == spec)

    def _probe_images(self, workload: Workload, generator: CaseGenerator, run: Cell) -> Workload:
        """Makes a few images in a folder of its own and measures them."""
        settings = self.probed.run_settings(run)
        times, size = [], 0
        try:
            with Evaluation.start(settings, generator.identity(), self.rows[run.suite]) as opened:
                for number, case in enumerate(opened.cases[:PROBED]):
                    self.progress(f"probe {run.run}", number, PROBED)
                    began = monotonic()
                    opened.make(generator, [case])
                    times.append(monotonic() - began)
                images = list(opened.run.images().values())
                size = sum(opened.run.image_path(i).stat().st_size for i in images if i.file)
                wrong = next((i for i in images if i.status != "made"), None)
        except CounterpriorError as error:
            self.plan.problems.append(f"generator {run.generator} on {run.suite}: {error}")
            return workload
        if wrong is not None:
            self.plan.problems.append(
                f"generator {run.generator} on {run.suite}: {wrong.status}: {wrong.message}"
            )
        made_count = sum(image.status == "made" for image in images)
        return replace(
            workload,
            seconds=_seconds(times, workload.count) if made_count else None,
            size=workload.count * size / made_count if made_count else None,
        )

    def _questions(
        self, name: str, spec: str, cells: Sequence[Cell], probed: Container[str]
    ) -> None:
        """The questions of one judge, by suite."""
        judge: Judge | None = None
        try:
            judge = open_judge(spec, self.calls)
            identity = judge.identity()
            if (check := getattr(judge, "check", None)) is not None:
                check()
        except CounterpriorError as error:
            self._cannot_open(f"judge {name}", error)
        else:
            self._check_model("judges", [name], spec, identity)
        for suite in dict.fromkeys(cell.suite for cell in cells):
            cells_of_suite = [cell for cell in cells if cell.suite == suite]
            open_questions = [self._questions_left(cell, judge) for cell in cells_of_suite]
            count = sum(questions.count for questions in open_questions)
            workload = Workload(
                name, spec, f"questions of {suite}", count, size=VERDICT_SIZE * count
            )
            objections = [reason for questions in open_questions for reason in questions.objections]
            if objections:
                problem = Objections(len(objections), count, objections[0]).text(suite)
                remedy = f"`except: [{{judge: {name}, suite: {suite}}}]` excludes its cells"
                self.plan.problems.append(f"judge {name} {problem}: {remedy}")
            workload = self._priced(workload, judge, open_questions)
            if judge is not None and self.probe and count and not _paid_by_call(spec):
                cell = next((c for c in cells_of_suite if c.run in probed), None)
                if cell is not None:
                    workload = self._probe_questions(workload, judge, cell)
            if count and not self.file.unchecked and open_suite(suite).gold:
                self._check_first(workload, judge, cells_of_suite[0])
            self.plan.questions.append(workload)

    def _priced(
        self, workload: Workload, judge: Judge | None, open_questions: Iterable[OpenQuestions]
    ) -> Workload:
        """Prices the questions, each like the first of its run."""
        if not _paid_by_call(workload.spec):
            return workload
        usd, most = UNKNOWN
        if judge is not None:
            identity = judge.identity()
            usd, most = total(
                [
                    of_question(self.budget, identity, questions.first).times(questions.count)
                    for questions in open_questions
                    if questions.first
                ]
            )
        return replace(workload, usd=usd, most_usd=most)

    def _check_first(self, workload: Workload, judge: Judge | None, cell: Cell) -> None:
        """Counts the questions about gold images that a judge is asked before those of a suite.

        workload: its questions of the suite.
        """
        gold = self._gold_of(cell.suite)
        if gold is None or Spec.parse(workload.spec).kind in KNOWN_TRUTH:
            return
        log = None
        if judge is not None:
            identity = judging_identity(judge.identity(), cell.persona, cell.frames)
            log = next((log for log in gold.run.judges() if dict(log.identity) == identity), None)
        open_questions = _open_questions(gold, replace(cell, probes=()), judge, log)
        gold_workload = Workload(
            workload.name,
            workload.spec,
            f"gold images of {cell.suite}",
            open_questions.count,
            seconds=None
            if workload.seconds is None
            else workload.seconds * open_questions.count / workload.count,
            size=VERDICT_SIZE * open_questions.count,
        )
        self.plan.questions.append(self._priced(gold_workload, judge, [open_questions]))

    def _gold_of(self, suite: str) -> Evaluation | None:
        """The run on the gold images of all rows that are drawn of a suite; None without any."""
        if suite not in self._gold:
            rows = sampled_rows(self.study, suite, self.rows[suite])
            images = gold_rows(self.file.data_of(suite), suite, rows)
            name = open_suite(suite).gold
            root = self.study.root / FOLDER / name
            run = Run.open(root) if (root / HEADER).exists() else None
            settings = RunSettings(name, self.file.data_of(suite), root)
            self._gold[suite] = Evaluation.look(settings, images, run) if images else None
        return self._gold[suite]

    def _probe_questions(self, workload: Workload, judge: Judge, cell: Cell) -> Workload:
        """Asks about the probed images and measures it."""
        settings = self.probed.run_settings(cell)
        generator = Run.open(settings.out).header.generator
        tally, times, question_count = Tally(), [], 0
        try:
            with Evaluation.start(settings, generator, self.rows[cell.suite]) as opened:
                cases = [c for c in opened.cases[:PROBED] if c.id in opened.run.present()]
                for case in cases:
                    began = monotonic()
                    _, tally = opened.ask(
                        judge, cell.probes, cell.persona, [case], frames=cell.frames
                    )
                    times.append(monotonic() - began)
                    question_count = max(question_count, tally.labels.total())
        except CounterpriorError as error:
            self.plan.problems.append(f"judge {cell.judge} on {cell.suite}: {error}")
            return workload
        if tally.first_error:
            self.plan.problems.append(f"judge {cell.judge} on {cell.suite}: {tally.first_error}")
        if not question_count:
            return workload
        return replace(workload, seconds=_seconds(times, workload.count / question_count))

    def _scores(self, name: str, spec: str, cells: Sequence[Cell], probed: Container[str]) -> None:
        """The scores of one scorer, by suite."""
        scorer: Scorer | None = None
        try:
            scorer = as_scorer(spec, self.calls)
            scorer.identity()
        except CounterpriorError as error:
            self._cannot_open(f"scorer {name}", error)
        asks = Spec.parse(spec).argument
        usd = None if _paid_by_call(asks) else 0.0  # what a scorer asks a model is not known before
        for suite in dict.fromkeys(cell.suite for cell in cells):
            cells_of_suite = [cell for cell in cells if cell.suite == suite]
            count = sum(map(self._unscored, cells_of_suite))
            work, size = f"scores of {suite}", VERDICT_SIZE * count
            workload = Workload(name, spec, work, count, usd=usd, most_usd=usd, size=size)
            cell = next((cell for cell in cells_of_suite if cell.run in probed), None)
            if scorer is not None and usd is not None and self.probe and count and cell:
                workload = self._probe_scores(workload, scorer, cell)
            self.plan.scores.append(workload)

    def _unscored(self, cell: Cell) -> int:
        """Counts the images without a score, those that are not made yet too."""
        look = self._look(cell)
        log = self.study.scores_of(cell, look.run)
        return sum(
            not image.sha256 or log is None or any(map(log.needs, log.pairs_of(case, image)))
            for case, image in look.expected()
        )

    def _probe_scores(self, workload: Workload, scorer: Scorer, cell: Cell) -> Workload:
        """Scores the probed images one by one and measures it."""
        run = Run.open(self.probed.root / cell.folder)
        times = []
        for case in run.cases()[:PROBED]:
            if (image := run.images().get(case.id)) is not None and image.status == "made":
                frames = shown_frames(run.root, image, FrameChoice(cell.frames))
                began = monotonic()
                try:
                    scorer.score([(case.prompt, frame.image) for frame in frames])
                except Exception as error:  # a model's own code may raise anything
                    problem = f"scorer {cell.judge} on {cell.suite}: {error}"
                    self.plan.problems.append(problem)
                    return workload
                times.append(monotonic() - began)
        return replace(workload, seconds=_seconds(times, workload.count)) if times else workload

    def _questions_left(self, cell: Cell, judge: Judge | None) -> OpenQuestions:
        look = self._look(cell)
        return _open_questions(look, cell, judge, self.study.log_of(cell, look.run))


def _open_questions(
    look: Evaluation, cell: Cell, judge: Judge | None, log: VerdictLog | None
) -> OpenQuestions:
    """Collects the open questions of a cell, about images that are made or will be."""
    together = bool(getattr(judge, "takes_clips", False))
    probes = probes_of(cell.probes)
    asking = Asking(look.run.root, look.suite.name, cell.persona, probes, cell.frames, together)
    suite, open_questions = asking.open_suite(), OpenQuestions()
    for case, image in look.expected():
        questions, _ = asking.unanswered(suite, look.rows[case.row], case, image, log)
        open_questions.count += len(questions)
        open_questions.objections += filter(None, (objection_to(judge, q) for q in questions))
        open_questions.first = open_questions.first or next(iter(questions), None)
    return open_questions


def _edits(look: Evaluation) -> bool:
    """Whether images of a run are edits of given ones."""
    return any(case.source for case in look.cases)


def _paid_by_call(judge: str) -> bool:
    """Whether the judge of a spec is paid by the call."""
    return judge.partition(":")[0] in JUDGES.paid


def _is_paid(cell: Cell) -> bool:
    """Whether a step of a round trip is paid by call or image."""
    return any(
        (kind := Spec.parse(spec).kind) in CAPTIONERS.paid or kind in GENERATORS.paid
        for _, spec in cell.steps
    )


def _seconds(times: Sequence[float], count: float) -> float:
    """Time of `count` items, seconds; the first of several also loads the model, once."""
    if len(times) < 2:
        return sum(times) * count
    each = sum(times[1:]) / len(times[1:])
    return max(0.0, times[0] - each) + each * count


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is unknown."""
    numbers = list(values)
    return None if None in numbers else sum(value for value in numbers if value is not None)
