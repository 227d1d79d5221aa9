"""What runs the workers: a process pool, Daft on this machine, or Daft on a Ray cluster.

An engine turns jobs into manifest entries as they finish, in any order. It never sees a caption.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from ..errors import UsageError
from ..eval.workers.farm import end_with_parent
from .captions.gate import QualityGateSettings
from .captions.miner import MinerSettings
from .captions.parser import single_threaded
from .errors import CorpusError
from .shards import Job, ShardSettings, Worker
from .sources import Shard, SourceSettings

Engine = Callable[[Sequence[Job], ShardSettings, int], Iterator[dict[str, Any]]]
"""Turns jobs, settings and a number of workers into entries; raises WorkerDied."""

_VAIN_STARTS = 3
"""Consecutive starts of an engine that finish nothing before the run gives up."""


class EngineError(CorpusError):
    """An engine that can't continue; finished shards are kept, and the same command resumes."""


class WorkerDied(Exception):
    """An engine stopped, usually because a worker was killed; the message says what it saw."""


def engine(name: str) -> Engine:
    """The engine of a name. `local`: Daft on this machine, or the pool if Daft is not installed;
    `pool`: a process pool; `ray`: Daft on Ray.

    Raises UsageError for another name, and EngineError if the engine is not installed.
    """
    if name == "pool" or (name == "local" and importlib.util.find_spec("daft") is None):
        return pool
    if name in ("local", "ray"):
        if importlib.util.find_spec("daft") is None:
            raise EngineError(f"--engine {name} needs Daft: pip install daft")
        if name == "ray" and importlib.util.find_spec("ray") is None:
            raise EngineError("--engine ray needs Ray: pip install ray")
        return daft_on_ray if name == "ray" else daft_here
    raise UsageError(f"no engine {name!r}: choose from local, pool, ray")


def run_jobs(
    run: Engine,
    jobs: Sequence[Job],
    settings: ShardSettings,
    workers: int,
    restarting: Callable[[int], None],
) -> Iterator[dict[str, Any]]:
    """Entries of all jobs; if a worker dies, the engine is restarted with the jobs left.

    So a death costs only the shards in flight, one per worker. `restarting` is called with the
    number of each restart. Raises EngineError if the engine keeps stopping without finishing
    anything.
    """
    left = {job.key: job for job in jobs}
    restarts = in_vain = 0
    while left:
        before = len(left)
        try:
            for entry in run(list(left.values()), settings, workers):
                del left[entry["key"]]
                yield entry
            return
        except WorkerDied as death:
            in_vain = in_vain + 1 if len(left) == before else 0
            if in_vain == _VAIN_STARTS:
                raise EngineError(
                    f"the engine stopped {in_vain} times in a row ({death}) with {len(left)} "
                    f"shards left; were workers killed, or out of memory? Run the same command "
                    f"again, perhaps with fewer --workers or --engine pool"
                ) from death
            restarts += 1
            restarting(restarts)


def pool(jobs: Sequence[Job], settings: ShardSettings, workers: int) -> Iterator[dict[str, Any]]:
    """A process pool, one task per shard."""
    executor = ProcessPoolExecutor(
        min(workers, len(jobs)), get_context("spawn"), _start, (settings,)
    )
    try:
        for future in as_completed([executor.submit(_mine, job) for job in jobs]):
            yield future.result()
    except BrokenProcessPool as error:
        raise WorkerDied(str(error)) from None
    finally:
        executor.shutdown(cancel_futures=True)


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
    """Daft on the Ray cluster at `RAY_ADDRESS`, or on a new one on this machine."""
    return _daft("ray", jobs, settings, workers)


def _daft(
    runner: str, jobs: Sequence[Job], settings: ShardSettings, workers: int
) -> Iterator[dict[str, Any]]:
    """Runs one query in a process of its own.

    If a worker dies, Daft abandons the query and may leave the other workers behind or abort the
    process. Here all workers end with the query's process.
    """
    spawn = get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    query = spawn.Process(
        target=_query, args=(runner, jobs, settings, workers, sender), daemon=True
    )
    query.start()
    sender.close()  # otherwise `recv` would not notice the end of the query
    try:
        while isinstance(message := receiver.recv(), dict):
            yield message
        query.join()
        if message:
            raise WorkerDied(f"Daft ({runner}): {message}")
    except EOFError:
        query.join()
        raise WorkerDied(f"Daft ({runner}) ended with code {query.exitcode}") from None
    finally:
        query.kill()
        query.join()


def _query(
    runner: str, jobs: Sequence[Job], settings: ShardSettings, workers: int, sender: Connection
) -> None:
    """Sends each entry as it comes, and last the error that ended the query, or an empty text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run handles it and ends this process
    end_with_parent()
    os.environ.update(DAFT_RUNNER=runner)  # read by Daft when it is imported
    import daft

    @daft.cls(use_process=True, max_concurrency=workers)
    class Mine:
        def __init__(self, text: str) -> None:
            # Daft creates the class anew in each process, from text alone.
            from .engines import settings_from
            from .shards import Worker

            self.worker = Worker(settings_from(text))

        @daft.method.batch(return_dtype=daft.DataType.string(), batch_size=1)
        def mine(self, column: Any) -> list[str]:
            from .engines import job_from

            return [json.dumps(self.worker.mine(job_from(text))) for text in column.to_pylist()]

    # One query, so that workers keep their models; one partition per shard, so that Ray returns
    # entries as shards finish, not all at the end.
    frame = daft.from_pylist([{"job": json.dumps(asdict(job))} for job in jobs])
    if runner == "ray":  # the native runner streams rows anyway, and warns
        frame = frame.into_partitions(len(jobs))
    mine: Any = Mine(json.dumps(asdict(settings))).mine  # an expression, once decorated
    try:
        for row in frame.select(mine(daft.col("job")).alias("entry")).iter_rows():
            sender.send(json.loads(row["entry"]))
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}")
    else:
        sender.send("")


QUIET = {
    "DO_NOT_TRACK": "1",
    "DAFT_ANALYTICS_ENABLED": "0",
    "SCARF_NO_ANALYTICS": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DAFT_PROGRESS_BAR": "0",
}
"""Disables telemetry and the progress bars of libraries."""


@contextmanager
def worker_environment() -> Iterator[None]:
    """What workers that start meanwhile must find before they import NumPy; then all is as before,
    as it is not ours."""
    ours = single_threaded() | QUIET
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def settings_from(text: str) -> ShardSettings:
    """Reads settings back from the JSON of their `asdict`."""
    data = json.loads(text)
    source = SourceSettings(**{**data["source"], "paths": tuple(data["source"]["paths"])})
    return ShardSettings(
        source, QualityGateSettings(**data["gate"]), MinerSettings(**data["miner"])
    )


def job_from(text: str) -> Job:
    """Reads a job back from the JSON of its `asdict`."""
    data = json.loads(text)
    groups = data["shard"]["groups"]
    shard = Shard(**{**data["shard"], "groups": None if groups is None else tuple(groups)})
    return Job(shard, data["target"], data["key"])
