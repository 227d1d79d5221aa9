"""A run of `corpus mine` from captions to the answer: pairs, images, layout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..eval.core import Judge
from ..eval.engine.costs import Cost
from ..eval.judges import Answering, open_judge
from ..eval.store.shards import shard_log
from ..eval.workers.farm import Scale
from ..fetching import DownloadSettings
from ..progress import Progress
from ..storage import PARTIAL, Lock, write_json, write_whole
from .alignment.dataset import FOLDER as DATASET
from .alignment.dataset import write_dataset
from .alignment.layout_judge import PairToJudge, open_log, verify
from .alignment.page import render_page
from .alignment.rates import Alignment, JudgedPair, align
from .errors import CorpusError
from .images.local import LocalImages
from .images.retrieve import (
    FAILURES_WARN,
    ImageSource,
    Retrieved,
    duplicates,
    retrieve,
)
from .mining.mine_shard import MineSettings
from .mining.mine_source import PAIRS, Funnel, mine_pairs

STAGES = ("pairs", "images", "layout", "all")
"""Last stage of a run; `all` means `layout`."""

IMAGES = "images"
JUDGMENTS = "judgments"
FUNNEL = "funnel.json"
RESULT = "alignment.json"
PAGE = "index.html"
LOCK = ".lock"
"""Held by the one run that may write to the folder."""
COUNTS = (
    "pairs_with_source",
    "pairs_with_image",
    "pairs_distinct",
    "duplicate_url",
    "duplicate_image",
)
"""Outcomes of pairs, as counted before judging."""


@dataclass(frozen=True)
class CorpusSettings:
    """A run of all stages."""

    mine: MineSettings
    """Captions to pairs."""
    out: Path
    """Folder of the run; use one per source."""
    scale: Scale = field(default_factory=Scale)
    """Workers that share the run, and this process's share of it, None for everything not yet
    done; changes no row."""
    stage: str = "pairs"
    """One of `STAGES`."""
    judge: str = ""
    """Judge spec; required for the stage `layout`."""
    fetch: DownloadSettings = field(default_factory=DownloadSettings)
    """Limits on fetching images."""
    threads: int = 32
    """Downloads at the same time."""
    image_folder: Path | None = None
    """Folder of the image files that the source names; None for beside the source."""
    retry_failed: bool = False
    """Whether to try failed downloads again."""
    concurrency: int = 8
    """Calls of a paid judge at the same time."""
    max_usd: float | None = None
    """Cap on the total cost of a paid judge, including resumed runs; None for no cap."""


@dataclass(frozen=True)
class Finished:
    """The result of a run."""

    funnel: Funnel
    """Counts of captions at each stage."""
    images: dict[str, Any] | None
    """Counts of the images; None if the run stopped before them."""
    alignment: Alignment | None
    """Result of the layout stage; None if the run stopped before the layout."""
    warnings: tuple[str, ...]
    """Problems to check before trusting the result."""


def run(settings: CorpusSettings, progress: Progress) -> Finished:
    """Runs every stage up to `settings.stage`; in a second run each stage resumes.

    Raises UsageError for bad settings, InUseError if another run writes to the folder, and
    CorpusError if a stage can't continue.
    """
    if settings.stage not in STAGES:
        raise UsageError(
            f"no stage {settings.stage!r}: choose from {', '.join(STAGES)}", code="unknown-name"
        )
    last = settings.stage in ("layout", "all")
    if last and not settings.judge:
        raise UsageError(
            "--stage layout needs a judge, e.g. --judge boxes:instances.json", code="missing-option"
        )
    out = settings.out
    if settings.scale.shard is not None:
        return _run_part(settings, progress)
    with Lock(out / LOCK, str(out)):
        plan = Cost(settings.concurrency, settings.max_usd).plan(out)
        judge = open_judge(settings.judge, plan) if last else None  # a bad spec fails at once
        if isinstance(judge, Answering):
            judge.check()
        for leftover in [*out.glob(f"*{PARTIAL}"), *out.glob(f"{DATASET}/*/*{PARTIAL}")]:
            leftover.unlink()  # of a run that was killed while writing
        funnel = mine_pairs(settings.mine, settings.out, settings.scale, progress)
        write_json(out / FUNNEL, asdict(funnel))
        if settings.stage == "pairs":
            return Finished(funnel, None, None, ())
        pairs = list(read_pairs(out))
        retrieved, warnings = _retrieve(settings, pairs, progress)
        chosen, images = choose(pairs, retrieved)
        alignment = None
        if judge is not None:
            prepared = _PreparedPairs(funnel, images, pairs, retrieved, chosen)
            alignment = _judge(out, prepared, judge, progress)
        return Finished(funnel, images, alignment, warnings)


def _run_part(settings: CorpusSettings, progress: Progress) -> Finished:
    """Mines one share of a run beside processes that mine the others."""
    if settings.stage != "pairs":
        raise UsageError(
            "--shard mines pairs; to continue, run without it after all shards",
            code="conflicting-options",
        )
    out = settings.out
    log = out / shard_log(LOCK, settings.scale.shard)
    with Lock(out / LOCK, str(out), shared=True), Lock(log, f"{out}, this shard"):
        return Finished(
            mine_pairs(settings.mine, settings.out, settings.scale, progress), None, None, ()
        )


def _retrieve(
    settings: CorpusSettings, pairs: Iterable[dict[str, Any]], progress: Progress
) -> tuple[Retrieved, tuple[str, ...]]:
    """Fetches the images of all pairs; returns them with warnings about the downloads."""
    folder = settings.out / IMAGES
    source = settings.mine.source
    sources = (ImageSource.of(pair) for pair in pairs)
    retrieved = retrieve(
        (image for image in sources if image),
        folder,
        settings.fetch,
        settings.threads,
        progress,
        local=LocalImages(source, settings.image_folder, settings.fetch.max_bytes),
        retry_failed=settings.retry_failed,
    )
    failed = retrieved.failed_share()
    if failed <= FAILURES_WARN:
        return retrieved, ()
    warning = (
        f"{failed:.0%} of the downloads failed ({retrieved.reasons()}); if the name server or the "
        f"network can't keep up, lower --threads and run again with --retry-failed"
    )
    return retrieved, (warning,)


@dataclass(frozen=True)
class _PreparedPairs:
    """Pairs with images and the counts so far, before a judge is asked."""

    funnel: Funnel
    images: dict[str, Any]
    pairs: list[dict[str, Any]]
    retrieved: Retrieved
    chosen: list[PairToJudge]


def _judge(out: Path, prepared: _PreparedPairs, judge: Judge, progress: Progress) -> Alignment:
    """Asks the judge about every chosen pair and writes the result, the page and the dataset."""
    log = open_log(out / JUDGMENTS, judge)
    answers = verify(prepared.chosen, judge, log, progress)
    judged = [JudgedPair(c.pair, answers[c.pair["id"]]) for c in prepared.chosen]
    counts = {"captions": asdict(prepared.funnel), "images": prepared.images}
    result = align(dict(log.identity), counts, judged)
    write_json(out / RESULT, result.to_json())
    write_whole(out / PAGE, render_page(result, out.name))
    verdicts = [
        {"pair": a.case, "question": a.question, "probe": a.probe, **a.verdict.to_record()}
        for a in log
        if a.case in answers
    ]
    write_dataset(
        out / DATASET,
        pairs=prepared.pairs,
        retrieved=prepared.retrieved,
        answers=answers,
        verdicts=verdicts,
        result=result,
    )
    return result


def read_pairs(out: Path) -> Iterator[dict[str, Any]]:
    """Reads every pair of a run, shard by shard. Raises CorpusError if there are none."""
    import pyarrow.parquet as pq

    shards = sorted((out / PAIRS).glob("*.parquet"))
    if not shards:
        raise CorpusError(
            f"{out} has no pairs; run `counterprior corpus mine SOURCE --out {out}`",
            code="stage-missing",
        )
    for shard in shards:
        yield from pq.read_table(shard).to_pylist()


def choose(
    pairs: Iterable[dict[str, Any]], retrieved: Retrieved
) -> tuple[list[PairToJudge], dict[str, Any]]:
    """Returns the pairs to judge, and counts of all pairs by their outcome.

    Keeps the first caption of each place and of each address (as in the paper), once, and the first
    of equal images, by bytes or by difference hash.
    """
    pairs = list(pairs)
    sources = list(map(ImageSource.of, pairs))
    keys = [source.key if source else "" for source in sources]
    repeated = set(duplicates(retrieved, keys))
    captions: dict[str, tuple[Any, ...]] = {}
    counts = dict.fromkeys(COUNTS, 0)
    chosen: dict[str, PairToJudge] = {}
    for pair, source, key in zip(pairs, sources, keys, strict=True):
        if source is None:
            continue
        counts["pairs_with_source"] += 1
        if retrieved.records[key]["status"] != "success":
            continue
        counts["pairs_with_image"] += 1
        caption = (pair["text"], pair["source"], pair["row"])
        first_captions = [captions.setdefault(name, caption) for name in source.names]
        if first_captions != [caption] * len(first_captions):
            counts["duplicate_url"] += 1
        elif key in repeated:
            counts["duplicate_image"] += 1
        else:
            counts["pairs_distinct"] += 1
            sha256 = retrieved.records[key]["sha256"]
            chosen[pair["id"]] = PairToJudge(pair, retrieved.image(key), sha256)
    images = {
        **counts,
        "addresses": len(retrieved.records),
        "reasons": retrieved.reasons(),
        "opt_outs": retrieved.opt_outs(),
    }
    return list(chosen.values()), images
