"""Mines a source: hands shards to workers, and records each in a manifest that survives kill -9."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...eval.store.shards import owns_row, shard_log
from ...eval.workers.farm import Scale, farm
from ...progress import Progress
from ...release import sha256_file
from ...storage import PARTIAL, RecordLog, read_records
from ..captions.gate import REASONS
from ..captions.parser import installed_model, single_threaded
from ..errors import CorpusError
from ..sources.shards import Shard, list_shards
from .mine_shard import UNLIKE, Job, MineSettings, MineShards, ShardEntry

PAIRS = "pairs"
"""Folder of the pairs, one parquet file per shard."""
_SHARD_FILE = re.compile(rf"\d{{5,}}(-.*)?\.parquet|.*{re.escape(PARTIAL)}")
"""Files that a run writes there; it removes no others."""
_LOG = "manifest"
MANIFEST = shard_log(_LOG, None)
"""One line per finished shard; a process with a share of the work has its own log."""


class MineError(CorpusError):
    """A run that finished with failed or missing shards; the message says what to do."""


@dataclass(frozen=True)
class Funnel:
    """Number of rows that reached each stage."""

    rows: int
    """Rows read."""
    damaged: dict[str, str]
    """File that could be read only in part -> its damage."""
    dropped: dict[str, int]
    """Rows dropped by the similarity filter and the quality gate, by reason."""
    passed: int
    """Rows that passed the quality gate."""
    candidates: int
    """Rows that also passed the prefilter (in a reference run: all)."""
    parsed: int
    """Captions parsed."""
    tokens: int
    """Tokens parsed."""
    errors: int
    """Captions that the parser failed on."""
    captions: int
    """Captions with at least one pair."""
    pairs: int
    """Pairs mined."""
    model: str
    """spaCy model and version; several if shards were mined with different ones."""
    speedup: str
    """`fast`, or why the fast path did not run."""

    @classmethod
    def of(cls, entries: Iterable[ShardEntry]) -> Funnel:
        entries = list(entries)
        dropped: Counter[str] = Counter()
        for entry in entries:
            dropped.update(entry["dropped"])

        def total(name: str) -> int:
            return sum(entry[name] for entry in entries)

        def distinct(name: str) -> str:
            return "; ".join(sorted({entry[name] for entry in entries}))

        return cls(
            rows=total("rows"),
            damaged={entry["file"]: entry["damage"] for entry in entries if entry["damage"]},
            dropped={reason: dropped[reason] for reason in (*UNLIKE, *REASONS)},
            passed=total("passed"),
            candidates=total("candidates"),
            parsed=total("parsed"),
            tokens=total("tokens"),
            errors=total("errors"),
            captions=total("captions"),
            pairs=total("pairs"),
            model=distinct("model"),
            speedup=distinct("speedup"),
        )


def mine_pairs(settings: MineSettings, out: Path, scale: Scale, progress: Progress) -> Funnel:
    """Mines every shard that isn't done, then counts; a second run resumes.

    out: folder of the run, one per source. scale: workers that share the run; changes no row. With
    `scale.shard`, mines every Nth shard and counts these. One process per folder, or per share of
    the run: the caller holds the lock.

    Raises SourceError, OntologyError, ModelMissing and UsageError before any work, e.g. for a
    folder with pairs of another source or sample; MineError if shards failed, and RunFailed if
    workers keep dying.
    """
    installed_model()  # before starting workers that would only fail without it
    folder = out / PAIRS
    _check_folder(folder)
    shard_of_run = scale.shard
    shards = list_shards(settings.source)
    own_shards = (shard for n, shard in enumerate(shards) if owns_row(shard_of_run, n))
    jobs = [Job.of(shard, folder, settings) for shard in own_shards]
    folder.mkdir(parents=True, exist_ok=True)
    # A process with a share of the work writes its own files, and removes none.
    written = [Path(job.target) for job in jobs] if shard_of_run else folder.glob("*.parquet")
    mined = _mined(out, written)
    keys = {job.key for job in jobs}
    done = {entry["key"]: entry for entry in mined if entry["key"] in keys}
    kept = {entry["shard"] for entry in done.values()}
    _check_replaced(out, (e for e in mined if e["shard"] not in kept), shards, settings)
    if shard_of_run is None:
        _sweep(folder, jobs)
    # Large files first, so that no worker is left alone with one at the end.
    todo = sorted((job for job in jobs if job.key not in done), key=lambda job: -job.shard.size)
    progress("shards", len(jobs) - len(todo), len(jobs))
    failed: list[ShardEntry] = []

    def report_death(deaths: int) -> None:
        progress(f"a worker died, restart {deaths}", len(done) + len(failed), len(jobs))

    if todo:
        # A shard takes seconds: with one more on its way, it would wait while others are idle.
        mining = farm(
            MineShards(settings),
            todo,
            scale,
            ahead=1,
            gpus=False,
            on_death=report_death,
        )
        with (
            _single_threaded_workers(),
            RecordLog(out / shard_log(_LOG, shard_of_run)) as log,
            closing(mining),
        ):
            for _, entry in mining:
                log.append(entry)
                if "error" in entry:
                    failed.append(entry)
                else:
                    done[entry["key"]] = entry
                progress("shards", len(done) + len(failed), len(jobs))
        if shard_of_run is None:
            _sweep(folder, jobs)
    _check(jobs, done, failed)
    return Funnel.of(done[job.key] for job in jobs)


@contextmanager
def _single_threaded_workers() -> Iterator[None]:
    """Sets the environment that workers need before they import NumPy, then restores it."""
    settings = single_threaded()
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _mined(out: Path, files: Iterable[Path]) -> list[ShardEntry]:
    """Manifest entries of these files of pairs, where they are there as they were mined, whoever
    mined them.

    A run with other settings, also one that was killed, leaves other files of the same names.
    """
    digests = {file.stem: sha256_file(file) for file in files if file.exists()}
    return [
        entry
        for manifest in sorted(out.glob(f"{_LOG}*.jsonl"))
        for entry in read_records(manifest)
        if "error" not in entry and digests.get(entry["shard"]) == entry["sha256"]
    ]


def _check_replaced(
    out: Path, replaced: Iterable[ShardEntry], shards: Iterable[Shard], settings: MineSettings
) -> None:
    """Raises UsageError where a run would replace pairs by those of another source or sample.

    replaced: manifest entries of pairs that are mined anew, or removed. Another version of the
    miner may replace them: it reads the same rows.
    """
    reads_by_file = {shard.source: settings.reads(shard) for shard in shards}
    options = settings.source
    for entry in replaced:
        if (there := entry.get("reads")) is None:
            continue
        file = there["file"]
        differences = [
            f"{_option(name, value)} there, {_option(name, getattr(options, name))} asked"
            for name, value in there["options"].items()
            if value != getattr(options, name)
        ]
        if file not in reads_by_file:
            differences.append(f"pairs of {file}, which is not asked")
        elif (size := reads_by_file[file]["size"]) != there["size"]:
            differences.append(f"{file} of {there['size']:,} bytes there, {size:,} now")
        if differences:
            raise UsageError(
                f"{out} is of another run: {'; '.join(differences)}",
                "choose another --out, or repeat the options of that run",
                code="another-run",
            )


def _option(name: str, value: Any) -> str:
    """An option of the command with its value, or that it is not given."""
    option = f"--{name.replace('_', '-')}"
    return f"no {option}" if value in (None, "") else f"{option} {value}"


def _check_folder(folder: Path) -> None:
    """Raises UsageError for a folder with visible files that no run wrote."""
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    others = [n for n in names if not (n.startswith(".") or _SHARD_FILE.fullmatch(n))]
    if others:
        raise UsageError(
            f"{folder} holds what `corpus mine` did not write ({min(others)}): "
            f"choose another --out",
            code="folder-not-empty",
        )


def _sweep(folder: Path, jobs: Iterable[Job]) -> None:
    """Removes files that a killed run left half-written, and results of other shards."""
    wanted = {Path(job.target).name for job in jobs}
    for path in folder.iterdir():
        if path.name not in wanted and _SHARD_FILE.fullmatch(path.name):
            path.unlink()


def _check(jobs: list[Job], done: dict[str, ShardEntry], failed: list[ShardEntry]) -> None:
    """Raises MineError unless every shard is done."""
    if failed:
        first = failed[0]
        raise MineError(
            f"{len(failed)} of {len(jobs)} shards failed; the first, {first['file']}: "
            f"{first['error']}; fix it and run the same command again",
            code="failed-shards",
        )
    if missing := [job for job in jobs if job.key not in done]:
        raise MineError(
            f"{len(missing)} shards were never reported; run the same command again",
            code="failed-shards",
        )
