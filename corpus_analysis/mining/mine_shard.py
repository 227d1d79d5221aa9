"""Mines one shard of captions into one file of pairs, in a worker process.

The file depends only on the shard and the settings, so every engine, order and number of workers
writes the same bytes.
"""

from __future__ import annotations

import gc
import hashlib
import json
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...eval.workers.tasks import Numbered
from ...release import sha256_file
from ...storage import ArrowSink, whole_file
from ..captions.gate import QualityGate
from ..captions.miner import Counts, Miner
from ..captions.ontology import Ontology
from ..captions.parser import installed_model, without_optional_imports
from ..sources.columns import SourceError
from ..sources.shards import DAMAGED, Shard, SourceSettings, read_shard
from .pair_rows import pair_rows, pair_schema

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 100_000
"""Captions held as Python objects at a time; limits a worker's memory."""

MOST_WORDS = 250_000
"""Strings that a worker's spaCy may hold before it is reloaded; it starts with 85,000. Each word
costs 1.7 kB across all caches: at most about 450 MB per worker for shards of usual size."""

UNLIKE = ("no_similarity", "unlike")
"""Why a similarity filter drops rows: it was not measured, or is too low."""

_ERRORS_KEPT = 20


@dataclass(frozen=True)
class MineSettings:
    """Everything that decides the pairs of a source."""

    source: SourceSettings
    """Rows to read."""
    gate: QualityGate = field(default_factory=QualityGate)
    """Rules for captions to drop without parsing."""
    prefilter: bool = True
    """Whether captions that can't hold a pair are not parsed."""
    fast: bool = True
    """Whether the parser uses the fast tok2vec."""

    def identity(self) -> dict[str, Any]:
        """The versions and settings that must match for a finished shard to count as done.

        The prefilter and the fast path change no pair but are included, so that a reference run
        never reuses shards of a fast one.
        """
        source = asdict(self.source)
        del source["paths"], source["limit"]  # the shard itself names its file and rows
        return {
            "code": code_digest(),
            "model": " ".join(installed_model()),
            "ontology": Ontology.read().digest,
            "source": source,
            "gate": asdict(self.gate),
            "miner": {"prefilter": self.prefilter, "fast": self.fast},
        }

    def reads(self, shard: Shard) -> dict[str, Any]:
        """The file of a shard and the options that choose its rows and columns, as the manifest
        records them."""
        options = asdict(self.source)
        del options["paths"]
        return {"file": shard.source, "size": shard.size, "options": options}


@dataclass(frozen=True)
class Job:
    """A shard to mine."""

    shard: Shard
    target: str
    """Path of the file to write."""
    key: str
    """Digest of shard and settings."""

    @classmethod
    def of(cls, shard: Shard, folder: Path, settings: MineSettings) -> Job:
        identity = {"shard": {**asdict(shard), "path": shard.source}, **settings.identity()}
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
        return cls(shard, str(folder / f"{shard.name}.parquet"), digest)


ShardEntry = dict[str, Any]
"""Line of the manifest about one shard: its counts, or the error that it failed with."""


@dataclass(frozen=True)
class MineShards:
    """The task of workers that mine shards."""

    settings: MineSettings
    bundle: int = 1

    def open(self) -> ShardMiner:
        """Loads the miner. Raises ModelMissing if spaCy or its model is not installed."""
        return ShardMiner(self.settings)

    def lost(self, job: Job, deaths: int) -> ShardEntry:
        """ShardEntry of a shard on which this many workers died."""
        return entry_of(job) | {"error": f"{deaths} workers died mining it"}


@cache
def code_digest() -> str:
    """12 hex digits over the modules that decide the pairs of a caption."""
    modules = sorted((Path(__file__).parents[1] / "captions").glob("*.py"))
    content = b"".join(module.read_bytes() for module in modules)
    return hashlib.sha256(content).hexdigest()[:12]


def entry_of(job: Job) -> ShardEntry:
    """Start of the entry of any job, mined or failed."""
    return {"key": job.key, "shard": job.shard.name, "file": job.shard.path}


class ShardMiner:
    """The miner of one process; loading it takes seconds, so it serves many shards."""

    def __init__(self, settings: MineSettings) -> None:
        """Raises ModelMissing if spaCy or its model is not installed."""
        self.settings = settings
        self.miner = self._load()

    def do(self, work: Sequence[Numbered[Job]]) -> Iterator[Numbered[ShardEntry]]:
        """Mines shards, each into its file."""
        for number, job in work:
            yield number, self.mine(job)

    def finish(self) -> Iterable[Numbered[ShardEntry]]:
        return ()

    def _load(self) -> Miner:
        with without_optional_imports():
            return Miner(prefilter=self.settings.prefilter, fast=self.settings.fast)

    def mine(self, job: Job) -> ShardEntry:
        """Mines one shard; an error becomes its entry and stops no other shard."""
        try:
            return entry_of(job) | self._mine(job)
        except Exception as error:
            return entry_of(job) | {"error": f"{type(error).__name__}: {error}"}

    def _mine(self, job: Job) -> ShardEntry:
        import pyarrow as pa
        import pyarrow.compute as pc

        began = time.process_time()
        # spaCy never frees the strings it has read. (Replacing workers after a number of tasks can
        # hang a pool: CPython issue 115634.)
        if len(self.miner.parser.nlp.vocab.strings) > MOST_WORDS:
            del self.miner
            gc.collect()
            self.miner = self._load()
        table = read_shard(job.shard, self.settings.source)
        damage = (table.schema.metadata or {}).get(DAMAGED, b"").decode()
        rows_read = len(table)
        table, unlike = similar(table, self.settings.source.min_similarity, job.shard.path)
        read = time.process_time()
        self.miner.counts = Counts()
        dropped = Counter(unlike)
        rows: list[dict[str, Any]] = []
        errors: list[str] = []
        captions = gated = 0
        for start in range(0, len(table), ROWS_AT_ONCE):
            piece = table.slice(start, ROWS_AT_ONCE).combine_chunks()
            texts = pa.concat_arrays(piece["caption"].chunks)
            at = time.process_time()
            reasons = self.settings.gate.reasons(texts)
            for count in pc.value_counts(reasons.drop_null()).to_pylist():
                dropped[count["values"]] += count["counts"]
            passed = pc.indices_nonzero(pc.is_null(reasons))
            gated += len(passed)
            spent = time.process_time() - at
            read += spent
            for number, mined in enumerate(self.miner(texts.take(passed))):
                if mined is None:
                    continue
                row = piece.slice(passed[number].as_py(), 1).to_pylist()[0]
                if mined.error:
                    errors.append(f"row {row['row']}: {mined.error}")
                    continue
                captions += 1
                rows += pair_rows(job.shard.source, row, mined)
        write_parquet(pa.Table.from_pylist(rows, pair_schema()), Path(job.target))
        counts = self.miner.counts
        return {
            "rows": rows_read,
            "damage": damage,
            "dropped": dict(sorted(dropped.items())),
            "passed": gated,
            **asdict(counts),
            "captions": captions,
            "pairs": len(rows),
            "error_examples": errors[:_ERRORS_KEPT],
            "model": self.miner.parser.model,
            "speedup": self.miner.parser.speedup,
            "sha256": sha256_file(Path(job.target)),
            "reads": self.settings.reads(job.shard),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "cpu_s": {
                "read_and_gate": round(read - began, 3),
                "all": round(time.process_time() - began, 3),
            },
        }


def similar(table: pa.Table, least: float | None, path: str) -> tuple[pa.Table, dict[str, int]]:
    """Returns the rows whose similarity is at least `least`, and counts of the others by `UNLIKE`.

    Raises SourceError if the source has no similarity.
    """
    import pyarrow.compute as pc

    if least is None:
        return table, {}
    if "similarity" not in table.column_names:
        raise SourceError(
            f"{path}: no similarity of image and caption; leave out --min-similarity",
            code="missing-column",
        )
    unknown = table["similarity"].null_count
    passing = table.filter(pc.greater_equal(table["similarity"], least))
    return passing, dict(zip(UNLIKE, (unknown, len(table) - unknown - len(passing)), strict=True))


def write_parquet(table: pa.Table, target: Path) -> None:
    """Writes a parquet file; it appears whole or stays as it was."""
    import pyarrow.parquet as pq

    with whole_file(target) as file:
        pq.write_table(table, ArrowSink(file), compression="zstd", store_schema=True)
