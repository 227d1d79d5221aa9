"""The command line: each command parses its arguments and calls one function of a room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from . import __version__
from .console import (
    WRONG,
    failing,
    print_agreement,
    print_configs,
    print_diff,
    print_metrics,
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
) -> None:
    """Make the release from the banks: no key, no network, no GPU, no model call.

    Example: `counterprior build --config spatial_uc --config t2i_correctness --out dist/small`
    """
    with failing():
        from .builders.bank import DEFAULT_BANK
        from .builders.build import BuildSettings
        from .builders.build import build as build_items
        from .cards.write import staged, write_release

        settings = BuildSettings(tuple(config or ()), bank or DEFAULT_BANK, seed, seed_images, jobs)
        with staged(out) as folder, progress_bar() as progress:
            facts = write_release(build_items(settings, progress), folder)
        print_configs(facts, out)


@app.command()
def validate(
    path: Annotated[Path, typer.Argument(help="Folder of a release.")],
    json: Json = False,
) -> None:
    """Check schema, counts, digests, content, card and Croissant; exit 1 names file, row, field.

    Example: `counterprior validate dist/counterprior`
    """
    with failing():
        from .builders.build import check_rows
        from .cards.validate import validate as validate_release

        report = validate_release(path, check_rows)
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
        from .cards.diff import diff as compare

        found = compare(old, new)
        if json:
            typer.echo(found.to_json())
        else:
            print_diff(found)


@app.command()
def verify(
    path_or_repo: Annotated[str, typer.Argument(help="A release folder, or NAMESPACE/NAME.")],
    revision: Annotated[str | None, typer.Option(help="Tag or commit on the Hub.")] = None,
    json: Json = False,
) -> None:
    """Compare every file's bytes and rows with the release's own checksums; exit 1 if one differs.

    Example: `counterprior verify counterprior/counterprior --revision v0.1.0`
    """
    with failing():
        from .cards.validate import Report
        from .release import verify as verify_release

        report = Report(path_or_repo, tuple(verify_release(path_or_repo, revision=revision)))
        typer.echo(report.to_json() if json else report.text())
        if report.problems:
            raise typer.Exit(WRONG)


@app.command()
def check(
    detections: Annotated[Path, typer.Argument(help="JSONL of samples with their detections.")],
    rules: Annotated[Path, typer.Option(help="checker.yaml, as published.")],
    out: Annotated[Path, typer.Option(help="JSONL of verdicts; metrics.json goes beside it.")],
    labels: Annotated[Path | None, typer.Option(help="Human labels of some samples.")] = None,
    size: Annotated[str, typer.Option(help="Pixels of pictures whose row says none.")] = "512x512",
    json: Json = False,
) -> None:
    """The abstaining geometric checker: PASS, FAIL or UNDECIDABLE with reason and confidence.

    Example: `counterprior check per_sample.jsonl --rules checker.yaml --out verdicts.jsonl`
    """
    with failing():
        from .eval.checker.boxes import Size
        from .eval.checker.run import CheckSettings, run_check

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
        from .eval.agree import run_agree

        print_agreement(run_agree(scores, labels, metric or (), threshold), json)
