"""The steps that the command line and the Python API share: generate, judge, and both in a row.

Before the first image or call there is one look at everything that can be known. A study calls
the same steps for each of its cells, with one call plan for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from ...agents.budget import Spending
from ...agents.chat import BackendError
from ...errors import RunFailed, UsageError
from ...progress import Progress, silent
from ..clips.frames import USUAL, FrameChoice
from ..core import CaseGenerator, Judge, probes_of
from ..generators import as_generator
from ..judges import Answering, CallPlan, Prepared, as_judge
from ..methods import Method
from ..roundtrips.trip import RoundTrip, TripCase
from ..store.shards import RunShard
from ..store.verdicts import JudgeFailed, Tally, VerdictLog, check_tally
from ..suites import open_suite
from ..workers.farm import IN_PROCESS, Scale
from .costs import Cost, call_plan, capped, count_images
from .data import Rows, read_rows
from .evaluation import Evaluation, RunSettings
from .making import read_source
from .objections import check_questions
from .run import Run


@dataclass(frozen=True)
class JudgeSettings:
    """How a run is judged."""

    controls: tuple[str, ...] = ()
    """Names from `core.CONTROLS`, asked besides the question itself; both make the full 2 x 2."""
    persona: str = "standard"
    """How free questions are answered, of `suites.PERSONAS`."""
    revision: str | None = None
    """Tag or commit, where the run's data are a repository."""
    frames: str = USUAL
    """Choice of the frames of a clip that are judged, as text of a `FrameChoice`."""
    despite_failures: bool = False
    """Whether the others are asked where one judge doesn't answer, or its every call failed; see
    `Done.failures`."""


BeforeAsking = Callable[[Evaluation, Sequence[Judge], CallPlan], None]
"""Is called with a run and its judges before their first question."""


@dataclass
class Done:
    """Result of one command on a run."""

    run: Run
    """The folder."""
    judged: list[tuple[VerdictLog, Tally]] = field(default_factory=list)
    """Each judge's verdicts, and what came of asking."""
    spending: Spending = field(default_factory=Spending)
    """Cost of the judges' paid calls that were made now."""
    total: Decimal = Decimal(0)
    """What images and verdicts have cost so far, of everything under the same cap; US dollars."""
    unpriced: int = 0
    """How many of these calls have no known price."""
    failures: list[RunFailed] = field(default_factory=list)
    """Errors of judges that don't answer, or of which every call failed, where
    `JudgeSettings.despite_failures` lets the others go on."""

    def check_answered(self) -> None:
        """Raises RunFailed where no image was made, JudgeFailed for the first judge without an
        answer that counts."""
        self.run.check_made()
        for log, _ in self.judged:
            log.check_answered()

    def raise_failure(self) -> None:
        """Raises BackendError or JudgeFailed for the first judge that failed, if any."""
        for failure in self.failures:
            raise failure


def generate(
    settings: RunSettings,
    generator: CaseGenerator | str,
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    rows: Rows | None = None,
    scale: Scale = IN_PROCESS,
    spec: Any = None,
    check: Callable[[Evaluation], None] | None = None,
) -> Done:
    """Makes every image that a suite asks for, or finds it; what is there stays.

    spec: what workers open in place of an opened generator. check: looks at the run before the
    first image, and raises what ends it. Raises RunError for a folder of another
    run, UsageError for a bad spec, ReleaseError for bad data, BudgetError where a cap ends the run.
    """
    opened = generator if isinstance(generator, RoundTrip) else as_generator(generator)
    with (
        Evaluation.start(settings, opened.identity(), rows, scale.shard) as evaluation,
        call_plan(cost, settings.out, scale.shard) as plan,
    ):
        evaluation.check_sources()
        if isinstance(opened, Method) and scale.workers > 1:
            raise UsageError(
                "--method draws in one process: use --shard instead of --workers",
                code="conflicting-options",
            )
        if isinstance(opened, Prepared):
            opened.prepare(evaluation.run.root, plan)
        evaluation.check_generator(opened)
        if check is not None:
            check(evaluation)
        maker: CaseGenerator = opened
        several = 1
        if not isinstance(opened, RoundTrip):  # whose models are under the cap already
            maker, several = capped(opened, plan, evaluation.run)
        evaluation.make(
            maker, concurrency=several, progress=progress, scale=scale, spec=spec or generator
        )
        evaluation.write_manifest()
        return _with_total(Done(evaluation.run), plan)


def _with_total(done: Done, plan: CallPlan) -> Done:
    return replace(done, total=plan.budget.spent, unpriced=plan.budget.log.unpriced)


def trip_cases(
    settings: RunSettings, trip: RoundTrip, rows: Rows, shard: RunShard | None = None
) -> Iterator[TripCase]:
    """The cases of a run of round trips that nothing is made of yet."""
    with Evaluation.start(settings, trip.identity(), rows, shard) as evaluation:
        for case in evaluation.open_cases():
            read = partial(read_source, evaluation.run.root.absolute(), case)
            yield TripCase(trip, case, read)  # type: ignore[arg-type]


def judge_run(
    root: Path,
    judges: Sequence[Judge | str],
    settings: JudgeSettings = JudgeSettings(),
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    rows: Rows | None = None,
    scale: Scale = IN_PROCESS,
    specs: Sequence[Judge | str] = (),
    before: BeforeAsking | None = None,
) -> Done:
    """Asks judges about every image of a run, once.

    specs: what workers open in place of opened judges, who were asked already whether they answer.
    Raises RunError for a run that is not there or not complete, JudgeFailed where every call of a
    judge failed, BudgetError where a cap ends the run.
    """
    probes_of(settings.controls)
    FrameChoice(settings.frames)
    with (
        call_plan(cost, root, scale.shard) as plan,
        Evaluation.open(root, settings.revision, rows, scale.shard) as evaluation,
    ):
        opened = [as_judge(judge, plan) for judge in judges]
        done = Done(evaluation.run)
        count_images(plan, evaluation.run)
        evaluation.check_sources()
        if not specs:
            check_answering(opened)
        if before is not None:
            before(evaluation, opened, plan)
        for judge, spec in zip(opened, specs or judges, strict=True):
            log, tally = evaluation.ask(
                judge,
                settings.controls,
                settings.persona,
                progress=progress,
                scale=scale,
                spec=spec,
                ledgers=plan.ledgers,
                frames=settings.frames,
            )
            done.judged.append((log, tally))
            try:
                check_tally(log.name, tally)
            except JudgeFailed as failure:
                if not settings.despite_failures:
                    raise
                done.failures.append(failure)
        done.spending = plan.budget.spending
        return _with_total(done, plan)


def evaluate_run(
    run: RunSettings,
    generator: CaseGenerator | str,
    judges: Sequence[Judge | str],
    settings: JudgeSettings = JudgeSettings(),
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    rows: Rows | None = None,
    scale: Scale = IN_PROCESS,
    before: BeforeAsking | None = None,
) -> Done:
    """`generate` and `judge_run` in a row, as a study does for each of its runs, with one cap.

    Judges are opened and asked whether they answer before the first image is made. Raises
    UsageError for one that can answer none of the suite's questions.
    """
    open_suite(run.suite, settings.persona)
    probes_of(settings.controls)
    FrameChoice(settings.frames)
    maker = as_generator(generator)
    with call_plan(cost, run.out, scale.shard) as plan:
        opened = [as_judge(judge, plan) for judge in judges]
        rows = rows or read_rows(run.data, run.suite, run.revision)
        failed = check_answering(opened, settings.despite_failures)
        asked = [place for place in range(len(opened)) if place not in failed]

        def check(evaluation: Evaluation) -> None:
            answering = [opened[place] for place in asked]
            asked_by = settings.controls, settings.persona, settings.frames
            check_questions(answering, evaluation, *asked_by)

        generate(run, maker, plan, progress, rows, scale=scale, spec=generator, check=check)
        done = judge_run(
            run.out,
            [opened[place] for place in asked],
            settings,
            plan,
            progress,
            rows,
            scale=scale,
            specs=[judges[place] for place in asked],
            before=before,
        )
        done.failures[:0] = failed.values()
        return done


def check_answering(
    judges: Sequence[Judge], despite_failures: bool = False
) -> dict[int, BackendError]:
    """Asks judges whether they would answer.

    Raises BackendError for one that would not, UnpricedError under a cap. With despite_failures,
    returns the place of each that would not answer with its error, unless none would.
    """
    errors: dict[int, BackendError] = {}
    for place, judge in enumerate(judges):
        if isinstance(judge, Answering):
            try:
                judge.check()
            except BackendError as error:
                errors[place] = error
                if not despite_failures or len(errors) == len(judges):
                    raise
    return errors
