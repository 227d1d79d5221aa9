"""Who runs the workers: a process pool, Daft on this machine, or Daft on a Ray cluster.

An engine turns jobs into manifest entries as they finish, in any order. It never sees a caption.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

from .captions.gate import GateSettings
from .captions.miner import MinerSettings
from .captions.parser import single_threaded
from .errors import CorpusError
from .shards import Job, ShardSettings, Worker
from .sources import Shard, SourceSettings

Engine = Callable[[Sequence[Job], ShardSettings, int], Iterator[dict[str, Any]]]

SHARDS_PER_WORKER = 50
"""A pool's worker is replaced after so many shards: spaCy's vocabulary grows with what it reads."""

_RESTARTS = 3


class EngineError(CorpusError):
    """An engine that can't go on; finished shards are kept, and the same command goes on."""


def engine(name: str) -> Engine:
    """`local`: Daft here, or the pool where Daft isn't installed; `pool`; `ray`: Daft on Ray."""
    if name == "pool" or (name == "local" and importlib.util.find_spec("daft") is None):
        return pool
    if name in ("local", "ray"):
        if importlib.util.find_spec("daft") is None:
            raise EngineError(f"--engine {name} needs Daft: pip install daft")
        if name == "ray" and importlib.util.find_spec("ray") is None:
            raise EngineError("--engine ray needs Ray: pip install ray")
        return daft_on_ray if name == "ray" else daft_here
    raise EngineError(f"no engine {name!r}: choose from local, pool, ray")


def pool(jobs: Sequence[Job], settings: ShardSettings, workers: int) -> Iterator[dict[str, Any]]:
    """A process pool, one shard a task. A killed worker costs the shards in flight, once.

    Raises EngineError where workers keep dying without finishing anything.
    """
    left = {job.key: job for job in jobs}
    deaths = 0
    while left:
        with ProcessPoolExecutor(
            min(workers, len(left)),
            get_context("spawn"),
            _start,
            (settings,),
            max_tasks_per_child=SHARDS_PER_WORKER,
        ) as executor:
            futures = [executor.submit(_mine, job) for job in left.values()]
            try:
                for future in as_completed(futures):
                    entry = future.result()
                    del left[entry["key"]]
                    deaths = 0
                    yield entry
            except BrokenProcessPool:
                deaths += 1
        if left and deaths > _RESTARTS:
            raise EngineError(
                f"workers died {deaths} times in a row (killed, or out of memory?) with "
                f"{len(left)} shards left; run the same command again, perhaps with fewer --workers"
            )


_worker: Worker | None = None


def _start(settings: ShardSettings) -> None:
    global _worker
    _worker = Worker(settings)


def _mine(job: Job) -> dict[str, Any]:
    assert _worker is not None
    return _worker.mine(job)


def daft_here(
    jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """Daft's native runner."""
    return _daft("native", jobs, settings, workers)


def daft_on_ray(
    jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """Daft on the Ray cluster that `RAY_ADDRESS` names, or on one of its own on this machine."""
    return _daft("ray", jobs, settings, workers)


def _daft(
    runner: str, jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    # Read by Daft when it is imported; workers inherit the rest.
    os.environ.update(DAFT_RUNNER=runner, **QUIET)
    import daft

    @daft.cls(use_process=True, max_concurrency=workers)
    class Mine:
        def __init__(self, text: str) -> None:
            # Daft forks nothing: the class is made anew in each process, from text alone.
            from .engines import settings_from
            from .shards import Worker

            self.worker = Worker(settings_from(text))

        @daft.method.batch(return_dtype=daft.DataType.string(), batch_size=1)
        def mine(self, column: Any) -> list[str]:
            from .engines import job_from

            return [json.dumps(self.worker.mine(job_from(text))) for text in column.to_pylist()]

    # One query, so that workers and their models live on; one partition a shard, so that Ray
    # returns entries as shards finish and not all at the end.
    frame = daft.from_pylist([{"job": json.dumps(asdict(job))} for job in jobs])
    if runner == "ray":  # the native runner streams rows anyhow, and warns
        frame = frame.into_partitions(len(jobs))
    mine: Any = Mine(json.dumps(asdict(settings))).mine  # an expression, once decorated
    mined = frame.select(mine(daft.col("job")).alias("entry"))
    try:
        for row in mined.iter_rows():
            yield json.loads(row["entry"])
    except Exception as error:
        raise EngineError(
            f"Daft ({runner}) stopped: {error}; finished shards are kept, run the same command "
            f"again or use --engine pool"
        ) from error


QUIET = {
    "DO_NOT_TRACK": "1",
    "DAFT_ANALYTICS_ENABLED": "0",
    "SCARF_NO_ANALYTICS": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DAFT_PROGRESS_BAR": "0",
}
"""No library tells anyone of a run, and no bar but ours is shown."""


def prepare_environment() -> None:
    """What workers must find before they import NumPy; call before an engine starts."""
    os.environ.update(single_threaded() | QUIET)


def settings_from(text: str) -> ShardSettings:
    """Settings back from the JSON of their `asdict`."""
    data = json.loads(text)
    source = SourceSettings(**{**data["source"], "paths": tuple(data["source"]["paths"])})
    return ShardSettings(source, GateSettings(**data["gate"]), MinerSettings(**data["miner"]))


def job_from(text: str) -> Job:
    """A job back from the JSON of its `asdict`."""
    data = json.loads(text)
    groups = data["shard"]["groups"]
    shard = Shard(**{**data["shard"], "groups": None if groups is None else tuple(groups)})
    return Job(shard, data["target"], data["key"])
