"""Commands that generate images, judge them, and score and report the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from .options import (
    AcrossJudges,
    Concurrency,
    Data,
    GeneratorSpec,
    Input,
    Json,
    Judges,
    Limit,
    MaxUsd,
    Output,
    Persona,
    Prices,
    Probes,
    Revision,
    RunFolder,
    Runs,
    Seeds,
    SomeLabels,
    SuiteName,
)
from .progress import progress_bar
from .show_results import print_images, print_results, print_verdicts


def generate(
    suite: SuiteName,
    generator: GeneratorSpec,
    out: RunFolder,
    data: Data = "dist/counterprior",
    revision: Revision = None,
    limit: Limit = None,
    seeds: Seeds = 1,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Make every image that a suite asks for, or find it in a folder; run again to continue.

    Example: `counterprior generate --suite t2i_homogenization --generator folder:images --out run`
    """
    from ..eval.engine.generate import GenerateSettings
    from ..eval.engine.generate import generate as make

    settings = GenerateSettings(
        suite=suite,
        generator=generator,
        data=data,
        out=out,
        revision=revision,
        seeds=seeds,
        limit=limit,
        concurrency=concurrency,
        max_usd=max_usd,
        prices=prices,
    )
    with progress_bar() as progress:
        print_images(make(settings, progress))


def judge(
    run: Annotated[Path, Argument(help="Folder of a run.")],
    judges: Judges,
    revision: Revision = None,
    probes: Probes = "",
    persona: Persona = "standard",
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Ask a judge about every image once; run again to ask only what has no verdict yet.

    Example: `counterprior judge run --judge openai:MODEL --probes mirror,swap --max-usd 5`
    """
    from ..eval.engine.judging import JudgeSettings, judge_run
    from ..eval.judges import CallPlan, open_judge

    plan = CallPlan(run / "ledgers", concurrency=concurrency, max_usd=max_usd, prices=prices)
    opened = [open_judge(spec, plan) for spec in judges]
    asked = tuple(probe for probe in probes.split(",") if probe)
    settings = JudgeSettings(run, probes=asked, persona=persona, revision=revision)
    with progress_bar() as progress:
        for each in opened:
            print_verdicts(judge_run(settings, each, progress))


def score(
    runs: Runs,
    labels: SomeLabels = None,
    card: Annotated[
        Path | None, Input(help="scores.json of another labeled run, to correct with.")
    ] = None,
    across_judges: AcrossJudges = False,
    groups: Annotated[bool, Output(help="Also print the scores of groups.")] = False,
    json: Json = False,
) -> None:
    """Print scores with their n, interval and what was left out; write them into each run.

    Example: `counterprior score run --labels labels.csv --json`
    """
    from ..eval.results.scoring import results_json, score_runs

    results = score_runs(runs, labels, across_judges, card)
    if json:
        print(results_json(results))
    else:
        print_results(results, groups)


def evaluate(
    suite: SuiteName,
    generator: GeneratorSpec,
    judges: Judges,
    out: RunFolder,
    data: Data = "dist/counterprior",
    revision: Revision = None,
    limit: Limit = None,
    seeds: Seeds = 1,
    probes: Probes = "",
    persona: Persona = "standard",
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """Run `generate`, `judge` and `score` in a row; run again to continue.

    Example: `counterprior eval --suite t2i_homogenization --generator render:?order_bias=1
    --judge pixels --out run --limit 50`
    """
    paid = concurrency, max_usd, prices
    generate(suite, generator, out, data, revision, limit, seeds, *paid)
    judge(out, judges, revision, probes, persona, *paid)
    score([out], json=json)


def report(
    runs: Runs,
    out: Annotated[Path, Output(help="Folder of the site.")],
    labels: SomeLabels = None,
    across_judges: AcrossJudges = False,
    title: Annotated[str, Output(help="Title of the site.")] = "counterprior",
    export: Annotated[list[str] | None, Output(help="Also write `inspect` or `hub`.")] = None,
    dataset: Annotated[str, Output(help="For `hub`: NAMESPACE/NAME@vX.Y.Z.")] = "",
) -> None:
    """Write one static site of judged runs: leaderboards, plots, judge cards and images.

    Example: `counterprior report runs/a runs/b --out site`
    """
    from ..eval.report.site import ReportSettings, write_report

    settings = ReportSettings(
        runs=tuple(runs),
        out=out,
        labels=labels,
        across_judges=across_judges,
        title=title,
        export=tuple(export or ()),
        dataset=dataset,
    )
    with progress_bar() as progress:
        print(write_report(settings, progress))
