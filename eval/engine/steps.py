"""The steps that the command line and the Python API share: generate, judge, and both in a row.

Before the first image or call there is one look at everything that can be known. A study calls
the same steps for each of its cells, with one call plan for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...agents.budget import Spending
from ...errors import UsageError
from ...progress import Progress, silent
from ..core import Generator, Judge, probes_of
from ..generators import as_generator
from ..judges import Answering, CallPlan, as_judge
from ..methods import Method
from ..suites import open_suite
from .costs import Cost, capped, count_images
from .data import Rows
from .evaluation import Evaluation, RunSettings
from .run import Run
from .verdicts import Tally, VerdictLog, check_tally
from .workers import HERE, Scale


@dataclass(frozen=True)
class JudgeSettings:
    """How a run is judged."""

    controls: tuple[str, ...] = ()
    """Of `core.CONTROLS`: asked besides the question itself; both make the full 2 x 2."""
    persona: str = "standard"
    """How free questions are answered, of `suites.PERSONAS`."""
    revision: str | None = None
    """Tag or commit, where the run's data are a repository."""


@dataclass
class Done:
    """What one command did to a run."""

    run: Run
    """The folder."""
    judged: list[tuple[VerdictLog, Tally]] = field(default_factory=list)
    """Each judge's verdicts, and what came of asking."""
    spending: Spending = field(default_factory=Spending)
    """What paid calls came to."""


def generate(
    settings: RunSettings,
    generator: Generator | str,
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    found: Rows | None = None,
    scale: Scale = HERE,
    spec: str = "",
) -> Done:
    """Makes every image that a suite asks for, or finds it; what is there stays.

    spec: what workers open in place of an opened generator. Raises RunError for a folder of another
    run, UsageError for a bad spec, ReleaseError for bad data, BudgetError where a cap ends the run.
    """
    opened = as_generator(generator)
    with Evaluation.start(settings, opened.identity(), found, scale.shard) as evaluation:
        plan = _plan(cost, settings.out, scale.shard)
        evaluation.check_sources()
        _make(evaluation, opened, plan, progress, scale=scale, spec=spec or generator)
        return Done(evaluation.run)


def judge_run(
    root: Path,
    judges: Sequence[Judge | str],
    settings: JudgeSettings = JudgeSettings(),
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    found: Rows | None = None,
    scale: Scale = HERE,
    specs: Sequence[str] = (),
) -> Done:
    """Asks judges about every image of a run, once.

    specs: what workers open in place of opened judges. Raises RunError for a run that is not there
    or not complete, JudgeFailed where every call of a judge failed, BudgetError where a cap ends
    the run.
    """
    plan = _plan(cost, root, scale.shard)
    opened = [as_judge(judge, plan) for judge in judges]
    probes_of(settings.controls)
    with Evaluation.open(root, settings.revision, found, scale.shard) as evaluation:
        count_images(plan, evaluation.run)
        evaluation.check_sources()
        check_answering(opened)
        pairs = list(zip(opened, specs or judges, strict=True))
        return _ask(evaluation, pairs, settings, plan, progress, scale=scale)


def evaluate_run(
    run: RunSettings,
    generator: Generator | str,
    judges: Sequence[Judge | str],
    settings: JudgeSettings = JudgeSettings(),
    cost: Cost | CallPlan | None = None,
    progress: Progress = silent,
    found: Rows | None = None,
    scale: Scale = HERE,
) -> Done:
    """`generate` and `judge_run` in a row, with one cap over both.

    Judges are opened and asked whether they answer before the first image is made.
    """
    open_suite(run.suite, settings.persona)
    probes_of(settings.controls)
    maker = as_generator(generator)
    plan = _plan(cost, run.out, scale.shard)
    opened = [as_judge(judge, plan) for judge in judges]
    with Evaluation.start(run, maker.identity(), found, scale.shard) as evaluation:
        evaluation.check_sources()
        check_answering(opened)
        _make(evaluation, maker, plan, progress, scale=scale, spec=generator)
        count_images(plan, evaluation.run)
        pairs = list(zip(opened, judges, strict=True))
        return _ask(evaluation, pairs, settings, plan, progress, scale=scale)


def _plan(cost: Cost | CallPlan | None, root: Path, shard: tuple[int, int] | None) -> CallPlan:
    """The call plan of one run, or the one that it shares with others, as in a study."""
    return cost if isinstance(cost, CallPlan) else (cost or Cost()).plan(root, shard)


def _make(
    evaluation: Evaluation,
    generator: Generator,
    plan: CallPlan,
    progress: Progress,
    *,
    scale: Scale,
    spec: Generator | str,
) -> None:
    evaluation.check_generator(generator)
    if isinstance(generator, Method):
        if scale.workers > 1:
            raise UsageError("--method draws in one process: use --shard instead of --workers")
        generator.prepare(evaluation.run.root, plan)
    maker, several = capped(generator, plan, evaluation.run)
    evaluation.make(maker, concurrency=several, progress=progress, scale=scale, spec=spec)
    evaluation.write_manifest()


def check_answering(judges: Sequence[Judge]) -> None:
    """Raises BackendError for a judge that would not answer, UnpricedError under a cap."""
    for judge in judges:
        if isinstance(judge, Answering):
            judge.check()


def _ask(
    evaluation: Evaluation,
    judges: Sequence[tuple[Judge, Judge | str]],
    settings: JudgeSettings,
    plan: CallPlan,
    progress: Progress,
    *,
    scale: Scale,
) -> Done:
    done = Done(evaluation.run)
    for judge, spec in judges:
        log, tally = evaluation.ask(
            judge,
            settings.controls,
            settings.persona,
            progress=progress,
            scale=scale,
            spec=spec,
        )
        check_tally(log.name, tally)
        done.judged.append((log, tally))
    done.spending = plan.budget.spending
    return done
