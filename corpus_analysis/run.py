"""A run of `mine` from captions to the answer: pairs, pictures, layout."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..eval.engine.costs import Cost
from ..eval.judges import Answering, open_judge
from ..progress import Progress
from .alignment import Alignment, JudgedPair, align
from .dataset import FOLDER as DATASET
from .dataset import write_dataset
from .errors import CorpusError
from .images.fetch import FetchSettings
from .images.retrieve import FAILURES_WARN, Retrieved, duplicates, retrieve, url_key
from .layout import Candidate, open_log, verify
from .mine import PAIRS, Funnel, MineSettings, mine_pairs
from .page import render_page

STAGES = ("pairs", "images", "layout", "all")
"""How far a run goes; `all` and `layout` are the same."""

IMAGES = "images"
JUDGMENTS = "judgments"
FUNNEL = "funnel.json"
RESULT = "alignment.json"
PAGE = "index.html"


@dataclass(frozen=True)
class CorpusSettings:
    """A whole run."""

    mine: MineSettings
    """Captions to pairs."""
    stage: str = "pairs"
    """One of `STAGES`."""
    judge: str = ""
    """Spec of the judge; needed for the stage `layout`."""
    fetch: FetchSettings = field(default_factory=FetchSettings)
    """How pictures are fetched."""
    threads: int = 32
    """Fetches at a time."""
    concurrency: int = 8
    """Calls of a paid judge at a time."""
    max_usd: float | None = None
    """Cap on what a paid judge may cost in all, resumed runs included; None for no cap."""


@dataclass(frozen=True)
class Finished:
    """What a run came to."""

    funnel: Funnel
    """Of the captions."""
    images: dict[str, Any] | None
    """Counts of the pictures, where the run went so far."""
    alignment: Alignment | None
    """The answer, where it went to the end."""
    warnings: tuple[str, ...]
    """What a reader should look into before believing it."""


def run(settings: CorpusSettings, progress: Progress) -> Finished:
    """Every stage up to the one asked for. Run again after any end: each stage goes on.

    Raises CorpusError and ValueError, both for what a user can mend.
    """
    if settings.stage not in STAGES:
        raise ValueError(f"no stage {settings.stage!r}: choose from {', '.join(STAGES)}")
    last = settings.stage in ("layout", "all")
    if last and not settings.judge:
        raise ValueError("--stage layout needs a judge, e.g. --judge boxes:instances.json")
    out = settings.mine.out
    plan = Cost(settings.concurrency, settings.max_usd).plan(out)
    judge = open_judge(settings.judge, plan) if last else None  # a bad spec fails at once
    if isinstance(judge, Answering):
        judge.check()
    funnel = mine_pairs(settings.mine, progress)
    for leftover in [*out.glob("*.tmp"), *out.glob(f"{DATASET}/*/*.tmp")]:
        leftover.unlink()  # of a run that was killed while it wrote
    write_json(out / FUNNEL, asdict(funnel))
    if settings.stage == "pairs":
        return Finished(funnel, None, None, ())
    pairs = list(read_pairs(out))
    urls = [pair["url"] for pair in pairs if pair["url"]]
    retrieved = retrieve(urls, out / IMAGES, settings.fetch, settings.threads, progress)
    warnings = []
    if retrieved.failed_share() > FAILURES_WARN:
        warnings.append(
            f"{retrieved.failed_share():.0%} of the downloads failed ({retrieved.reasons()}): a "
            f"name server or network that can't keep up? Lower --threads, delete "
            f"{out / IMAGES / 'fetched.jsonl'} and run again"
        )
    candidates, images = choose(pairs, retrieved)
    if judge is None:
        return Finished(funnel, images, None, tuple(warnings))
    log = open_log(out / JUDGMENTS, judge)
    answers = verify(candidates, judge, log, progress)
    judged = [JudgedPair(c.pair, answers[c.pair["id"]]) for c in candidates]
    result = align(dict(log.identity), {"captions": asdict(funnel), "images": images}, judged)
    write_json(out / RESULT, result.to_json())
    write_text(out / PAGE, render_page(result, out.name))
    known = {c.pair["id"] for c in candidates}
    verdicts = [
        {"pair": a.case, "question": a.question, "probe": a.probe, **a.verdict.to_record()}
        for a in log.newest.values()
        if a.case in known
    ]
    write_dataset(out, pairs, retrieved, answers, verdicts, result)
    return Finished(funnel, images, result, tuple(warnings))


def read_pairs(out: Path) -> Iterator[dict[str, Any]]:
    """Every pair of a run, shard by shard. Raises CorpusError where there are none."""
    import pyarrow.parquet as pq

    shards = sorted((out / PAIRS).glob("*.parquet"))
    if not shards:
        raise CorpusError(f"{out}: holds no pairs; run `counterprior mine SOURCE --out {out}`")
    for shard in shards:
        yield from pq.read_table(shard).to_pylist()


def choose(
    pairs: Iterable[dict[str, Any]], retrieved: Retrieved
) -> tuple[list[Candidate], dict[str, Any]]:
    """The pairs to be judged, and the counts of those that aren't.

    One caption an address, the first (as the paper's removal of duplicates by address does), and of
    pictures that are the same, by bytes or by difference hash, the first.
    """
    pairs = list(pairs)
    keys = [url_key(pair["url"]) if pair["url"] else "" for pair in pairs]
    repeated = set(duplicates(retrieved, keys))
    captions: dict[str, str] = {}
    counts = dict.fromkeys(
        (
            "pairs_with_url",
            "pairs_with_picture",
            "pairs_distinct",
            "duplicate_url",
            "duplicate_image",
        ),
        0,
    )
    chosen: dict[str, Candidate] = {}
    for pair, key in zip(pairs, keys, strict=True):
        if not key:
            continue
        counts["pairs_with_url"] += 1
        if retrieved.records[key]["status"] != "success":
            continue
        counts["pairs_with_picture"] += 1
        if captions.setdefault(key, pair["text"]) != pair["text"] or pair["id"] in chosen:
            counts["duplicate_url"] += 1
        elif key in repeated:
            counts["duplicate_image"] += 1
        else:
            counts["pairs_distinct"] += 1
            sha256 = retrieved.records[key]["sha256"]
            chosen[pair["id"]] = Candidate(pair, retrieved.picture(key), sha256)
    images = {**counts, "addresses": len(retrieved.records), "reasons": retrieved.reasons()}
    return list(chosen.values()), images


def write_json(path: Path, data: Any) -> None:
    """Write JSON whole or not at all."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
