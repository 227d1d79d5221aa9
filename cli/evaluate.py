"""Commands that list what to draw, generate images, judge them, and score and report the runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from ..errors import UsageError
from .console import print_note
from .options import (
    BenchmarkName,
    CallOptions,
    Endpoint,
    Explain,
    Further,
    GeneratorSpec,
    Input,
    Json,
    Judges,
    Methods,
    Output,
    QuestionOptions,
    Revision,
    RowOptions,
    RunFolder,
    Runs,
    ScaleOptions,
    ScoreOptions,
    SiteOptions,
    SomeJudges,
    SomeLabels,
    SuiteName,
)
from .progress import progress_bar
from .show_release import print_pull_request
from .show_results import print_done, print_results

if TYPE_CHECKING:
    from ..cards.pull_request import Benchmark
    from ..eval.results.scoring import Result, ScoreSettings


def prompts(
    suite: SuiteName,
    out: Annotated[Path, Output(help="JSONL file to write.")],
    rows: RowOptions,
) -> None:
    """List the images to make for a suite: prompt, seed, and the file name for `folder:`.

    Example: `counterprior prompts --suite t2i_correctness --out prompts.jsonl`
    """
    from ..eval.api import write_prompts

    print_note(write_prompts(out, suite, **rows.settings()))


def generate(
    suite: SuiteName,
    generator: GeneratorSpec,
    out: RunFolder,
    rows: RowOptions,
    calls: CallOptions,
    workers: ScaleOptions,
    method: Methods = None,
) -> None:
    """Make every image that a suite asks for, or find it in a folder; run again to continue.

    Example: `counterprior generate --suite t2i_homogenization --generator folder:images --out run`
    """
    from ..eval.engine.evaluation import RunSettings
    from ..eval.engine.steps import generate as make
    from ..eval.methods import apply_methods

    maker = apply_methods(generator, method or ())
    run = RunSettings(suite=suite, out=out, **rows.settings())
    with progress_bar() as progress:
        done = make(run, maker, calls.cost(), progress, scale=workers.scale())
    print_done(done)
    done.run.check_made()


def judge(
    run: Annotated[Path, Argument(help="Folder of a run.")],
    judges: Judges,
    questions: QuestionOptions,
    calls: CallOptions,
    workers: ScaleOptions,
    revision: Revision = None,
) -> None:
    """Ask a judge about every image once; run again to ask only what has no verdict yet.

    Example: `counterprior judge run --judge openai:MODEL --probes mirror,swap --max-usd 5`
    """
    from ..eval.engine.steps import judge_run

    settings, scale = questions.settings(revision), workers.scale()
    with progress_bar() as progress:
        done = judge_run(run, judges, settings, calls.cost(), progress, scale=scale)
        print_done(done)
    done.check_answered()


def score(
    runs: Runs,
    judges: ScoreOptions,
    labels: SomeLabels = None,
    card: Annotated[
        Path | None, Input(help="scores.json of another labeled run, to correct with.")
    ] = None,
    gold: Annotated[
        Path | None,
        Input(
            help="Folder of judge-check: leave out what misled the judge, or correct its errors."
        ),
    ] = None,
    latent: Annotated[
        bool,
        Output("--latent", help="Also estimate scores from all judges and people together."),
    ] = False,
    groups: Annotated[bool, Output(help="Also print the scores of groups.")] = False,
    explain: Explain = False,
    json: Json = False,
) -> None:
    """Print the headline score and its checks, with n, intervals and what was excluded.

    All scores are written into each run.

    Example: `counterprior score run --labels labels.csv --json`
    """
    settings = judges.settings(labels=labels, card=card, gold=gold, latent=latent)
    for result in _print_scores(runs, settings, json, groups=groups, explain=explain):
        result.check_answered()


def _print_scores(
    runs: Sequence[Path],
    settings: ScoreSettings,
    json: bool,
    *,
    groups: bool = False,
    explain: bool = False,
) -> Sequence[Result]:
    from ..eval.results.parallel import score_results
    from ..eval.results.scoring import results_json, write_results

    with progress_bar() as progress:
        results = score_results(runs, settings, progress)
    write_results(results)
    if json:
        print(results_json(results))
    else:
        print_results(results, groups, explain)
    return results


def evaluate(
    generator: GeneratorSpec,
    out: RunFolder,
    rows: RowOptions,
    questions: QuestionOptions,
    calls: CallOptions,
    workers: ScaleOptions,
    judges: SomeJudges = None,
    suite: Annotated[str, Input(help="Config, e.g. t2i_homogenization.")] = "",
    prompts: Annotated[
        Path | None,
        Input(
            exists=True, dir_okay=False, help="Your own prompts instead: text, or relations.jsonl."
        ),
    ] = None,
    implied: Annotated[
        bool,
        Further("--implied", help="With --prompts: also count relations that follow from others."),
    ] = False,
    benchmark: BenchmarkName = "",
    method: Methods = None,
    gold: Annotated[
        Path | None,
        Further(help="Folder of `judge-check`; by default judges are checked first, in OUT/gold."),
    ] = None,
    unchecked: Annotated[
        bool, Input("--unchecked", help="Skip the judge's check on gold images.")
    ] = False,
    explain: Explain = False,
    json: Json = False,
) -> None:
    """Run `generate`, `judge` and `score` one after the other; run again to continue.

    Example: `counterprior eval --suite t2i_homogenization --generator render:?order_bias=1
    --judge pixels --out run --limit 50`
    """
    from ..eval.engine.evaluation import RunSettings
    from ..eval.engine.steps import evaluate_run
    from ..eval.methods import apply_methods
    from ..eval.studies.judge_check import FOLDER, CheckFirst

    suite, rows = _suite_and_rows(suite, rows, prompts, implied, benchmark)
    judges = judges or _own_rule(benchmark)
    maker = apply_methods(generator, method or ())
    run = RunSettings(suite=suite, out=out, **rows.settings())
    settings, scale = questions.settings(rows.revision), workers.scale()
    with progress_bar() as progress:
        check = CheckFirst(gold or out / FOLDER, judges, settings, progress=progress, scale=scale)
        done = evaluate_run(
            run,
            maker,
            judges,
            settings,
            cost=calls.cost(),
            progress=progress,
            scale=scale,
            before=None if unchecked else check,
        )
        print_done(done)
    _score_unless_shard(out, workers.shard, json, explain)
    done.check_answered()


def _score_unless_shard(out: Path, shard: str, json: bool, explain: bool) -> None:
    """Prints the scores of a run. A shard can't know whether it is the last to end, so it names
    the command that scores all of them."""
    if not shard:
        from ..eval.results.scoring import ScoreSettings

        _print_scores([out], ScoreSettings(), json, explain=explain)
    else:
        print_note(f"shard {shard} of {out} is done: run `counterprior score {out}` after the last")


def _suite_and_rows(
    suite: str, rows: RowOptions, prompts: Path | None, implied: bool, benchmark: str
) -> tuple[str, RowOptions]:
    """Returns the suite and rows of a config, or of the user's own prompts. Raises UsageError
    unless exactly one of the two is named."""
    if bool(suite) == bool(prompts):
        raise UsageError(
            "nothing to generate", "pass either --suite or --prompts", code="missing-option"
        )
    if prompts is None:
        if benchmark:
            raise UsageError(
                f"--benchmark {benchmark} needs the file of its prompts",
                "pass it with --prompts",
                code="missing-option",
            )
        return suite, rows
    from ..eval.suites.relations import own_prompts

    suite, data, note = own_prompts(prompts, implied, benchmark)
    print_note(note)
    return suite, replace(rows, data=data)


def _own_rule(benchmark: str) -> list[str]:
    """The judge by a benchmark's own rule. Raises UsageError if no benchmark is named, or it has
    none."""
    from ..eval.questions.benchmark_files import BENCHMARKS

    rule = BENCHMARKS[benchmark].judge if benchmark else ""
    if not rule:
        raise UsageError("no judge is named", "pass --judge SPEC", code="missing-option")
    return [rule]


def report(
    runs: Annotated[
        list[Path],
        Argument(help="A study, folders of judged runs, or publications (hub:NAMESPACE/NAME@TAG)."),
    ],
    out: Annotated[Path, Output(help="Folder of the site.")],
    judges: ScoreOptions,
    site: SiteOptions,
    labels: SomeLabels = None,
    title: Annotated[str, Output(help="Title of the site.")] = "",
    create_pr: Annotated[
        bool,
        Output(
            "--create-pr", help="Open a pull request with these entries in the model's repository."
        ),
    ] = False,
    model_id: Annotated[str, Output(help="Model on the Hub, if the run names none.")] = "",
    endpoint: Endpoint = None,
) -> None:
    """Write one static site of a study or of judged runs: leaderboards, plots, judges and images.

    Example: `counterprior report runs/a runs/b --out site`
    """
    from ..cards.publications import runs_of
    from ..eval.report.site import write_report
    from ..eval.studies.status import runs_of_study

    forms = [*(site.export or ()), *(["hub"] if create_pr else [])]
    benchmark = _benchmark(forms, site.dataset, endpoint) if create_pr else None
    with progress_bar() as progress, runs_of(runs) as at_hand:
        study, judged = runs_of_study(at_hand, judges.partial)
        page = write_report(
            judged,
            out,
            score=judges.settings(labels=labels),
            title=title or (study.root.name if study else "counterprior"),
            exports=list(dict.fromkeys(forms)),
            dataset=site.dataset if benchmark is None else benchmark.dataset,
            progress=progress,
            bases=study.base_runs() if study else None,
            margins=study.file.margins if study else None,
            judge_names=study.judge_names() if study else None,
            full_size=site.full_size,
        )
    print(page)
    if benchmark is not None:
        _open_pull_requests(out, benchmark, model_id, endpoint)


def _benchmark(forms: Sequence[str], dataset: str, endpoint: str | None) -> Benchmark:
    """The dataset that results are of. Raises UsageError if none is named."""
    from ..cards.pull_request import Benchmark
    from ..cards.remote import Repository
    from ..eval.report.exports import check_forms

    named = check_forms(forms, dataset)
    assert named is not None, "see check_forms"
    return Benchmark.find(Repository(named.id, endpoint), named.revision)


def _open_pull_requests(
    site: Path, benchmark: Benchmark, model_id: str, endpoint: str | None
) -> None:
    """Proposes the results in a site to the pages of their models."""
    from ..cards.pull_request import open_pull_request
    from ..cards.remote import Repository
    from ..eval.report.exports import results_by_model

    for model, files in results_by_model(site, model_id).items():
        repository = Repository(model, endpoint, kind="model")
        print_pull_request(open_pull_request(repository, files, benchmark), len(files))
