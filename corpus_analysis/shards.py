"""One shard of captions to one file of pairs, in the process that an engine gave it.

Results appear whole or not at all: temporary file, fsync, rename. What a shard yields depends on
the shard and the settings alone, so that any engine, order and number of workers write the same
bytes.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ..release import sha256_file
from .captions.gate import GateSettings, gate
from .captions.miner import Counts, Miner, MinerSettings
from .captions.ontology import Ontology
from .captions.parser import installed_model, torch_hidden
from .rows import pair_rows, pair_schema
from .sources import Shard, SourceSettings, read_shard

ROWS_AT_ONCE = 100_000
"""Captions held as Python objects at a time; bounds the memory of a worker."""

MOST_WORDS = 250_000
"""Strings that a worker's spaCy may hold, 85,000 from the start; then it is loaded anew. Each word
costs 1.7 kB in all caches: some 450 MB a worker at most, shards of usual size included."""

_ERRORS_KEPT = 20


@dataclass(frozen=True)
class ShardSettings:
    """Everything that decides what a shard yields."""

    source: SourceSettings
    """Which rows."""
    gate: GateSettings = field(default_factory=GateSettings)
    """Which captions are dropped unparsed."""
    miner: MinerSettings = field(default_factory=MinerSettings)
    """How the rest is parsed."""

    def identity(self) -> dict[str, Any]:
        """What a finished shard must have been made with to count as done.

        The prefilter and the fast path change no pair, but a reference run is one only if it was
        made as one.
        """
        source = asdict(self.source)
        del source["paths"], source["limit"]  # the shard itself says which file and how many rows
        return {
            "code": code_digest(),
            "model": " ".join(installed_model()),
            "ontology": Ontology.read().digest(),
            "source": source,
            "gate": asdict(self.gate),
            "miner": asdict(self.miner),
        }


@dataclass(frozen=True)
class Job:
    """A shard to be mined."""

    shard: Shard
    target: str
    """Path of the file to write."""
    key: str
    """Digest of shard and settings."""

    @classmethod
    def of(cls, shard: Shard, folder: Path, settings: ShardSettings) -> Job:
        what = {"shard": {**asdict(shard), "path": Path(shard.path).name}, **settings.identity()}
        digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        return cls(shard, str(folder / f"{shard.name}.parquet"), digest)


@cache
def code_digest() -> str:
    """12 hex digits over the modules that decide which pairs a caption holds."""
    modules = sorted((Path(__file__).parent / "captions").glob("*.py"))
    content = b"".join(module.read_bytes() for module in modules)
    return hashlib.sha256(content).hexdigest()[:12]


class Worker:
    """A process's miner; loading it takes seconds, so it serves many shards."""

    def __init__(self, settings: ShardSettings) -> None:
        """Raises ModelMissing where spaCy or its model isn't installed."""
        self.settings = settings
        self.miner = self._load()
        if threading.current_thread() is threading.main_thread():
            end_with_parent()

    def _load(self) -> Miner:
        with torch_hidden():
            return Miner(self.settings.miner)

    def mine(self, job: Job) -> dict[str, Any]:
        """The manifest's entry of one shard; an error is one too, and stops no other shard."""
        entry: dict[str, Any] = {"key": job.key, "shard": job.shard.name, "file": job.shard.path}
        try:
            return entry | self._mine(job)
        except Exception as error:
            return entry | {"error": f"{type(error).__name__}: {error}"}

    def _mine(self, job: Job) -> dict[str, Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        began = time.process_time()
        # What spaCy reads it never forgets. (Pools that replace a worker after so many tasks can
        # wait forever: CPython issue 115634.)
        if len(self.miner.parser.nlp.vocab.strings) > MOST_WORDS:
            del self.miner
            gc.collect()
            self.miner = self._load()
        table = read_shard(job.shard, self.settings.source)
        read = time.process_time()
        self.miner.counts = Counts()
        dropped: Counter[str] = Counter()
        rows: list[dict[str, Any]] = []
        errors: list[str] = []
        captions = gated = 0
        for start in range(0, len(table), ROWS_AT_ONCE):
            piece = table.slice(start, ROWS_AT_ONCE).combine_chunks()
            texts = pa.concat_arrays(piece["caption"].chunks)
            at = time.process_time()
            reasons = gate(texts, self.settings.gate)
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
                rows += pair_rows(Path(job.shard.path).name, row, mined)
        write_parquet(pa.Table.from_pylist(rows, pair_schema()), Path(job.target))
        counts = self.miner.counts
        return {
            "rows": len(table),
            "dropped": dict(sorted(dropped.items())),
            "passed": gated,
            **asdict(counts),
            "captions": captions,
            "pairs": len(rows),
            "error_examples": errors[:_ERRORS_KEPT],
            "model": self.miner.parser.model,
            "speedup": self.miner.parser.speedup,
            "sha256": sha256_file(Path(job.target)),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "cpu_s": {
                "read_and_gate": round(read - began, 3),
                "all": round(time.process_time() - began, 3),
            },
        }


def write_parquet(table: Any, target: Path) -> None:
    """Write a parquet file whole or not at all."""
    import pyarrow.parquet as pq

    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            pq.write_table(table, file, compression="zstd", store_schema=True)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def end_with_parent() -> None:
    """End this process when its parent is gone: a killed run must leave no worker that writes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.3)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
