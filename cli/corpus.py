"""Look for the prior in captions: mine pairs, measure what is named first, make sets to tune with.

Example: `counterprior corpus mine laion.parquet --out mined/laion`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..cpus import available_cpus
from ..errors import UsageError
from .options import (
    CallOptions,
    Cost,
    EngineName,
    Further,
    Input,
    Json,
    MaxUsd,
    Model,
    Output,
    Sampling,
)
from .progress import progress_bar
from .show_corpus import print_control, print_flips, print_mined, print_truth


def mine(
    source: Annotated[list[str], Argument(help="Files, folders, globs, hf://datasets/….")],
    out: Annotated[Path, Output(help="Folder of the run; one for each source.")],
    preset: Annotated[str, Input(help="laion, datacomp or cc3m.")] = "",
    caption_column: Annotated[str, Further(help="Column of captions.")] = "",
    url_column: Annotated[str, Further(help="Column of image addresses.")] = "",
    image_column: Annotated[str, Further(help="Column with images or their file names.")] = "",
    images: Annotated[
        Path | None,
        Input(help="Folder of the files that --image-column names, if not beside the source."),
    ] = None,
    min_similarity: Annotated[
        float | None,
        Further(help="Minimum similarity of image and caption, as given by the source."),
    ] = None,
    stage: Annotated[str, Input(help="How far to go: pairs, images or layout.")] = "pairs",
    reference: Annotated[
        bool, Further("--reference", help="Use spaCy alone, without the prefilter.")
    ] = False,
    judge: Annotated[str, Model(help="Judge spec, for the stage layout.")] = "",
    limit: Annotated[int | None, Sampling(min=1, help="Maximum number of rows to read.")] = None,
    sample: Annotated[float, Further(help="Share of rows, in (0, 1].")] = 1.0,
    seed: Annotated[int, Further(min=0, help="Seed of the sample.")] = 0,
    engine: EngineName = "local",
    shard: Annotated[str, Further(help="I/N: mine only this part of the pairs, e.g. 2/8.")] = "",
    workers: Annotated[int, Cost(min=1, help="Processes.")] = available_cpus(),
    threads: Annotated[int, Further(min=1, help="Downloads at the same time.")] = 32,
    retry_failed: Annotated[
        bool, Further("--retry-failed", help="Try failed downloads again.")
    ] = False,
    max_usd: MaxUsd = None,
    contact: Annotated[str, Further(help="Web page or mail address that site owners see.")] = "",
    loopback: Annotated[bool, Option("--loopback-for-tests", hidden=True)] = False,
) -> None:
    """Mine captions for pairs, fetch their images, judge their layout; run again to continue.

    Example: `counterprior corpus mine laion.parquet --out mined/laion --stage layout
    --judge openai:MODEL`
    """
    from ..corpus_analysis.mining.mine_shard import MineSettings
    from ..corpus_analysis.pipeline import CorpusSettings, run
    from ..corpus_analysis.sources.shards import SourceSettings
    from ..eval.store.shards import parse_shard
    from ..eval.workers.farm import Scale, as_engine
    from ..fetching import DownloadSettings

    rows = SourceSettings(
        paths=tuple(source),
        preset=preset,
        caption_column=caption_column,
        url_column=url_column,
        image_column=image_column,
        min_similarity=min_similarity,
        limit=limit,
        sample=sample,
        seed=seed,
    )
    run_shard = parse_shard(shard) if shard else None
    settings = CorpusSettings(
        MineSettings(rows, prefilter=not reference, fast=not reference),
        out,
        Scale(workers, shard=run_shard, engine=as_engine(engine)),
        stage=stage,
        judge=judge,
        fetch=DownloadSettings(contact=contact, loopback=loopback),
        threads=threads,
        image_folder=images,
        retry_failed=retry_failed,
        max_usd=max_usd,
    )
    with progress_bar() as progress:
        print_mined(run(settings, progress), out)


def flips(
    mined: Annotated[
        Path, Argument(help="Folder of a run of `corpus mine` with its layout, or of an organism.")
    ],
    out: Annotated[Path, Output(help="Folder of the set.")],
    judge: Annotated[str, Model(help="Judge that finds text in images.")] = "",
    count: Annotated[
        int, Sampling(min=1, help="Maximum number of pairs, with two images each.")
    ] = 2000,
    seed: Annotated[int, Sampling(min=0, help="Seed of the choice.")] = 0,
    max_usd: MaxUsd = None,
) -> None:
    """Write verified pairs, each image also mirrored under the same caption, to tune a model.

    Example: `counterprior corpus flips mined/laion --out data/flips --judge openai:MODEL`
    """
    from ..corpus_analysis.alignment.flips import make_flips
    from ..eval.engine.costs import Cost
    from ..eval.judges import open_judge
    from ..eval.organisms.flips import is_organism, write_flips

    if is_organism(mined):
        if judge:
            raise UsageError(
                "--judge is for mined images: drawings hold no text",
                "leave it out",
                code="conflicting-options",
            )
        with progress_bar() as progress:
            written = write_flips(mined, out, count, progress)
        print(f"{written:,} drawings of {mined}, each also mirrored: {out}")
        return
    with Cost(max_usd=max_usd).plan(mined) as plan, progress_bar() as progress:
        reader = open_judge(judge, plan) if judge else None
        flip_set = make_flips(mined, out, reader, progress, count=count, seed=seed)
    print_flips(flip_set, out)


def control(
    boxes: Annotated[Path, Argument(help="People's boxes: COCO instances of photographs.")],
    captions: Annotated[
        Path, Argument(help="People's captions of the photographs: COCO's format, or rows.")
    ],
    out: Annotated[Path, Output(help="Folder of the run.")],
    calls: CallOptions,
    judge: Annotated[str, Model(help="Judge to compare with the boxes; needs --images.")] = "",
    images: Annotated[Path | None, Input(help="Folder of the photographs.")] = None,
    limit: Annotated[int | None, Sampling(min=1, help="Maximum number of pairs to judge.")] = None,
    seed: Annotated[
        int, Sampling(min=0, help="Seed that chooses the one caption of an image.")
    ] = 0,
    json: Json = False,
) -> None:
    """Measure how often people name the left one first, by their boxes: the control for mining.

    Example: `counterprior corpus control instances_val2017.json captions_val2017.json
    --out runs/control`
    """
    from ..corpus_analysis.alignment.control.box_control import run_control

    with progress_bar() as progress:
        result = run_control(
            boxes,
            captions,
            out,
            judge_spec=judge,
            images=images,
            limit=limit,
            seed=seed,
            cost=calls.cost(),
            progress=progress,
        )
    print_control(result, out, json)


def accuracy(
    captions: Annotated[
        list[Path], Argument(help="Files of the sources: parquet, jsonl, json or csv.")
    ],
    gold: Annotated[
        Path | None, Input(help="Annotated captions; the shipped ones by default.")
    ] = None,
    tuned: Annotated[
        bool, Input("--tuned", help="The half that may be used for tuning, with every mistake.")
    ] = False,
    draw: Annotated[
        int | None, Input(min=1, help="Only captions of this draw; all by default.")
    ] = None,
    reference: Annotated[
        bool, Input("--reference", help="Use spaCy alone, without the prefilter.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure precision and recall of `corpus mine` against annotated captions.

    Example: `counterprior corpus accuracy laion.parquet cc3m.parquet coco.json`
    """
    from ..corpus_analysis.mining.accuracy import GOLD, Half, check_pairs

    half: Half = "tuned" if tuned else "held-out"
    report = check_pairs(captions, half, gold or GOLD, reference=reference, draw=draw)
    print_truth(report, json)
