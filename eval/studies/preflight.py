"""`study plan`: what a study takes, and what would fail in it, before it costs anything.

What isn't known is unknown: time and disk are measured (`probe`), not guessed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from PIL import Image

from ...agents.budget import Budget
from ...errors import CounterpriorError
from ...progress import Progress, silent
from ...specs import Spec
from ..captioners import PAID_CAPTIONERS
from ..checkpoints.extras import find_class
from ..clips.frames import FrameChoice
from ..core import ORIGINAL, Case, Judge, Maker, Question, probes_of
from ..engine.costs import Cost
from ..engine.data import Rows, read_rows, row_fields, sample_rows
from ..engine.evaluation import Evaluation, RunSettings, source_name
from ..engine.frames import shown_frames
from ..engine.run import HEADER, Run
from ..generators import GENERATORS, Checked, PaidByImage
from ..generators.paid import PaidGenerator
from ..judges import PAID, open_judge
from ..roundtrips.log import StepLog
from ..roundtrips.models import OpenStep, TripModels
from ..roundtrips.routes import EDITS, MADE, StepKind
from ..roundtrips.trip import RoundTrip
from ..scorers import Scorer, open_scorer
from ..store.spool import RowIndex
from ..store.verdicts import Tally, VerdictLog, judging_identity
from ..suites import open_gold, open_suite
from .estimates import ASSUMED, UNKNOWN, of_question, of_step, total
from .folder import FILE, Study
from .judge_check import FOLDER, gold_rows
from .runner import open_model, sampled_rows
from .scores.corpora import read_corpus
from .spec import Cell, StudyFile, cells_of, read_study

PROBED = 3
"""Images that a probe makes with each model; the first one also loads it."""
VERDICT_SIZE = 500
"""About the size of a recorded verdict, bytes."""
STEPS: Mapping[StepKind, str] = {
    "tell": "captions",
    "draw": "drawings",
    "revise": "revised captions",
    "retouch": "edited images",
}
"""What is made by a step of a round trip."""


@runtime_checkable
class Particular(Protocol):
    """A judge that answers only some kinds of questions."""

    tasks: frozenset[str]
    """Of `core.Task`."""


@dataclass(frozen=True)
class PlanPart:
    """What one model has to do."""

    name: str
    spec: str
    what: str
    """`images`, `texts`, `captions`, `questions`, ... and of which suite."""
    count: int
    """Not done yet."""
    usd: float | None = 0.0
    """Estimate, US dollars; None where no price is known."""
    most_usd: float | None = 0.0
    """Worst case, as the cap counts it."""
    seconds: float | None = None
    """Of work, one after the other; None where it wasn't measured."""
    size: float | None = 0.0
    """Bytes on disk; None where it wasn't measured."""


@dataclass
class StudyPlan:
    """What a study takes."""

    cells: int
    images: list[PlanPart] = field(default_factory=list)
    """Of each run, and the texts that round trips make in their place."""
    steps: list[PlanPart] = field(default_factory=list)
    """Of round trips; at most so many, because steps from the same image or text are taken once.
    Their time and disk are the images'."""
    questions: list[PlanPart] = field(default_factory=list)
    scores: list[PlanPart] = field(default_factory=list)
    """Of scorers; at most so many, because images that are alike are scored once."""
    problems: list[str] = field(default_factory=list)
    """What would fail."""
    notes: list[str] = field(default_factory=list)
    """What the numbers stand on."""

    @property
    def usd(self) -> float | None:
        """Estimate of all, US dollars."""
        return _sum(part.usd for part in self.parts)

    @property
    def seconds(self) -> float | None:
        """Time of all, one after the other."""
        return _sum(part.seconds for part in self.parts)

    @property
    def size(self) -> float | None:
        """Bytes on disk."""
        return _sum(part.size for part in self.parts)

    @property
    def parts(self) -> list[PlanPart]:
        """Images, steps, questions and scores that are left to do."""
        found = (*self.images, *self.steps, *self.questions, *self.scores)
        return [part for part in found if part.count]

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
    progress: Progress = silent,
) -> StudyPlan:
    """What is left to do of a study, by model and suite.

    out: folder of the study; what it has is left out. probe: measure time and disk with a few
    images and questions of each model that isn't paid, in a folder that is deleted. Raises
    StudyError for a bad file, ReleaseError for data that can't be read; what else would fail is in
    `problems`.
    """
    study = read_study(file, changes)
    there = Study(out, study) if out is not None and (out / FILE).exists() else None
    rows = {suite: read_rows(study.data, suite) for suite in study.suites}
    cap = study.max_usd if max_usd is None else max_usd
    with tempfile.TemporaryDirectory(prefix="counterprior-") as folder:
        return _Planner(study, there, rows, cap, Path(folder), probe, progress).plan()


class _Planner:
    def __init__(
        self,
        study: StudyFile,
        there: Study | None,
        rows: dict[str, Rows],
        cap: float | None,
        folder: Path,
        probe: bool,
        progress: Progress,
    ) -> None:
        self.study, self.there, self.rows, self.folder = study, there, rows, folder
        self.progress = progress
        self.probe = probe
        prices = Path(study.prices) if study.prices else None
        self.calls = Cost(study.concurrency, cap, prices).plan(folder)
        self.trips = TripModels(self.calls, StepLog(there.root) if there else None)
        self.found = StudyPlan(len(cells_of(study)))
        self._gold_asked: dict[str, list[Question]] = {}

    @property
    def budget(self) -> Budget:
        return self.calls.budget

    def plan(self) -> StudyPlan:
        cells = cells_of(self.study)
        self._files()
        probed: dict[str, Path] = {}
        for model in dict.fromkeys((cell.generator, cell.model) for cell in cells):
            runs = {c.run: c for c in cells if (c.generator, c.model) == model}
            probed |= self._images(model[0], model[1], list(runs.values()))
        self._steps({cell.run: cell for cell in cells if cell.start}.values())
        for name, spec in self.study.all_judges.items():
            self._questions(name, spec, [c for c in cells if c.judge == name], probed)
        for name, spec in self.study.scorers.items():
            self._scores(name, spec, [c for c in cells if c.judge == name], probed)
        self._note()
        return self.found

    def _files(self) -> None:
        for folder in self.study.corpora.values():
            try:
                read_corpus(Path(folder))
            except CounterpriorError as error:
                self.found.problems.append(str(error))
        for files in self.study.labels.values():
            for name in files.values() if isinstance(files, dict) else (files,):
                if not Path(name).is_file():
                    self.found.problems.append(f"labels: there is no file {name}")

    def _note(self) -> None:
        if any(part.usd for part in (*self.found.questions, *self.found.steps)):
            self.found.notes.append(ASSUMED)
        if not self.probe:
            self.found.notes.append("Time and disk are measured with --probe.")
        cap = self.budget.max_usd
        if cap is not None and (usd := self.found.usd) is not None and usd > cap:
            self.found.problems.append(f"the cap of {cap} USD is below the estimate of {usd:.2f}")

    def _images(self, name: str, spec: str, runs: Sequence[Cell]) -> dict[str, Path]:
        """The images of one generator, by suite; returns the runs that were probed."""
        generator: Maker | None = None
        try:
            generator = open_model(runs[0], self.trips)
            if isinstance(generator, PaidByImage):
                PaidGenerator(generator, self.budget)  # it has a price, where there is a cap
        except CounterpriorError as error:
            self.found.problems.append(f"generator {name}: {error}")
        probed = {}
        for run in runs:
            cases = self._cases(run)
            left = self._left(run, cases)
            edits = bool(cases) and self._edits(run)
            if generator is not None and isinstance(generator, Checked):
                try:
                    generator.check(cases)
                except CounterpriorError as error:
                    self.found.problems.append(f"generator {name} on {run.suite}: {error}")
            what = "texts" if run.ends_in_text else "images"
            part = PlanPart(name, spec, f"{what} of {run.suite}", len(left), size=None)
            if run.start and _is_paid(run):  # its steps are priced, and not measured
                pass
            elif isinstance(generator, PaidByImage):
                price = self.budget.prices.image(generator.identity())
                each = None if price is None else price.edit if edits else price.image
                usd = None if each is None else float(each * len(left))
                part = replace(part, usd=usd, most_usd=usd)
            elif generator is not None and self.probe and left:
                root = self.folder / run.run
                part = self._probe_images(part, generator, run, root)
                probed[run.run] = root
            elif generator is None:
                part = replace(part, usd=None, most_usd=None)
            self.found.images.append(part)
        return probed

    def _steps(self, runs: Iterable[Cell]) -> None:
        """The steps of all round trips, by who takes them; one that several share counts once."""
        found: dict[tuple[str, StepKind, str], dict[str, OpenStep]] = {}
        problems: dict[str, None] = {}
        for run in runs:
            specs = dict(run.steps)
            try:
                trip = open_model(run, self.trips)
                assert isinstance(trip, RoundTrip)
                trip.check_answering()
                for case in self._cases(run):
                    for one in trip.left(case, lambda: Image.new("RGB", (1, 1))):
                        place = run.suite, one.step, specs[one.step]
                        found.setdefault(place, {})[one.key] = one
            except CounterpriorError as error:
                problems[f"round trips: {error}"] = None
        self.found.problems += problems
        for (suite, step, spec), steps in found.items():
            usd, most = total([of_step(self.budget, one) for one in steps.values()])
            part = PlanPart(self._who(step, spec), spec, f"{STEPS[step]} of {suite}", len(steps))
            self.found.steps.append(replace(part, usd=usd, most_usd=most, seconds=0.0))

    def _who(self, step: StepKind, spec: str) -> str:
        """The name in the study of who takes a step."""
        if step in EDITS:
            return f"editor of {MADE[step]}s"
        named = self.study.all_captioners if step == "tell" else self.study.all_generators
        return next(name for name, text in named.items() if text == spec)

    def _probe_images(self, part: PlanPart, generator: Maker, run: Cell, root: Path) -> PlanPart:
        """Makes a few images in a folder of its own and measures them."""
        settings = _settings(self.study.data, root, run)
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
            self.found.problems.append(f"generator {run.generator} on {run.suite}: {error}")
            return part
        if wrong is not None:
            self.found.problems.append(
                f"generator {run.generator} on {run.suite}: {wrong.status}: {wrong.message}"
            )
        made = sum(image.status == "made" for image in images)
        return replace(
            part,
            seconds=_seconds(times, part.count) if made else None,
            size=part.count * size / made if made else None,
        )

    def _questions(
        self, name: str, spec: str, cells: Sequence[Cell], probed: dict[str, Path]
    ) -> None:
        """The questions of one judge, by suite."""
        judge: Judge | None = None
        try:
            judge = open_judge(spec, self.calls)
            judge.identity()
            if (check := getattr(judge, "check", None)) is not None:
                check()
        except CounterpriorError as error:
            self.found.problems.append(f"judge {name}: {error}")
        for suite in dict.fromkeys(cell.suite for cell in cells):
            own = [cell for cell in cells if cell.suite == suite]
            asked = [self._asked(cell) for cell in own]
            count = sum(len(q) - self._answered(c) for c, q in zip(own, asked, strict=True))
            part = PlanPart(name, spec, f"questions of {suite}", count, size=VERDICT_SIZE * count)
            if isinstance(judge, Particular):
                wrong = {q.task for questions in asked for q in questions} - judge.tasks
                if wrong:
                    self.found.problems.append(
                        f"judge {name} can't answer the questions of {suite} ({min(wrong)})"
                    )
            todo = [
                (len(questions) - self._answered(cell), questions[0])
                for cell, questions in zip(own, asked, strict=True)
                if questions
            ]
            part = self._priced(part, judge, todo)
            if judge is not None and self.probe and count and spec.partition(":")[0] not in PAID:
                cell = next((c for c in own if c.run in probed), None)
                if cell is not None:
                    part = self._probe_questions(part, judge, cell, probed[cell.run])
            if count and not self.study.unchecked and open_suite(suite).gold:
                self._check_first(part, judge, own[0])
            self.found.questions.append(part)

    def _priced(
        self, part: PlanPart, judge: Judge | None, asked: Sequence[tuple[int, Question]]
    ) -> PlanPart:
        """What so many questions like each of these cost."""
        if part.spec.partition(":")[0] not in PAID:
            return part
        usd, most = UNKNOWN
        if judge is not None:
            identity = judge.identity()
            usd, most = total([of_question(self.budget, identity, q).times(n) for n, q in asked])
        return replace(part, usd=usd, most_usd=most)

    def _check_first(self, asked: PlanPart, judge: Judge | None, cell: Cell) -> None:
        """The questions about gold images that a judge is asked before those of a suite.

        asked: its questions of the suite.
        """
        gold = self._gold(cell.suite)
        if not gold or Spec.parse(asked.spec).kind == "human":
            return
        known = 0
        root = self.there.root / FOLDER / open_suite(cell.suite).gold if self.there else None
        if judge is not None and root is not None and (root / HEADER).exists():
            identity = judging_identity(judge.identity(), cell.persona, cell.frames)
            run = Run.open(root)
            logs = [log for log in run.judges() if dict(log.identity) == identity]
            known = sum(_told(run, log) for log in logs)
        count = len(gold) - known
        part = PlanPart(
            asked.name,
            asked.spec,
            f"gold images of {cell.suite}",
            count,
            seconds=None if asked.seconds is None else asked.seconds * count / asked.count,
            size=VERDICT_SIZE * count,
        )
        self.found.questions.append(self._priced(part, judge, [(count, gold[0])]))

    def _gold(self, suite: str) -> list[Question]:
        """The questions about the gold images of all rows that are drawn of a suite."""
        if suite not in self._gold_asked:
            rows = sampled_rows(cells_of(self.study), suite, self.rows[suite])
            found = gold_rows(self.study.data, suite, rows)
            gold, blank = open_gold(suite), [Image.new("RGB", (1, 1))]
            assert gold is not None, "only suites with gold images are asked about them"
            self._gold_asked[suite] = [
                question
                for row in (found.rows if found else ())
                for case in gold.cases(row, 1)
                for question in gold.questions(row, case, blank, ORIGINAL)
            ]
        return self._gold_asked[suite]

    def _probe_questions(self, part: PlanPart, judge: Judge, cell: Cell, root: Path) -> PlanPart:
        """Asks about the probed images and measures it."""
        settings = _settings(self.study.data, root, cell)
        tally, times, asked = Tally(), [], 0
        try:
            with Evaluation.start(
                settings, Run.open(root).header.generator, self.rows[cell.suite]
            ) as opened:
                made = [c for c in opened.cases[:PROBED] if c.id in opened.run.present()]
                for case in made:
                    began = monotonic()
                    _, tally = opened.ask(
                        judge, cell.probes, cell.persona, [case], frames=cell.frames
                    )
                    times.append(monotonic() - began)
                    asked = max(asked, tally.labels.total())
        except CounterpriorError as error:
            self.found.problems.append(f"judge {cell.judge} on {cell.suite}: {error}")
            return part
        if tally.first_error:
            self.found.problems.append(f"judge {cell.judge} on {cell.suite}: {tally.first_error}")
        if not asked:
            return part
        return replace(part, seconds=_seconds(times, part.count / asked))

    def _scores(self, name: str, spec: str, cells: Sequence[Cell], probed: dict[str, Path]) -> None:
        """The scores of one scorer, by suite."""
        scorer: Scorer | None = None
        try:
            scorer = open_scorer(spec, self.calls)
            scorer.identity()
        except CounterpriorError as error:
            self.found.problems.append(f"scorer {name}: {error}")
        asks = Spec.parse(spec).argument.partition(":")[0]
        usd = None if asks in PAID else 0.0  # what a scorer asks a model is not known before
        for suite in dict.fromkeys(cell.suite for cell in cells):
            own = [cell for cell in cells if cell.suite == suite]
            count = sum(len(self._cases(cell)) - self._scored(cell) for cell in own)
            what, size = f"scores of {suite}", VERDICT_SIZE * count
            part = PlanPart(name, spec, what, count, usd=usd, most_usd=usd, size=size)
            cell = next((cell for cell in own if cell.run in probed), None)
            if scorer is not None and usd is not None and self.probe and count and cell:
                part = self._probe_scores(part, scorer, cell, probed[cell.run])
            self.found.scores.append(part)

    def _scored(self, cell: Cell) -> int:
        run = self.there.run_of(cell) if self.there else None
        log = self.there.scores_of(cell, run) if self.there and run else None
        if run is None or log is None:
            return 0
        return sum(not one.error for one in log.of_cases(run, run.cases()).values())

    def _probe_scores(self, part: PlanPart, scorer: Scorer, cell: Cell, root: Path) -> PlanPart:
        """Scores the probed images one by one and measures it."""
        run = Run.open(root)
        times = []
        for case in run.cases()[:PROBED]:
            if (image := run.images().get(case.id)) is not None and image.status == "made":
                frames = shown_frames(root, image, FrameChoice(cell.frames))
                began = monotonic()
                try:
                    scorer.score([(case.prompt, frame.image) for frame in frames])
                except Exception as error:  # a model's own code may raise anything
                    told = f"scorer {cell.judge} on {cell.suite}: {error}"
                    self.found.problems.append(told)
                    return part
                times.append(monotonic() - began)
        return replace(part, seconds=_seconds(times, part.count)) if times else part

    def _cases(self, cell: Cell) -> list[Case]:
        suite = open_suite(cell.suite)
        rows = sample_rows(self.rows[cell.suite].rows, cell.limit, suite.together)
        unknown = "source" if self._edits(cell) else ""  # of a release without its images
        return [
            replace(
                case,
                source=source_name(row) or unknown,
                fields=row_fields(row) if cell.start else {},
            )
            for row in rows
            for case in suite.cases(row, cell.seeds)
            if not cell.variants or case.variant in cell.variants
        ]

    def _left(self, cell: Cell, cases: Sequence[Case]) -> list[Case]:
        run = self.there.run_of(cell) if self.there else None
        images = run.images() if run else {}
        return [
            c for c in cases if c.id not in images or images[c.id].status in ("error", "missing")
        ]

    def _edits(self, cell: Cell) -> bool:
        row = self.rows[cell.suite].rows[0]
        return hasattr(row, "seed_image") or row.source_image is not None

    def _asked(self, cell: Cell) -> list[Question]:
        suite = open_suite(cell.suite, cell.persona)
        rows = RowIndex(self.rows[cell.suite].rows)
        blank = [Image.new("RGB", (1, 1))] * (2 if self._edits(cell) else 1)
        return [
            question
            for case in self._cases(cell)
            for probe in probes_of(cell.probes)
            for question in suite.questions(rows[case.row], case, blank, probe)
        ]

    def _answered(self, cell: Cell) -> int:
        run = self.there.run_of(cell) if self.there else None
        log = self.there.log_of(cell, run) if self.there and run else None
        if run is None or log is None:
            return 0
        return _told(run, log)


def _told(run: Run, log: VerdictLog) -> int:
    """Questions that a judge need not be asked again."""
    return sum(a.verdict.label != "error" for a in log.present(run.present()))


def _settings(data: str, root: Path, cell: Cell) -> RunSettings:
    """Of the run of a cell, in a folder of its own."""
    return RunSettings(
        cell.suite, data, root, seeds=cell.seeds, limit=cell.limit, variants=cell.variants
    )


def _is_paid(cell: Cell) -> bool:
    """Whether a step of a round trip is paid by call or image."""
    return any(
        (kind := Spec.parse(spec).kind) in PAID_CAPTIONERS
        or (kind in GENERATORS and issubclass(find_class(GENERATORS[kind]), PaidByImage))
        for _, spec in cell.steps
    )


def _seconds(times: Sequence[float], count: float) -> float:
    """Time of so many; the first of several also loads the model, once."""
    if len(times) < 2:
        return sum(times) * count
    each = sum(times[1:]) / len(times[1:])
    return max(0.0, times[0] - each) + each * count


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum; None where one is unknown."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)
