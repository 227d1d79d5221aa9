"""Mining a source: shards to workers, a manifest that survives kill -9, and the funnel."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..progress import Progress
from .captions.gate import REASONS
from .captions.parser import installed_model
from .engines import engine, prepare_environment, run_jobs
from .errors import CorpusError
from .shards import Job, ShardSettings
from .sources import list_shards

PAIRS = "pairs"
"""Folder of the pairs, one parquet file a shard."""
MANIFEST = "manifest.jsonl"
"""One line a finished shard."""


class MineError(CorpusError):
    """A run that can't go on, or finished with failed shards; the message says what to do."""


@dataclass(frozen=True)
class MineSettings:
    """A run of `counterprior mine`."""

    shard: ShardSettings
    """What decides the rows."""
    out: Path
    """Folder of the run; one a source."""
    engine: str = "local"
    """`local`, `pool` or `ray`; never changes a row."""
    workers: int = 1
    """Processes; never changes a row either."""


@dataclass(frozen=True)
class Funnel:
    """How many rows came how far."""

    rows: int
    """Read."""
    dropped: dict[str, int]
    """Dropped by the quality gate, by reason."""
    passed: int
    """Passed the quality gate."""
    candidates: int
    """Of these, passed the prefilter (in a reference run: all)."""
    parsed: int
    """Parsed."""
    tokens: int
    """Tokens parsed."""
    errors: int
    """Captions that the parser failed on."""
    captions: int
    """Captions with at least one pair."""
    pairs: int
    """Pairs."""
    model: str
    """spaCy model and version; several where shards were mined with several."""
    speedup: str
    """Whether the fast path ran, or why not."""

    @classmethod
    def of(cls, entries: Iterable[dict[str, Any]]) -> Funnel:
        entries = list(entries)
        dropped: Counter[str] = Counter()
        for entry in entries:
            dropped.update(entry["dropped"])

        def total(name: str) -> int:
            return sum(entry[name] for entry in entries)

        def said(name: str) -> str:
            return "; ".join(sorted({entry[name] for entry in entries}))

        return cls(
            total("rows"),
            {r: dropped[r] for r in REASONS},
            total("passed"),
            total("candidates"),
            total("parsed"),
            total("tokens"),
            total("errors"),
            total("captions"),
            total("pairs"),
            said("model"),
            said("speedup"),
        )


def mine_pairs(settings: MineSettings, progress: Progress) -> Funnel:
    """Mine every shard that isn't done, then count. Run again after any end: it goes on.

    Raises MineError where another run holds the folder or a shard failed; SourceError and
    OntologyError before any work; EngineError where workers keep dying.
    """
    folder = settings.out / PAIRS
    folder.mkdir(parents=True, exist_ok=True)
    installed_model()  # before workers are started that could only die of it
    jobs = [Job.of(s, folder, settings.shard) for s in list_shards(settings.shard.source)]
    with locked_manifest(settings.out / MANIFEST) as (entries, log):
        _sweep(folder, {Path(job.target).name for job in jobs})
        done = {e["key"]: e for e in entries if "error" not in e and (folder / _file(e)).exists()}
        # Large files first, so that no worker is left alone with one at the end.
        todo = sorted((job for job in jobs if job.key not in done), key=lambda job: -job.shard.size)
        progress("shards", len(jobs) - len(todo), len(jobs))
        failed: list[dict[str, Any]] = []
        if todo:
            prepare_environment()
            run = engine(settings.engine)

            def restarting(number: int) -> None:
                count = len(done) + len(failed)
                progress(f"a worker died, restart {number}", count, len(jobs))

            for entry in run_jobs(run, todo, settings.shard, settings.workers, restarting):
                log.write(json.dumps(entry).encode() + b"\n")
                os.fsync(log.fileno())
                if "error" in entry:
                    failed.append(entry)
                else:
                    done[entry["key"]] = entry
                progress("shards", len(done) + len(failed), len(jobs))
        _sweep(folder, {Path(job.target).name for job in jobs})
    if failed:
        first = failed[0]
        raise MineError(
            f"{len(failed)} of {len(jobs)} shards failed; the first, {first['file']}: "
            f"{first['error']}; mend it and run the same command again"
        )
    missing = [job for job in jobs if job.key not in done]
    if missing:
        raise MineError(f"{len(missing)} shards were never reported; run the same command again")
    return Funnel.of(done[job.key] for job in jobs)


@contextmanager
def locked_manifest(path: Path) -> Iterator[tuple[list[dict[str, Any]], IO[bytes]]]:
    """Finished entries and the file to append to; a torn last line is cut off.

    Raises MineError where another run holds it: the lock ends with its process, however that ends.
    """
    with open(path, "a+b", buffering=0) as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MineError(
                f"{path.parent} is in use by another run; wait or use another --out"
            ) from None
        log.seek(0)
        lines, end, _torn = log.read().rpartition(b"\n")
        log.truncate(len(lines + end))
        yield [json.loads(line) for line in lines.splitlines()], log


def _file(entry: dict[str, Any]) -> str:
    return f"{entry['shard']}.parquet"


def _sweep(folder: Path, wanted: set[str]) -> None:
    """Remove what a killed run left half-written, and results of shards that are no more."""
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
