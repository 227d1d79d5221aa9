"""The command line: each command parses its arguments and calls one function of a room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from .console import (
    WRONG,
    failing,
    print_agreement,
    print_authored,
    print_checks,
    print_configs,
    print_diff,
    print_flips,
    print_images,
    print_metrics,
    print_mined,
    print_note,
    print_plan,
    print_released,
    print_results,
    print_verdicts,
    progress_bar,
)

app = typer.Typer(
    help="Does an image generator follow the prompt, or its prior? Build, check and release the "
    "benchmarks that answer it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"counterprior {__version__}")
        raise typer.Exit


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a machine to read.")]


@app.command()
def build(
    config: Annotated[list[str] | None, typer.Option(help="Only this config; repeatable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the release.")] = Path("dist/counterprior"),
    bank: Annotated[Path | None, typer.Option(help="Bank folder, if not the shipped one.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sampled suites.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that draw.")] = os.cpu_count() or 1,
    seed_images: Annotated[str, typer.Option(help="Generator spec, or `none`.")] = "render:",
    holdout: Annotated[float | None, typer.Option(help="Share to keep out, e.g. 0.1.")] = None,
    salt_file: Annotated[Path | None, typer.Option(help="Secret that picks the share.")] = None,
    holdout_out: Annotated[
        Path | None, typer.Option(help="Its folder, if not OUT-holdout.")
    ] = None,
) -> None:
    """Make the release from the banks: no key, no network, no GPU, no model call.

    Example: `counterprior build --config spatial_uc --config t2i_correctness --out dist/small`
    """
    with failing():
        from ..builders.bank import DEFAULT_BANK
        from ..builders.build import BuildSettings
        from ..builders.build import build as build_items
        from ..builders.holdout import REBUILDABLE, read_secret, split
        from ..cards.write import write_releases

        secret, outs = read_secret(holdout, salt_file, out, holdout_out)
        settings = BuildSettings(tuple(config or ()), bank or DEFAULT_BANK, seed, seed_images, jobs)
        with progress_bar() as progress:
            written = write_releases(lambda: split(build_items(settings, progress), secret), outs)
        for folder, facts in written.items():
            print_configs(facts, folder)
        if secret and bank is None:
            print_note(REBUILDABLE)


@app.command()
def validate(
    path: Annotated[Path, typer.Argument(help="Folder of a release.")],
    bank: Annotated[Path | None, typer.Option(help="Its bank, if not the shipped one.")] = None,
    json: Json = False,
) -> None:
    """Check schema, counts, digests, content, card and Croissant; exit 1 names file, row, field.

    Example: `counterprior validate dist/counterprior`
    """
    with failing():
        from ..builders.bank import DEFAULT_BANK
        from ..builders.build import bank_digest, row_checks
        from ..cards.validate import validate as validate_release

        origin = bank or DEFAULT_BANK
        report = validate_release(path, row_checks(origin), bank_digest(origin))
        typer.echo(report.to_json() if json else report.text())
        if report.problems:
            raise typer.Exit(WRONG)


@app.command("verify-holdout")
def verify_holdout(
    public: Annotated[Path, typer.Argument(help="Folder of the public release.")],
    private: Annotated[Path, typer.Argument(help="Folder of the rows held out of it.")],
    salt_file: Annotated[Path, typer.Option(help="The salt that both were built with.")],
    bank: Annotated[Path | None, typer.Option(help="Their bank, if not the shipped one.")] = None,
    json: Json = False,
) -> None:
    """Prove a hold-out: disjoint, together the full build, split as its commitments say.

    Example: `counterprior verify-holdout dist/counterprior dist/counterprior-holdout
    --salt-file holdout.salt`
    """
    with failing():
        from ..builders.bank import DEFAULT_BANK
        from ..builders.build import row_checks
        from ..builders.holdout import divider, read_salt
        from ..cards.holdout import verify_holdout as verify_parts

        rules = row_checks(bank or DEFAULT_BANK)
        report = verify_parts(public, private, divider(read_salt(salt_file)), rules)
        typer.echo(report.to_json() if json else report.text())
        if report.problems:
            raise typer.Exit(WRONG)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="Folder of the published release.")],
    new: Annotated[Path, typer.Argument(help="Folder of the next one.")],
    json: Json = False,
) -> None:
    """Rows added, removed and edited in each config, and the version bump that they demand.

    Example: `counterprior diff dist/published dist/counterprior --json`
    """
    with failing():
        from ..cards.diff import diff as compare

        found = compare(old, new)
        if json:
            typer.echo(found.to_json())
        else:
            print_diff(found)


author = typer.Typer(
    help="Write benchmark content with models; every call is recorded, and a rebuild is free.\n\n"
    "Example: `counterprior author constrained --backend openai:MODEL --ledger calls.jsonl "
    "--bank mybank --max-usd 5`, then `counterprior build --bank mybank`",
)
app.add_typer(author, name="author")

Backend = Annotated[str, typer.Option(help="openai:MODEL[@URL], anthropic:MODEL, scripted:FILE.")]
LedgerFile = Annotated[Path, typer.Option(help="Records every call; resumes and replays from it.")]
Replay = Annotated[bool, typer.Option("--replay", help="Only recorded calls: offline, free.")]
MaxUsd = Annotated[float | None, typer.Option(min=0, help="Cap in US dollars; no call passes it.")]
Prices = Annotated[Path | None, typer.Option(help="YAML of your own prices, in USD.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Calls under way at a time.")]
Batch = Annotated[bool, typer.Option("--batch", help="By the provider's batch API: slow, cheap.")]
OutBank = Annotated[Path, typer.Option(help="Folder of the bank that is written.")]
Base = Annotated[Path | None, typer.Option(help="Bank to extend; else the shipped one without it.")]


@author.callback(invoke_without_command=True)
def author_prompts(
    context: typer.Context,
    show_prompts: Annotated[bool, typer.Option(help="Print every role's prompt file.")] = False,
) -> None:
    if show_prompts:
        from ..agents.roles import describe_prompts

        typer.echo(describe_prompts())
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@author.command("constrained")
def author_constrained(
    ledger: LedgerFile,
    bank: OutBank,
    backend: Backend = "",
    replay: Replay = False,
    base: Base = None,
    rounds: Annotated[int, typer.Option(min=1, help="At most.")] = 20,
    target: Annotated[int, typer.Option(min=1, help="Pairs in the bank.")] = 400,
    domain: Annotated[list[str] | None, typer.Option(help="A domain to open; repeatable.")] = None,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Pairs whose layout a standard fixes: Scout, Critic and Curator take turns (OTS-Bench).

    Example: `counterprior author constrained --backend openai:MODEL --ledger calls.jsonl
    --bank mybank --max-usd 5`
    """
    with failing(), progress_bar() as progress:
        from ..agents.constrained.rounds import LoopSettings
        from ..agents.session import session_settings
        from ..builders.authoring.constrained import author_constrained as write

        session = session_settings(ledger, backend, "", replay, max_usd, prices, concurrency=1)
        loop = LoopSettings(rounds, target, domains=tuple(domain or ()))
        report = write(session, loop, base, bank, progress)
    print_authored(report)


Reviewer = Annotated[str, typer.Option(help="A second model that reviews; else the writer.")]
Laws = Annotated[Path | None, typer.Option(help="YAML of your own laws; else the bank's.")]


@author.command("counterfactual")
def author_counterfactual(
    ledger: LedgerFile,
    bank: OutBank,
    backend: Backend = "",
    reviewer: Reviewer = "",
    replay: Replay = False,
    base: Base = None,
    laws: Laws = None,
    per_law: Annotated[int, typer.Option(min=1, max=8, help="Scenes a law.")] = 4,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Scenes in which one law is altered: written, reviewed, asked about, described (CF-World).

    Example: `counterprior author counterfactual --backend openai:MODEL --reviewer anthropic:MODEL
    --ledger calls.jsonl --bank mybank --laws laws.yaml --max-usd 5`
    """
    with failing(), progress_bar() as progress:
        from ..agents.session import session_settings
        from ..builders.authoring.laws import author_counterfactual as write

        session = session_settings(
            ledger, backend, reviewer, replay, max_usd, prices, concurrency, batch
        )
        report = write(session, laws, per_law, base, bank, progress)
    print_authored(report)


@author.command("rules")
def author_rules(
    ledger: LedgerFile,
    bank: OutBank,
    backend: Backend = "",
    reviewer: Reviewer = "",
    replay: Replay = False,
    base: Base = None,
    laws: Laws = None,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Symbolic rules, each as it holds here and in five other worlds (CF-World 5.1).

    Example: `counterprior author rules --backend openai:MODEL --reviewer anthropic:MODEL
    --ledger calls.jsonl --bank mybank --laws laws.yaml --max-usd 5`
    """
    with failing(), progress_bar() as progress:
        from ..agents.session import session_settings
        from ..builders.authoring.laws import author_rules as write

        session = session_settings(
            ledger, backend, reviewer, replay, max_usd, prices, concurrency, batch
        )
        report = write(session, laws, base, bank, progress)
    print_authored(report)


@author.command("consistency")
def author_consistency(
    ledger: LedgerFile,
    bank: OutBank,
    images: Annotated[str, typer.Option(help="Folder of pictures, or DATASET[:SPLIT].")],
    licence: Annotated[str, typer.Option("--license", help="Of the pictures: SPDX id.")] = "",
    backend: Backend = "",
    reviewer: Reviewer = "",
    replay: Replay = False,
    base: Base = None,
    drawer: Annotated[str, typer.Option(help="Generator that draws the captions.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Pictures at most.")] = None,
    smallest_side: Annotated[int, typer.Option(min=1, help="Pixels.")] = 512,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Captions, edits and questions for your pictures, by a game of two models (ACON).

    Example: `counterprior author consistency --images photos --license CC-BY-4.0 --bank mybank
    --ledger calls.jsonl --backend openai:MODEL --reviewer anthropic:MODEL --drawer diffusers:PATH`
    """
    with failing(), progress_bar() as progress:
        from ..agents.session import session_settings
        from ..builders.authoring.consistency import GameSettings
        from ..builders.authoring.consistency import author_consistency as write

        session = session_settings(ledger, backend, reviewer, replay, max_usd, prices, concurrency)
        game = GameSettings(images, drawer, licence, limit, smallest_side)
        report = write(session, game, base, bank, progress)
    print_authored(report)


@author.command("verify")
def author_verify(
    ledger: LedgerFile,
    bank: OutBank,
    base: Annotated[Path, typer.Option(help="The bank to check.")],
    backend: Backend = "",
    replay: Replay = False,
    every: Annotated[bool, typer.Option("--every", help="Pairs read before too.")] = False,
    concurrency: Concurrency = 8,
    batch: Batch = False,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Check pairs with a second model by mirrored statements; disagreement waits for a person.

    Example: `counterprior author verify --backend anthropic:MODEL --ledger checks.jsonl
    --base mybank --bank checked --max-usd 5`
    """
    with failing(), progress_bar() as progress:
        from ..agents.session import session_settings
        from ..builders.authoring.verification import verify_pairs

        session = session_settings(ledger, backend, "", replay, max_usd, prices, concurrency, batch)
        report = verify_pairs(session, base, bank, every, progress)
    print_authored(report)


@author.command("relations")
def author_relations(
    prompts: Annotated[Path, typer.Argument(help="A text file, one prompt a line.")],
    ledger: LedgerFile,
    out: Annotated[Path, typer.Option(help="JSONL file to write.")],
    backend: Backend = "",
    replay: Replay = False,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Read spatial relations out of free prompts, by a model and by rules (PSE, appendix).

    Example: `counterprior author relations prompts.txt --backend openai:MODEL
    --ledger calls.jsonl --out relations.jsonl`
    """
    with failing(), progress_bar() as progress:
        from ..agents.relation_files import extract_file
        from ..agents.session import session_settings

        session = session_settings(ledger, backend, "", replay, max_usd, prices, concurrency)
        typer.echo(extract_file(session, prompts, out, progress))


@author.command("publish")
def author_publish(
    ledger: LedgerFile,
    out: Annotated[Path, typer.Option(help="File to write.")],
) -> None:
    """Write a ledger in the form to publish: sorted, the same for every order of the calls.

    Example: `counterprior author publish --ledger calls.jsonl --out published.jsonl`
    """
    with failing():
        from ..agents.ledger import Ledger

        with Ledger(ledger, read_only=True) as opened:
            opened.publish(out)


@app.command()
def push(
    path: Annotated[Path, typer.Argument(help="Folder of a release, as `build` made it.")],
    repo_id: Annotated[str, typer.Option(help="Dataset repository, NAMESPACE/NAME.")],
    version: Annotated[str, typer.Option(help="Version to release, X.Y.Z.")],
    date: Annotated[str, typer.Option(help="Day of the release, YYYY-MM-DD; else today.")] = "",
    create: Annotated[bool, typer.Option("--create", help="Make the repository.")] = False,
    private: Annotated[bool, typer.Option("--private", help="It must be private.")] = False,
    allow_drop: Annotated[bool, typer.Option("--allow-drop", help="MAJOR: drop files.")] = False,
    allow_license_change: Annotated[bool, typer.Option("--allow-license-change")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan.")] = False,
    bank: Annotated[Path | None, typer.Option(help="Its bank, if not the shipped one.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="URL of another Hub.")] = None,
    json: Json = False,
) -> None:
    """Release a version on the Hub: one commit, verified from a cold cache, then tagged.

    Example: `counterprior push dist/counterprior --repo-id NAMESPACE/NAME --version 1.0.0
    --dry-run`
    """
    with failing(), progress_bar() as progress:
        from ..builders.bank import DEFAULT_BANK
        from ..builders.build import bank_digest, row_checks
        from ..cards.plan import PushSettings, planned
        from ..cards.push import execute
        from ..cards.validate import validate as check

        origin = bank or DEFAULT_BANK
        rules, digest = row_checks(origin), bank_digest(origin)
        settings = PushSettings(repo_id, version, date, create, private, allow_drop,
                                allow_license_change, endpoint)  # fmt: skip
        with planned(path, settings, lambda p: check(p, rules, digest), progress) as plan:
            print_plan(plan, json)
            if not dry_run:
                print_released(plan, execute(plan, progress))


@app.command()
def verify(
    path_or_repo: Annotated[str, typer.Argument(help="A release folder, or NAMESPACE/NAME.")],
    revision: Annotated[str | None, typer.Option(help="Tag or commit on the Hub.")] = None,
    load: Annotated[bool, typer.Option("--load", help="Also load every config.")] = False,
    json: Json = False,
) -> None:
    """Compare every file, row, card and Croissant entry with the release's own checksums.

    Exit 1 names what differs. Example: `counterprior verify counterprior/counterprior --revision
    v1.0.0`
    """
    with failing():
        from ..cards.verify import VerifySettings, verify_release

        report = verify_release(VerifySettings(path_or_repo, revision, load))
        typer.echo(report.to_json() if json else report.text())
        if report.problems:
            raise typer.Exit(WRONG)


Rules = Annotated[Path | None, typer.Option(help="checker.yaml; else the published rules.")]


@app.command()
def detect(
    manifest: Annotated[Path, typer.Argument(help="JSONL of pictures, relation and objects.")],
    detector: Annotated[str, typer.Option(help="Spec: owl:MODEL?revision=COMMIT, pixels, ...")],
    out: Annotated[Path, typer.Option(help="JSONL for `check`; a stopped command goes on.")],
    rules: Rules = None,
    secondary: Annotated[str, typer.Option(help="Spec of the detector to agree with.")] = "",
    cache: Annotated[Path | None, typer.Option(help="Folder of kept detections.")] = None,
    json: Json = False,
) -> None:
    """Detect what a manifest's pictures show, also under the checker's perturbations.

    Example: `counterprior detect run/manifest.jsonl --detector pixels --out d.jsonl`
    """
    with failing(), progress_bar() as progress:
        from ..eval.judges.checker.detecting import DetectSettings, detect_manifest

        settings = DetectSettings(manifest, rules, detector, out, secondary, cache)
        print_metrics(detect_manifest(settings, progress), json)


@app.command()
def check(
    detections: Annotated[Path, typer.Argument(help="JSONL of samples with their detections.")],
    out: Annotated[Path, typer.Option(help="JSONL of verdicts; metrics.json goes beside it.")],
    rules: Rules = None,
    labels: Annotated[Path | None, typer.Option(help="Human labels of some samples.")] = None,
    size: Annotated[str, typer.Option(help="Pixels of pictures whose row says none.")] = "512x512",
    json: Json = False,
) -> None:
    """The abstaining geometric checker: PASS, FAIL or UNDECIDABLE with reason and confidence.

    Example: `counterprior check d.jsonl --out verdicts.jsonl`
    """
    with failing():
        from ..eval.judges.checker.run import CheckSettings, run_check
        from ..eval.rules.checker.boxes import Size

        settings = CheckSettings(detections, rules, out, labels, Size.parse(size))
        print_metrics(run_check(settings), json)


@app.command()
def agree(
    scores: Annotated[Path, typer.Argument(help="Rows of sample_id and one number a metric.")],
    labels: Annotated[Path, typer.Option(help="Rows of sample_id and label.")],
    metric: Annotated[list[str] | None, typer.Option(help="Only this; repeatable.")] = None,
    threshold: Annotated[float, typer.Option(help="From this score on a metric says yes.")] = 0.5,
    json: Json = False,
) -> None:
    """Metrics against people: correlations, precision, recall and more, with intervals.

    Example: `counterprior agree scores.jsonl --labels labels.jsonl --metric pse`
    """
    with failing():
        from ..eval.results.agree import run_agree

        print_agreement(run_agree(scores, labels, metric or (), threshold), json)


Data = Annotated[str, typer.Option(help="Release folder, or NAMESPACE/NAME on the Hub.")]
Revision = Annotated[str | None, typer.Option(help="Tag or commit, where the data are a repo.")]
SuiteName = Annotated[str, typer.Option(help="Config, e.g. t2i_homogenization.")]
GeneratorSpec = Annotated[str, typer.Option(help="Spec: folder:DIR, render:?order_bias=1, ...")]
JudgeSpecs = Annotated[
    list[str], typer.Option("--judge", help="Spec: pixels, human:FILE, openai:MODEL; repeatable.")
]
RunFolder = Annotated[Path, typer.Option(help="Folder of the run.")]
Seeds = Annotated[int, typer.Option(min=1, max=4, help="Pictures of each prompt.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Rows to sample.")]
Probes = Annotated[str, typer.Option(help="Controls of the judge: mirror,swap.")]
Persona = Annotated[str, typer.Option(help="standard or strict, for free questions.")]


@app.command()
def generate(
    suite: SuiteName,
    generator: GeneratorSpec,
    out: RunFolder,
    data: Data = "dist/counterprior",
    revision: Revision = None,
    seeds: Seeds = 1,
    limit: Limit = None,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Make every picture that a suite wants, or find it in a folder; what is there stays.

    Example: `counterprior generate --suite t2i_homogenization --generator folder:pics --out run`
    """
    with failing(), progress_bar() as progress:
        from ..eval.engine.generate import GenerateSettings
        from ..eval.engine.generate import generate as make

        parts = revision, seeds, limit, concurrency, max_usd, prices
        settings = GenerateSettings(suite, generator, data, out, *parts)
        print_images(make(settings, progress))


@app.command("judge")
def judge_pictures(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    judge: JudgeSpecs,
    probes: Probes = "",
    persona: Persona = "standard",
    revision: Revision = None,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
) -> None:
    """Ask a judge about every picture, once; a resumed run asks only what has no verdict.

    Example: `counterprior judge run --judge openai:MODEL --probes mirror,swap --max-usd 5`
    """
    with failing(), progress_bar() as progress:
        from ..eval.engine.judging import JudgeSettings, judge_run
        from ..eval.judges import CallPlan, open_judge

        plan = CallPlan(run / "ledgers", concurrency, max_usd, prices)
        judges = [open_judge(spec, plan) for spec in judge]
        settings = JudgeSettings(run, tuple(p for p in probes.split(",") if p), persona, revision)
        for opened in judges:
            print_verdicts(judge_run(settings, opened, progress))


@app.command()
def score(
    runs: Annotated[list[Path], typer.Argument(help="Folders of judged runs.")],
    labels: Annotated[Path | None, typer.Option(help="People's labels of some cases.")] = None,
    card: Annotated[Path | None, typer.Option(help="scores.json of another, labelled run.")] = None,
    across_judges: Annotated[bool, typer.Option(help="Compare though judges differ.")] = False,
    groups: Annotated[bool, typer.Option(help="Also print the scores of groups.")] = False,
    json: Json = False,
) -> None:
    """Scores with their n, interval and what was left out; also written into each run.

    Example: `counterprior score run --labels labels.csv --json`
    """
    with failing():
        from ..eval.results.scoring import results_json, score_runs

        results = score_runs(runs, labels, across_judges, card)
        if json:
            typer.echo(results_json(results))
        else:
            print_results(results, groups)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of judged runs.")],
    out: Annotated[Path, typer.Option(help="Folder of the site.")],
    labels: Annotated[Path | None, typer.Option(help="People's labels of some cases.")] = None,
    across_judges: Annotated[bool, typer.Option(help="Compare though judges differ.")] = False,
    title: Annotated[str, typer.Option(help="Of the site.")] = "counterprior",
    export: Annotated[list[str] | None, typer.Option(help="Also `inspect` or `hub`.")] = None,
    dataset: Annotated[str, typer.Option(help="For `hub`: NAMESPACE/NAME@vX.Y.Z.")] = "",
) -> None:
    """One static site of judged runs: leaderboards, plots, judge cards and pictures; no network.

    Example: `counterprior report runs/a runs/b --out site`
    """
    with failing(), progress_bar() as progress:
        from ..eval.report.site import ReportSettings, write_report

        forms = tuple(export or ())
        settings = ReportSettings(tuple(runs), out, labels, across_judges, title, forms, dataset)
        typer.echo(write_report(settings, progress))


@app.command("plan")
def plan_items(
    runs: Annotated[list[Path] | None, typer.Argument(help="Two judged runs of a suite.")] = None,
    rate: Annotated[list[float] | None, typer.Option(help="Assumed instead; give two.")] = None,
    discordance: Annotated[float | None, typer.Option(help="Items with just one right.")] = None,
    difference: Annotated[float | None, typer.Option(help="To find, in (0, 1].")] = None,
    alpha: Annotated[float, typer.Option(help="Significance level.")] = 0.05,
    power: Annotated[float, typer.Option(help="Chance to find it.")] = 0.8,
    json: Json = False,
) -> None:
    """How many items tell two generators apart, from a pilot of both or from assumed rates.

    Example: `counterprior plan --rate 0.70 --rate 0.75 --discordance 0.2`
    """
    with failing():
        from ..eval.studies.planning import PlanSettings, plan

        settings = PlanSettings(difference, alpha, power)
        print_metrics(plan(runs or (), rate or (), discordance, settings), json)


@app.command("eval")
def evaluate(
    suite: SuiteName,
    generator: GeneratorSpec,
    judge: JudgeSpecs,
    out: RunFolder,
    data: Data = "dist/counterprior",
    seeds: Seeds = 1,
    limit: Limit = None,
    probes: Probes = "",
    persona: Persona = "standard",
    revision: Revision = None,
    concurrency: Concurrency = 8,
    max_usd: MaxUsd = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """`generate`, `judge` and `score` in a row; the same command goes on where it was stopped.

    Example: `counterprior eval --suite t2i_homogenization --generator render:?order_bias=1
    --judge pixels --out run --limit 50`
    """
    paid = concurrency, max_usd, prices
    generate(suite, generator, out, data, revision, seeds, limit, *paid)
    judge_pictures(out, judge, probes, persona, revision, *paid)
    score([out], json=json)


@app.command()
def selftest() -> None:
    """The whole scoring chain on pictures whose truth is known: offline, below a minute.

    Example: `counterprior selftest`
    """
    with failing():
        from ..eval.studies.selftest import selftest as run_selftest

        with progress_bar() as progress:
            checks = run_selftest(progress)
        print_checks(checks)
        if not all(check.holds for check in checks):
            raise typer.Exit(WRONG)


@app.command()
def mine(
    source: Annotated[list[str], typer.Argument(help="Files, folders, globs, hf://datasets/….")],
    out: Annotated[Path, typer.Option(help="Folder of the run; one a source.")],
    engine: Annotated[str, typer.Option(help="local, pool or ray; same rows.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    preset: Annotated[str, typer.Option(help="laion, datacomp or cc3m.")] = "",
    caption_column: Annotated[str, typer.Option(help="Column of captions.")] = "",
    url_column: Annotated[str, typer.Option(help="Column of image addresses.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows.")] = None,
    sample: Annotated[float, typer.Option(help="Share of rows, in (0, 1].")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    reference: Annotated[bool, typer.Option("--reference", help="Plain spaCy, no filter.")] = False,
    stage: Annotated[str, typer.Option(help="pairs, images or layout.")] = "pairs",
    judge: Annotated[str, typer.Option(help="Judge spec, for the stage layout.")] = "",
    max_usd: MaxUsd = None,
    threads: Annotated[int, typer.Option(min=1, help="Downloads at a time.")] = 32,
    contact: Annotated[str, typer.Option(help="Page or mail address for site owners.")] = "",
    loopback: Annotated[bool, typer.Option("--loopback-for-tests", hidden=True)] = False,
) -> None:
    """Mine captions for pairs, fetch their pictures, tell what stands left; run again to go on.

    Example: `counterprior mine laion.parquet --out mined/laion --stage layout --judge openai:MODEL`
    """
    with failing(), progress_bar() as progress:
        from ..corpus_analysis.captions.miner import MinerSettings
        from ..corpus_analysis.images.fetch import FetchSettings
        from ..corpus_analysis.mine import MineSettings
        from ..corpus_analysis.run import RunSettings, run
        from ..corpus_analysis.shards import ShardSettings
        from ..corpus_analysis.sources import SourceSettings

        rows = SourceSettings(
            tuple(source), preset, caption_column, url_column, limit, sample, seed
        )
        shard = ShardSettings(rows, miner=MinerSettings(not reference, not reference))
        fetch = FetchSettings(contact=contact, loopback=loopback)
        mined = MineSettings(shard, out, engine, workers)
        finished = run(RunSettings(mined, stage, judge, fetch, threads, max_usd=max_usd), progress)
    print_mined(finished, out)


audit = typer.Typer(
    no_args_is_help=True,
    help="""Human audit of verdicts: draw, label, analyse.

Example: `counterprior audit sample gligen=verdicts.jsonl --n 200 --out sample.jsonl`
""",
)
app.add_typer(audit, name="audit")


@audit.command("sample")
def audit_sample(
    verdicts: Annotated[list[str], typer.Argument(help="METHOD=FILE of verdicts; repeatable.")],
    n: Annotated[int, typer.Option(min=1, help="Pictures to draw.")],
    out: Annotated[Path, typer.Option(help="JSONL of the pictures, in the order to be seen.")],
    manifest: Annotated[list[Path] | None, typer.Option(help="Image and prompt a sample.")] = None,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 42,
) -> None:
    """Draw pictures to label, stratified by method, relation, verdict and confidence.

    Example: `counterprior audit sample gligen=verdicts.jsonl --n 200 --out sample.jsonl`
    """
    with failing():
        from ..eval.people.run import write_sample
        from ..eval.people.sample import SampleSettings

        settings = SampleSettings(tuple(verdicts), n, seed, tuple(manifest or ()))
        typer.echo(f"{write_sample(settings, out)} pictures in {out}")


@audit.command("analyze")
def audit_analyze(
    verdicts: Annotated[list[str], typer.Argument(help="METHOD=FILE of verdicts; repeatable.")],
    labels: Annotated[Path, typer.Option(help="Human labels.")],
    sample: Annotated[
        Path | None, typer.Option(help="What was drawn, to speak of the run.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="JSON with the curves.")] = None,
    json: Json = False,
) -> None:
    """Checker against people: confusion, kappa, risk and coverage, agreement of annotators.

    Example: `counterprior audit analyze gligen=verdicts.jsonl --labels labels.jsonl`
    """
    with failing():
        from ..eval.people.run import analyse_files

        print_metrics(analyse_files(verdicts, labels, out, sample), json)


@audit.command("calibrate")
def audit_calibrate(
    detections: Annotated[list[Path], typer.Argument(help="Samples with their detections.")],
    labels: Annotated[Path, typer.Option(help="Human labels.")],
    rules: Annotated[Path, typer.Option(help="checker.yaml to start from.")],
    out: Annotated[Path | None, typer.Option(help="JSON with the whole grid.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 5,
    size: Annotated[str, typer.Option(help="Pixels of pictures whose row says none.")] = "512x512",
    json: Json = False,
) -> None:
    """The checker's settings that suit the labels best, with what they are worth on other labels.

    Example: `counterprior audit calibrate per_sample.jsonl --labels l.csv --rules checker.yaml`
    """
    with failing():
        from ..eval.people.run import calibrate_files
        from ..eval.rules.checker.boxes import Size

        parts = Size.parse(size), folds, out
        print_metrics(calibrate_files(detections, labels, rules, *parts), json)


@audit.command("gate")
def audit_gate(
    run: Annotated[Path, typer.Argument(help="Folder of a judged run of counterfactual.")],
    labels: Annotated[Path, typer.Option(help="People's yes or no for some L1 pictures.")],
    question: Annotated[str, typer.Option(help="Name that the labels stand under.")] = "accept",
    folds: Annotated[int, typer.Option(min=2, help="Parts of the cross-validation.")] = 5,
    json: Json = False,
) -> None:
    """From which L1 score a group of worlds should count, by what people accept (CF-World: 0.5).

    Example: `counterprior audit gate runs/cf --labels accepted.csv`
    """
    with failing():
        from ..eval.people.gate import GateSettings, calibrate_run

        print_metrics(calibrate_run(GateSettings(run, labels, question, folds)), json)


@audit.command("serve")
def audit_serve(
    rows: Annotated[Path, typer.Argument(help="Pictures of `audit sample`, groups, or entries.")],
    out: Annotated[Path, typer.Option(help="Folder of the labels, one file an annotator.")],
    kind: Annotated[str, typer.Option(help="verdict, judge, worlds or bank.")] = "verdict",
    port: Annotated[int, typer.Option(min=0, help="0: any that is free.")] = 0,
) -> None:
    """A local page to label on, by keyboard; every click is saved, and a restart goes on.

    Example: `counterprior audit serve sample.jsonl --out labels`
    """
    with failing():
        from ..eval.people.serve import serve

        serve(rows, kind, out, port)


@audit.command("merge")
def audit_merge(
    labels: Annotated[list[Path], typer.Argument(help="Label files, one an annotator.")],
    out: Annotated[Path, typer.Option(help="JSONL with every vote and what most say.")],
    kind: Annotated[str, typer.Option(help="verdict, judge, worlds or bank.")] = "verdict",
    json: Json = False,
) -> None:
    """Labels of several annotators as one file, with how far they agree.

    Example: `counterprior audit merge ann.jsonl bo.jsonl --out labels.jsonl`
    """
    with failing():
        from ..eval.people.run import merge

        print_metrics(merge(labels, kind, out), json)


@app.command()
def flips(
    mined: Annotated[Path, typer.Argument(help="Folder of a run of `mine` with its layout.")],
    out: Annotated[Path, typer.Option(help="Folder of the set.")],
    count: Annotated[int, typer.Option(min=1, help="Pairs at most; two pictures each.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice.")] = 0,
    judge: Annotated[str, typer.Option(help="Judge that sees text in pictures.")] = "",
    max_usd: MaxUsd = None,
) -> None:
    """Verified pairs, each picture also mirrored under the same caption, to tune a model with.

    Example: `counterprior flips mined/laion --out data/flips --judge openai:MODEL`
    """
    with failing(), progress_bar() as progress:
        from ..corpus_analysis.flips import FlipSettings, make_flips
        from ..eval.judges import CallPlan, open_judge

        plan = CallPlan(mined / "judgments", max_usd=max_usd)
        reader = open_judge(judge, plan) if judge else None
        found = make_flips(mined, out, FlipSettings(count, seed), reader, progress)
    print_flips(found, out)


@app.command("race")
def race_generators(
    out: Annotated[Path, typer.Option(help="Folder; the same command goes on where it stopped.")],
    generator: Annotated[list[str] | None, typer.Option(help="Spec; repeatable.")] = None,
    suite: Annotated[str, typer.Option(help="Config whose pictures are right or wrong.")] = "",
    judge: Annotated[str, typer.Option(help="Spec.")] = "",
    scores: Annotated[list[str] | None, typer.Option(help="NAME=FILE instead; repeatable.")] = None,
    metric: Annotated[str, typer.Option(help="Column of --scores, in [0, 1].")] = "score",
    data: Data = "dist/counterprior",
    limit: Limit = None,
    policy: Annotated[str, typer.Option(help="eliminate, or ucb as published.")] = "eliminate",
    alpha: Annotated[float, typer.Option(help="Chance that the best is dropped.")] = 0.05,
    delta: Annotated[float, typer.Option(help="Difference that does not matter.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Order of the items.")] = 0,
    json: Json = False,
) -> None:
    """Which generator is best, with as few pictures as it takes.

    Example: `counterprior race --suite t2i_correctness --generator folder:a --generator folder:b
    --judge pixels --out race`
    """
    with failing(), progress_bar() as progress:
        from ..eval.studies.race import RaceSettings
        from ..eval.studies.racing import LiveSettings, open_source, run_race

        live = LiveSettings(suite, tuple(generator or ()), judge, data, limit)
        source = open_source(live, tuple(scores or ()), metric, out)
        settings = RaceSettings(policy, alpha, delta, seed)  # type: ignore[arg-type]
        print_metrics(run_race(source, settings, out, progress), json)
