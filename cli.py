"""The command line: each command parses its arguments and calls one function of a room."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from . import __version__
from .console import WRONG, failing, print_configs, print_diff, print_funnel, progress_bar

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
) -> None:
    """Mine captions for pairs of entities; run it again after any end, it goes on.

    Example: `counterprior mine laion.parquet --preset laion --out mined/laion`
    """
    with failing(), progress_bar() as progress:
        from .corpus_analysis.captions.miner import MinerSettings
        from .corpus_analysis.mine import MineSettings, mine_pairs
        from .corpus_analysis.shards import ShardSettings
        from .corpus_analysis.sources import SourceSettings

        rows = SourceSettings(
            tuple(source), preset, caption_column, url_column, limit, sample, seed
        )
        shard = ShardSettings(rows, miner=MinerSettings(not reference, not reference))
        funnel = mine_pairs(MineSettings(shard, out, engine, workers), progress)
    print_funnel(funnel, out)
