"""Commands that size and run comparisons of generators, and check judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from ..errors import UsageError
from .console import print_json
from .options import (
    CallOptions,
    Data,
    Further,
    Input,
    Json,
    JudgeNames,
    Judges,
    Limit,
    Methods,
    Model,
    Output,
    Persona,
    Revision,
    Sampling,
)
from .progress import progress_bar
from .show_metrics import print_metrics
from .show_results import (
    detector_json,
    print_detectors,
    print_done,
    print_findings,
    print_judge_checks,
    print_on_drawn,
    print_on_real,
)

if TYPE_CHECKING:
    from ..eval.engine.steps import Done


def power(
    runs: Annotated[list[Path] | None, Argument(help="Two judged runs of a suite.")] = None,
    rate: Annotated[
        list[float] | None, Input(help="Assumed rate in place of runs; give two.")
    ] = None,
    discordance: Annotated[
        float | None, Input(help="Share of items that only one of the two gets right.")
    ] = None,
    difference: Annotated[
        float | None, Sampling(help="Smallest difference to detect, in (0, 1].")
    ] = None,
    judge: JudgeNames = None,
    alpha: Annotated[float, Sampling(help="Significance level.")] = 0.05,
    power: Annotated[float, Sampling(help="Probability of detecting the difference.")] = 0.8,
    json: Json = False,
) -> None:
    """Compute how many items tell two generators apart, from a pilot of both or assumed rates.

    Example: `counterprior study power --rate 0.70 --rate 0.75 --discordance 0.2`
    """
    from ..eval.studies.sample_size import PlanSettings
    from ..eval.studies.sample_size import plan as plan_items

    settings = PlanSettings(difference=difference, alpha=alpha, power=power)
    sample_size = plan_items(runs or (), rate or (), discordance, settings, judge or ())
    print_metrics(sample_size, json)


def judge_check(
    judges: Judges,
    out: Annotated[Path, Output(help="Folder; run again to continue.")],
    calls: CallOptions,
    suite: Annotated[
        list[str] | None,
        Input(help="Config whose judges are checked; repeatable. Else all with gold images."),
    ] = None,
    cutouts: Annotated[
        Path | None,
        Input(help="CLASS/*.png to compose images of, for spatial_uc and spatial_visor."),
    ] = None,
    images: Annotated[
        Path | None,
        Input(help="Folder of real images that readers have labeled, as in VISOR's repository."),
    ] = None,
    drawn: Annotated[
        bool,
        Input("--drawn", help="Ask the same about drawn images, from easy to hard."),
    ] = False,
    data: Data = "dist/counterprior",
    revision: Revision = None,
    limit: Limit = None,
    persona: Persona = "standard",
    json: Json = False,
) -> None:
    """Test judges on images whose truth is known: on which items can each be believed?

    For spatial_uc and spatial_visor, images are composed, and show what a detector misses. With
    --images, judges are asked about real images, whose labels are in the release (real_gold);
    --drawn asks the same about drawn images of rising difficulty. Both together compare them.

    Example: `counterprior judge-check --judge openai:MODEL --out gold --max-usd 5`
    """
    from ..eval.studies.detector_check import COMPOSED, check_detectors
    from ..eval.studies.judge_check import check_judges
    from ..eval.studies.real_check import DRAWN, check_on_drawn, check_on_real
    from ..eval.suites.real import RealGoldSuite

    real = RealGoldSuite.name
    if real in (suite or ()) and images is None:
        raise UsageError(
            f"{real} holds labels and no images",
            "name their folder with --images",
            code="missing-option",
        )
    composed = [name for name in suite or () if name in COMPOSED]
    others = [name for name in suite or () if name not in (*COMPOSED, real)]
    if cutouts is not None and not composed:
        raise UsageError(
            "--cutouts is for judges that detect", "add --suite spatial_uc", code="missing-option"
        )
    with progress_bar() as progress:
        detectors = [
            check_detectors(
                data,
                out,
                judges,
                name,
                cutouts=cutouts,
                revision=revision,
                limit=limit,
                cost=calls.cost(),
                progress=progress,
            )
            for name in composed
        ]
        checked_suites = (
            check_judges(
                data,
                out,
                judges,
                suites=others,
                persona=persona,
                revision=revision,
                limit=limit,
                cost=calls.cost(),
                progress=progress,
            )
            if others or not (composed or images or drawn)
            else []
        )
        on_real = (
            check_on_real(
                data,
                images,
                out,
                judges,
                revision=revision,
                limit=limit,
                cost=calls.cost(),
                progress=progress,
            )
            if images
            else None
        )
        on_drawn = (
            check_on_drawn(
                out,
                judges,
                revision=revision,
                limit=limit,
                cost=calls.cost(),
                progress=progress,
            )
            if drawn
            else None
        )
    finished = [f.done for f in (*detectors, *checked_suites, on_real, on_drawn) if f]
    if json:
        by_suite = {f.suite.name: [asdict(check) for check in f.checks] for f in checked_suites}
        by_suite |= {d.suite: [detector_json(d, check) for check in d.checks] for d in detectors}
        if on_real:
            by_suite[real] = [judged.result.to_json() for judged in on_real.judged]
        if on_drawn:
            by_suite[DRAWN] = [judged.result.to_json() for judged in on_drawn.judged]
        print(dumps(by_suite, indent=2))
        _raise_failure(finished)
        return
    for checked in checked_suites:
        print_done(checked.done)
        print_judge_checks(checked)
    for detected in detectors:
        print_done(detected.done)
        print_detectors(detected)
    if on_real:
        print_done(on_real.done)
        print_on_real(on_real)
    if on_drawn:
        print_done(on_drawn.done)
        print_on_drawn(on_drawn, on_real)
    _raise_failure(finished)


def _raise_failure(finished: Sequence[Done]) -> None:
    """Raises the error of a judge that failed, once the others are printed."""
    for done in finished:
        done.raise_failure()


def findings(
    data: Data = "dist/counterprior",
    images: Annotated[
        Path | None,
        Input(help="Folder of the images, to compare them with the labels' digests."),
    ] = None,
    detections: Annotated[
        Path | None, Input(help="JSONL of `spatial detect`: compare a detector with the readers.")
    ] = None,
    revision: Revision = None,
    out: Annotated[Path | None, Output(help="Folder of the figures, as SVG.")] = None,
    json: Json = False,
) -> None:
    """Show what readers saw in real images: agreement, what is there, the order of mention.

    Example: `counterprior audit findings --data dist/counterprior --images VISOR/images`
    """
    from ..eval.studies.findings import find

    found = find(data, images, revision, detections)
    if out is not None:
        found.write(out)
    if json:
        print_json({"scores": [s.to_json() for s in found.scores], "notes": list(found.notes)})
        return
    print_findings(found)


def race(
    out: Annotated[Path, Output(help="Folder; run again to continue.")],
    calls: CallOptions,
    generator: Annotated[list[str] | None, Model(help="Spec; repeatable.")] = None,
    method: Methods = None,
    suite: Annotated[str, Input(help="Config whose images are right or wrong.")] = "",
    judge: Annotated[str, Model(help="Spec.")] = "",
    scores: Annotated[
        list[str] | None, Input(help="Recorded scores instead of models: NAME=FILE; repeatable.")
    ] = None,
    metric: Annotated[str, Further(help="Column of --scores, in [0, 1].")] = "score",
    items: Annotated[
        Path | None,
        Input(help="Folder of `study items`: draw prompts that tell more apart more often."),
    ] = None,
    data: Data = "dist/counterprior",
    limit: Limit = None,
    policy: Annotated[str, Sampling(help="eliminate, or ucb as published.")] = "eliminate",
    by: Annotated[
        str, Further(help="What to race on: the judge's label, or the number that it measures.")
    ] = "label",
    rounds: Annotated[int, Further(min=1, help="Pulls of ucb.")] = 100,
    exploration: Annotated[float, Further(help="Weight of ucb's bonus, the paper's alpha.")] = 2.0,
    alpha: Annotated[float, Further(help="Probability of dropping the best.")] = 0.05,
    delta: Annotated[float, Further(help="Difference that counts as a tie.")] = 0.0,
    seed: Annotated[int, Further(help="Seed of the order of items.")] = 0,
    json: Json = False,
) -> None:
    """Find the best generator with as few images as possible.

    Example: `counterprior study race --suite t2i_correctness --generator folder:a
    --generator folder:b --judge openai:MODEL --out race`
    """
    from ..eval.studies.race import RaceSettings
    from ..eval.studies.racing import LiveSettings, race_live, race_scores

    settings = RaceSettings(
        policy=policy,  # type: ignore[arg-type]
        alpha=alpha,
        delta=delta,
        seed=seed,
        rounds=rounds,
        exploration=exploration,
    )
    live = LiveSettings(
        suite=suite,
        generators=tuple(generator or ()),
        judge=judge,
        data=data,
        limit=limit,
        methods=tuple(method or ()),
        cost=calls.cost(),
        by=by,  # type: ignore[arg-type]
    )
    with progress_bar() as progress:
        if scores:
            result = race_scores(scores, metric, settings, out, progress, items)
        else:
            result = race_live(live, settings, out, progress, items)
    print_metrics(result if json else _race_summary(result), json)


def _race_summary(result: dict[str, Any]) -> dict[str, Any]:
    """Returns a race without the course of its bandit, which its figure shows."""
    summary = {name: value for name, value in result.items() if name not in ("choices", "regret")}
    return summary | ({"regret": result["regret"][-1]} if result["regret"] else {})
